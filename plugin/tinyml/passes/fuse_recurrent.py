# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Dequantize → RNN, GRU or LSTM → Quantize becomes the layer on integers, now that its weights are known."""

from __future__ import annotations

from tinyml.ir import Graph, Node
from tinyml.ir.constraints import operand_problem
from tinyml.ops.quantization.quantize import Quantize
from tinyml.passes.editor import Editor
from tinyml.passes.fuse_qdq import border_of, entered, stored_of
from tinyml.passes.remove_dead_code import remove_dead_code


def fuse_recurrent(graph: Graph) -> Graph:
    """Operators with outputs that may be unread (``Op.spare_outputs``), whose weights had to be folded."""
    edit = Editor(graph)
    for node in edit.sweep():
        if node.op.spare_outputs:
            _fuse(edit, node)
    return remove_dead_code(edit.graph())


def _join_borders(edit: Editor, name: str) -> None:
    """All readers that quantise in the same way read the same integers."""
    borders = [reader for reader in edit.readers(name) if isinstance(reader.op, Quantize)]
    for border in borders[1:]:
        if border.op == borders[0].op and not edit.is_kept(border.outputs[0]):
            edit.replace(border, [])
            edit.substitute(border.outputs[0], borders[0].outputs[0])


def _fuse(edit: Editor, node: Node) -> None:
    for name in node.outputs:
        _join_borders(edit, name)
    unread = [not edit.readers(name) and not edit.is_kept(name) for name in node.outputs]
    borders = [border_of(edit, name) for name in node.outputs]
    if all(unread) or any(b is None and not spare for b, spare in zip(borders, unread, strict=True)):
        return
    inputs = [stored_of(edit, name) for name in node.inputs]
    names = [
        name if border is None else border.outputs[0]
        for name, border in zip(node.outputs, borders, strict=True)
    ]
    form = node.op.quantized(inputs, [edit.tensors[name] for name in names])
    if form is None or operand_problem(form[0], form[1]) is not None:
        return
    op, tensors = form
    operands = [entered(edit, tensor) if tensor is not None else "" for tensor in tensors]
    for place, type_ in enumerate(op.infer(tensors)):
        if borders[place] is None:
            names[place] = edit.tensor(f"{names[place]}/q", type_).name
    edit.replace(node, [Node(node.name, op, tuple(operands), tuple(names))])
    for border in borders:
        if border is not None:
            edit.replace(border, [])
