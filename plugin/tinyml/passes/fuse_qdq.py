# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Dequantize → operator → Quantize becomes the operator on integers."""

from __future__ import annotations

import numpy as np

from tinyml.ir import DType, Graph, Node, Tensor
from tinyml.ir.constraints import operand_problem
from tinyml.ops.quantization.quantize import Dequantize, Quantize
from tinyml.ops.quantization.requantize import Requantize
from tinyml.passes.editor import Editor
from tinyml.passes.remove_dead_code import remove_dead_code

SHORT = (DType.INT8, DType.UINT8, DType.INT16)
"""Types that 32-bit rescaling supports."""


def fuse_qdq(graph: Graph) -> Graph:
    """Each operator decides itself (``Op.quantized``) whether it has an integer form."""
    edit = Editor(graph)
    for node in edit.sweep():
        _drop_round_trip(edit, node)
    for node in edit.sweep():
        _fuse(edit, node)
    for node in edit.sweep():
        _rescale(edit, node)
    return remove_dead_code(edit.graph())


def _drop_round_trip(edit: Editor, node: Node) -> None:
    """quantize(dequantize(q)) with the same parameters is q."""
    if not isinstance(node.op, Quantize) or edit.is_kept(node.outputs[0]):
        return
    source = edit.producer(node.inputs[0])
    if source is None or not isinstance(source.op, Dequantize):
        return
    stored = edit.tensors[source.inputs[0]]
    if stored.dtype is node.op.dtype and stored.quant == node.op.quant:
        edit.replace(node, [])
        edit.substitute(node.outputs[0], stored.name)


def _rescale(edit: Editor, node: Node) -> None:
    """quantize(dequantize(q)) with other parameters, where int8 meets int16: from integers to integers."""
    source = edit.producer(node.inputs[0]) if isinstance(node.op, Quantize) else None
    if source is None or not isinstance(source.op, Dequantize):
        return
    stored, result = edit.tensors[source.inputs[0]], edit.tensors[node.outputs[0]]
    if all(t.dtype in SHORT and t.quant is not None and not t.quant.per_channel for t in (stored, result)):
        edit.replace(node, [Node(node.name, Requantize(round_once=True), source.inputs, node.outputs)])


def _fuse(edit: Editor, node: Node) -> None:
    if isinstance(node.op, Quantize | Dequantize) or node.op.movement:
        return
    borders = [border_of(edit, name) for name in node.outputs]
    if any(border is None for border in borders):
        return
    inputs = [stored_of(edit, name) for name in node.inputs]
    if all(tensor is None or tensor.quant is None for tensor in inputs):
        return
    outputs = [edit.tensors[border.outputs[0]] for border in borders if border is not None]
    form = node.op.quantized(inputs, outputs)
    if form is None:
        return
    op, tensors = form
    if operand_problem(op, tensors) is not None:  # such as weights quantised along another axis: stays float
        return
    names = [entered(edit, tensor) if tensor is not None else "" for tensor in tensors]
    fused = Node(node.name, op, tuple(names), tuple(tensor.name for tensor in outputs))
    edit.replace(node, [fused])
    for border in borders:
        if border is not None:
            edit.replace(border, [])


def entered(edit: Editor, tensor: Tensor) -> str:
    """The name under which the graph has an operand of the integer form.

    Layers that share a constant, such as a bias, may need it on different scales: same name, other value.
    """
    known = edit.tensors.get(tensor.name)
    if known is not None and (known is tensor or _same_constant(known, tensor)):
        return known.name
    return edit.constant(tensor.name, tensor.value, tensor.quant).name


def _same_constant(a: Tensor, b: Tensor) -> bool:
    return (
        a.data is not None
        and b.data is not None
        and a.type == b.type
        and bool(np.array_equal(a.data, b.data))
    )


def border_of(edit: Editor, name: str) -> Node | None:
    """The Quantize that is the only reader of a tensor."""
    reader = edit.only_reader(name)
    return reader if reader is not None and isinstance(reader.op, Quantize) else None


def stored_of(edit: Editor, name: str) -> Tensor | None:
    """The integers that an operand is dequantised from, or the operand itself if it is not dequantised."""
    if not name:
        return None
    source = edit.producer(name)
    if source is not None and isinstance(source.op, Dequantize):
        return edit.tensors[source.inputs[0]]
    return edit.tensors[name]
