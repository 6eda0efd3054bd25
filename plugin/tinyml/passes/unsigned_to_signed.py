# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Turn quantised uint8 into int8 by subtracting 128 from values and zero points: one type for all kernels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tinyml.ir import DType, Graph, Node, Quant, Tensor, TensorType
from tinyml.ops.quantization.quantize import Quantize
from tinyml.ops.quantization.requantize import Requantize
from tinyml.passes.editor import Editor


def unsigned_to_signed(graph: Graph) -> Graph:
    """Inputs, outputs and states of the model stay as the file declares them, with a conversion inside."""
    edit = Editor(graph)
    fixed = {*graph.inputs, *graph.outputs}
    states, updates = ([getattr(s, end) for s in graph.states] for end in ("tensor", "update"))
    fixed |= {*states, *updates}
    entering, leaving = _borders(edit)
    fixed |= {*entering, *leaving}
    for name, tensor in list(edit.tensors.items()):
        if tensor.dtype is not DType.UINT8 or tensor.quant is None:
            continue
        if name not in fixed:
            edit.tensors[name] = _signed(tensor)
    edit.nodes = [_signed_quantize(node) if node.outputs[0] not in fixed else node for node in edit.nodes]
    for name in (*graph.inputs, *states, *entering):
        _convert_input(edit, name)
    for name in dict.fromkeys((*graph.outputs, *updates, *leaving)):
        if name not in entering:  # else its bytes arrive as they are
            _convert_output(edit, name)
    return edit.graph()


def _borders(edit: Editor) -> tuple[list[str], list[str]]:
    """Where plain bytes are given a meaning, and quantised ones that lose theirs: both keep their type.

    So does what a graph inside an operator gets and gives: there, the conversion is inside, too.
    """
    entering: list[str] = []
    leaving: list[str] = []
    for node in edit.nodes:
        if node.op.inner_graph is not None:
            leaving += [name for name in node.inputs if _is_unsigned(edit, name)]
            entering += [name for name in node.outputs if _is_unsigned(edit, name)]
            continue
        x = edit.tensors.get(node.inputs[0] if node.inputs else "") if node.op.movement else None
        if x is not None and x.dtype is DType.UINT8 and x.quant is None:
            entering += [name for name in node.outputs if edit.tensors[name].quant is not None]
        if _loses_meaning(edit, node):
            leaving.append(node.inputs[0])
    return entering, list(dict.fromkeys(leaving))


def _is_unsigned(edit: Editor, name: str) -> bool:
    tensor = edit.tensors.get(name)
    return tensor is not None and tensor.dtype is DType.UINT8 and tensor.quant is not None


def _reads_unsigned(edit: Editor, node: Node) -> bool:
    return node.op.inner_graph is not None or _loses_meaning(edit, node)


def _loses_meaning(edit: Editor, node: Node) -> bool:
    """Whether a node takes quantised bytes for plain ones."""
    x, y = edit.tensors.get(node.inputs[0] if node.inputs else ""), edit.tensors[node.outputs[0]]
    moved = x is not None and x.quant is not None and node.op.movement
    return moved and y.dtype is DType.UINT8 and y.quant is None


def _signed_quant(quant: Quant) -> Quant:
    return replace(quant, zero_points=tuple(z - 128 for z in quant.zero_points))


def _signed(tensor: Tensor) -> Tensor:
    assert tensor.quant is not None
    quant = _signed_quant(tensor.quant)
    if tensor.data is None:
        return Tensor(tensor.name, tensor.shape, DType.INT8, quant)
    return Tensor.constant(tensor.name, (tensor.data.astype(np.int16) - 128).astype(np.int8), quant)


def _signed_quantize(node: Node) -> Node:
    if not isinstance(node.op, Quantize) or node.op.dtype is not DType.UINT8:
        return node
    return replace(node, op=replace(node.op, dtype=DType.INT8, quant=_signed_quant(node.op.quant)))


def _convert_input(edit: Editor, name: str) -> None:
    tensor = edit.tensors[name]
    if tensor.dtype is not DType.UINT8 or tensor.quant is None:
        return
    signed = edit.tensor(f"{name}/s8", TensorType(tensor.shape, DType.INT8, _signed_quant(tensor.quant)))
    plain = [reader for reader in edit.readers(name) if _reads_unsigned(edit, reader)]
    edit.substitute(name, signed.name)
    edit.outputs = [name if output == signed.name else output for output in edit.outputs]
    edit.states = [replace(s, update=name) if s.update == signed.name else s for s in edit.states]
    for reader in plain:
        edit.replace(edit.producer(reader.outputs[0]) or reader, [reader])
    conversion = Node(name, Requantize(), (name,), (signed.name,))
    source = edit.producer(name)
    if source is None:
        edit.nodes = [conversion, *edit.nodes]
    else:
        edit.replace(source, [source, conversion])


def _convert_output(edit: Editor, name: str) -> None:
    tensor = edit.tensors[name]
    source = edit.producer(name)
    if tensor.dtype is not DType.UINT8 or tensor.quant is None or source is None:
        return
    if isinstance(source.op, Requantize):
        return  # writes uint8 itself
    source_op = _signed_quantize(source).op  # what a Quantize comes after may become an integer layer
    signed = edit.tensor(f"{name}/s8", TensorType(tensor.shape, DType.INT8, _signed_quant(tensor.quant)))
    edit.replace(
        source,
        [
            replace(
                source, op=source_op, outputs=tuple(signed.name if o == name else o for o in source.outputs)
            ),
            Node(name, Requantize(), (signed.name,), (name,)),
        ],
    )
    for reader in edit.readers(name):
        inputs = tuple(signed.name if i == name else i for i in reader.inputs)
        if not isinstance(reader.op, Requantize) and not _reads_unsigned(edit, reader):
            edit.replace(reader, [replace(reader, inputs=inputs)])
