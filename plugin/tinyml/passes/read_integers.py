# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Operators whose results are real read stored integers instead of dequantising them: trees, boxes."""

from __future__ import annotations

from dataclasses import replace

from tinyml.ir import Graph, Node
from tinyml.ops.quantization.quantize import Dequantize
from tinyml.passes.editor import Editor


def read_integers(graph: Graph) -> Graph:
    """Each operator decides itself (``Op.on_integers``, ``Op.reads_stored``) whether it has such a form."""
    edit = Editor(graph)
    for node in edit.sweep():
        _read(edit, node)
    return edit.graph()


def _read(edit: Editor, node: Node) -> None:
    source = edit.producer(node.inputs[0]) if node.inputs else None
    if source is None or not isinstance(source.op, Dequantize):
        return
    makers = {name: edit.producer(name) for name in node.inputs if name}
    stored = {n: m.inputs[0] for n, m in makers.items() if m is not None and isinstance(m.op, Dequantize)}
    inputs = tuple(stored.get(name, name) for name in node.inputs)
    if node.op.reads_stored([edit.tensors[name] if name else None for name in inputs]):
        edit.replace(node, [replace(node, inputs=inputs)])
        for name in stored:
            maker = makers[name]
            if maker is not None:
                edit.remove_unread(maker)
        return
    form = node.op.on_integers(edit.layer(node).inputs, edit.tensors[source.inputs[0]])
    if form is None:
        return
    op, constants = form
    operands = [source.inputs[0]]
    for name, values in zip(node.inputs[1:], constants, strict=False):  # it may need fewer
        operands.append(name if edit.tensors[name].data is values else edit.constant(name, values).name)
    edit.replace(node, [replace(node, op=op, inputs=tuple(operands))])
    edit.remove_unread(source)
