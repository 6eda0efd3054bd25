# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Turn a border of zeros before a convolution or pool into its padding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

from tinyml.ir import Graph, Node, Op, Tensor
from tinyml.ops.conv.conv import Conv
from tinyml.ops.conv.depthwise import DepthwiseConv
from tinyml.ops.pad import Pad
from tinyml.ops.pool.average import AveragePool
from tinyml.ops.pool.max import MaxPool
from tinyml.ops.reshape import Reshape
from tinyml.passes._reshape_axes import unit_axes_only
from tinyml.passes.editor import Editor, sweep_until_stable


def fuse_pad(graph: Graph) -> Graph:
    """Also through a reshape that only adds or drops axes of extent 1 (one-dimensional convolutions)."""
    edit = Editor(graph)
    sweep_until_stable(edit, lambda e, node: _swap_reshape(e, node) or _fuse(e, node))
    return edit.graph()


def _fuse(edit: Editor, node: Node) -> bool:
    source = edit.producer(node.inputs[0]) if node.inputs and node.inputs[0] else None
    if source is None or not isinstance(source.op, Pad):
        return False
    x = edit.tensors[source.inputs[0]]
    widths = _spatial(source.op)
    op = _padded(edit, node.op, source.op, x, widths) if widths is not None else None
    if op is None:
        return False
    edit.replace(node, [replace(node, op=op, inputs=(x.name, *node.inputs[1:]))])
    edit.remove_unread(source)
    return True


def _spatial(pad: Pad) -> tuple[Sequence[int], Sequence[int]] | None:
    """Widths before and after the spatial axes, if no other axis is padded."""
    edges = (pad.begins[0], pad.ends[0], pad.begins[-1], pad.ends[-1])
    return None if any(edges) else (pad.begins[1:-1], pad.ends[1:-1])


def _padded(
    edit: Editor, op: Op, pad: Pad, x: Tensor, widths: tuple[Sequence[int], Sequence[int]]
) -> Op | None:
    zero = 0 if x.quant is None else x.quant.zero_point
    if pad.stored_value(x) != zero:
        return None
    if isinstance(op, Conv | DepthwiseConv | MaxPool | AveragePool):
        count = len(op.pads) // 2
        if len(widths[0]) != count:
            return None
        own = (op.pads[:count], op.pads[count:])
        pads = tuple(
            a + b for side, more in zip(own, widths, strict=True) for a, b in zip(side, more, strict=True)
        )
    if isinstance(op, Conv | DepthwiseConv):
        return replace(op, pads=(pads[0], pads[1], pads[2], pads[3]))
    if isinstance(op, MaxPool):
        # zeros never win against what is not negative, as long as each window sees something of the input
        sees = all(p < k for p, k in zip(pads, (*op.kernel, *op.kernel), strict=True))
        plain = not any(op.pads) and not op.ceil and all(d == 1 for d in op.dilations)
        return replace(op, pads=pads) if sees and plain and _not_negative(edit, x) else None
    if isinstance(op, AveragePool) and x.quant is None and not any(op.pads) and not op.ceil:
        return replace(op, pads=pads, include_pad=True)
    return None


def _not_negative(edit: Editor, x: Tensor) -> bool:
    """Whether the node that computes x has clamped it at zero."""
    source = edit.producer(x.name)
    if source is None:
        return False
    names = {f.name for f in fields(source.op)}
    if "clamp" in names:
        return bool(source.op.clamp[0] >= 0)  # type: ignore[attr-defined]
    return "low" in names and bool(source.op.low >= 0)  # type: ignore[attr-defined]


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
