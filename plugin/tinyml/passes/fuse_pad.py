# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Turn a border of zeros before a convolution or pool into its padding."""

from __future__ import annotations

from dataclasses import replace

from tinyml.ir import Graph, Node, Tensor
from tinyml.ir.hook_types import Border
from tinyml.ops.pad import Pad
from tinyml.ops.reshape import Reshape
from tinyml.passes._reshape_axes import unit_axes_only
from tinyml.passes.editor import Editor, sweep_until_stable


def fuse_pad(graph: Graph) -> Graph:
    """Also through a reshape that only adds or drops axes of extent 1 (one-dimensional convolutions)."""
    edit = Editor(graph)
    sweep_until_stable(edit, lambda e, node: _swap_reshape(e, node) or _fuse(e, node))
    return edit.graph()


def _fuse(edit: Editor, node: Node) -> bool:
    source = edit.producer(node.inputs[0]) if node.inputs else None
    if source is None or not isinstance(source.op, Pad):
        return False
    x = edit.tensors[source.inputs[0]]
    border = _border(edit, source.op, x)
    op = node.op.bordered(x, border) if border is not None else None
    if op is None:
        return False
    edit.replace(node, [replace(node, op=op, inputs=(x.name, *node.inputs[1:]))])
    edit.remove_unread(source)
    return True


def _border(edit: Editor, pad: Pad, x: Tensor) -> Border | None:
    """The border, if it consists of zeros around the spatial axes."""
    edges = (pad.begins[0], pad.ends[0], pad.begins[-1], pad.ends[-1])
    zero = 0 if x.quant is None else x.quant.zero_point
    if any(edges) or pad.stored_value(x) != zero:
        return None
    source = edit.producer(x.name)
    not_negative = source is not None and source.op.limits[0] >= 0
    return Border(pad.begins[1:-1], pad.ends[1:-1], not_negative)


def _swap_reshape(edit: Editor, node: Node) -> bool:
    """reshape(pad(x)) becomes pad(reshape(x))."""
    if not isinstance(node.op, Reshape):
        return False
    source = edit.producer(node.inputs[0])
    if source is None or not isinstance(source.op, Pad) or edit.only_reader(node.inputs[0]) is not node:
        return False
    x, padded, y = (edit.tensors[n] for n in (source.inputs[0], source.outputs[0], node.outputs[0]))
    places = unit_axes_only(padded.shape, y.shape)
    if places is None or padded.type.quant != y.quant:
        return False
    widths = list(zip(source.op.begins, source.op.ends, strict=True))
    lost = [i for i in range(len(padded.shape)) if i not in places.values()]
    if any(any(widths[i]) for i in lost):
        return False
    shape = tuple(x.shape[places[i]] if i in places else 1 for i in range(len(y.shape)))
    begins = tuple(widths[places[i]][0] if i in places else 0 for i in range(len(y.shape)))
    ends = tuple(widths[places[i]][1] if i in places else 0 for i in range(len(y.shape)))
    reshape, inner = edit.make(node.name, Reshape(shape), [x], replace(x.type, shape=shape))
    pad = Node(source.name, replace(source.op, begins=begins, ends=ends), (inner.name,), node.outputs)
    edit.replace([source, node], [reshape, pad])
    return True
