# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Turn quantised uint8 into int8 by subtracting 128 from values and zero points: one type for all kernels."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from tinyml.ir import DType, Graph, Layer, Node, Quant, Tensor, TensorType
from tinyml.ops.quantization.quantize import Quantize
from tinyml.ops.quantization.requantize import Requantize
from tinyml.passes.editor import Editor


def unsigned_to_signed(graph: Graph) -> Graph:
    """Inputs and outputs of the model stay as the file declares them, with a conversion inside."""
    graph = _spread(graph)
    edit = Editor(graph)
    plain = {node.outputs[0] for node in graph.nodes if _computes_plain_integers(graph.layer(node))}
    fixed = {*graph.inputs, *graph.outputs}
    fixed |= {name for state in graph.states for name in (state.tensor, state.update)}
    fixed |= {n for node in graph.nodes if node.outputs[0] in plain for n in (*node.inputs, *node.outputs)}
    for name, tensor in list(edit.tensors.items()):
        if tensor.dtype is not DType.UINT8 or tensor.quant is None:
            continue
        if name not in fixed:
            edit.tensors[name] = _signed(tensor)
    edit.nodes = [_signed_quantize(node) if node.outputs[0] not in fixed else node for node in edit.nodes]
    for name in graph.inputs:
        _convert_input(edit, name, plain)
    for position, name in enumerate(graph.outputs):
        _convert_output(edit, position, name)
    return edit.graph()


def _spread(graph: Graph) -> Graph:
    """Give uint8 tensors the quantisation of those that they are moved from or to.

    A file says what the integers mean only where they are converted, which may be after a Reshape or a
    MaxPool. All tensors on the way have the same meaning, and must be converted together.
    """
    tensors = dict(graph.tensors)
    for nodes in (graph.nodes, tuple(reversed(graph.nodes)), graph.nodes):
        for node in nodes:
            _spread_over(node, tensors)
    return graph.with_nodes(graph.nodes, tensors.values())


def _spread_over(node: Node, tensors: dict[str, Tensor]) -> None:
    names = [n for n in dict.fromkeys((*node.inputs, *node.outputs)) if n]
    bytes_ = [tensors[n] for n in names if tensors[n].dtype is DType.UINT8]
    known = {t.quant for t in bytes_ if t.quant is not None and not t.quant.per_channel}
    if len(known) != 1 or all(t.quant is not None for t in bytes_) or node.outputs[0] not in names:
        return
    (quant,) = known
    given = {t.name: replace(t, quant=quant) for t in bytes_}
    inferred = node.op.infer([given.get(n, tensors[n]) if n else None for n in node.inputs])
    if inferred[0].dtype is DType.UINT8 and inferred[0].quant == quant:  # the operator keeps the meaning
        tensors.update(given)


def _computes_plain_integers(layer: Layer) -> bool:
    """Whether some of its uint8 tensors are numbers of their own, not quantised ones."""
    if layer.op.kind in ("Quantize", "Dequantize", "Requantize"):
        return False
    bytes_ = [t for t in (*layer.inputs, *layer.outputs) if t is not None and t.dtype is DType.UINT8]
    return any(t.quant is None for t in bytes_)


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


def _convert_input(edit: Editor, name: str, plain: Collection[str]) -> None:
    tensor = edit.tensors[name]
    if tensor.dtype is not DType.UINT8 or tensor.quant is None:
        return
    signed = edit.tensor(f"{name}/s8", TensorType(tensor.shape, DType.INT8, _signed_quant(tensor.quant)))
    edit.substitute(name, signed.name)
    for node in list(edit.nodes):
        if node.outputs[0] in plain and signed.name in node.inputs:
            inputs = tuple(name if operand == signed.name else operand for operand in node.inputs)
            edit.replace(node, [replace(node, inputs=inputs)])
    edit.outputs = [name if output == signed.name else output for output in edit.outputs]
    edit.nodes = [Node(name, Requantize(), (name,), (signed.name,)), *edit.nodes]


def _convert_output(edit: Editor, position: int, name: str) -> None:
    tensor = edit.tensors[name]
    source = edit.producer(name)
    if tensor.dtype is not DType.UINT8 or tensor.quant is None or source is None:
        return
    if isinstance(source.op, Requantize) or _computes_plain_integers(Layer.of(source, edit.tensors)):
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
        if not isinstance(reader.op, Requantize):
            edit.replace(reader, [replace(reader, inputs=inputs)])
