# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Arithmetic between bytes and their quantisation becomes a table: normalisation of images, mostly."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.ir import Array, DType, Graph, Node, Op, Tensor
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.elementwise.cast import Cast
from tinyml.ops.elementwise.channel_lookup import ChannelLookup
from tinyml.ops.elementwise.clamp import Clamp
from tinyml.ops.elementwise.lookup import BYTES, from_integers, stored_values
from tinyml.ops.quantization.quantize import Quantize
from tinyml.passes.editor import Editor

EXACT = ("add", "sub", "mul", "div", "min", "max")
"""Functions that IEEE 754 defines to the last bit, so that numpy computes what the cores would."""


def tabulate_bytes(graph: Graph) -> Graph:
    """cast(bytes) / 255 - mean …, quantised: one byte in, one byte out, whatever is between."""
    edit = Editor(graph)
    for node in edit.sweep():
        if isinstance(node.op, Quantize) and node.op.dtype in BYTES and node.op.quant.axis is None:
            _tabulate(edit, node)
    return edit.graph()


def _tabulate(edit: Editor, border: Node) -> None:
    """Walk up from a Quantize to a Cast of bytes, as long as all operands but one are constants."""
    path = [border]
    while not _casts_bytes(edit, path[-1]):
        name = _computed(edit, path[-1])
        before = edit.producer(name) if name is not None else None
        if (
            name is None
            or before is None
            or not _is_exact(edit, before)
            or edit.only_reader(name) is not path[-1]
        ):
            return
        path.append(before)
    x, y = edit.tensors[path[-1].inputs[0]], edit.tensors[border.outputs[0]]
    axes = _axes(edit, path, len(y.shape))
    if x.shape != y.shape or axes is None or len(axes) > 1:
        return
    op: Op = from_integers("normalize", x, y, _values(edit, path, x, 0))
    if axes:
        (axis,) = axes
        channels = y.shape[axis]
        if 256 * channels > y.elements:
            return
        rows = [from_integers("", x, y, _values(edit, path, x, channel)).table for channel in range(channels)]
        op = ChannelLookup(axis, tuple(rows))
    edit.replace(border, [Node(border.name, op, (x.name,), border.outputs)])
    for node in path[1:]:
        edit.remove_unread(node)


def _values(edit: Editor, path: Sequence[Node], x: Tensor, channel: int) -> Array:
    """What the bytes of a channel become, from the smallest on."""
    values: Array = stored_values(x.dtype).astype(x.dtype.numpy)
    for node in reversed(path):
        operands = [_operand(edit.tensors[name], values, channel) for name in node.inputs]
        (values,) = node.op.evaluate(edit.layer(node), operands)
    return values.astype(np.int64)


def _operand(tensor: Tensor, values: Array, channel: int) -> Array:
    if not tensor.is_constant:
        return values
    return np.asarray(tensor.value.reshape(-1)[channel if tensor.elements > 1 else 0])


def _axes(edit: Editor, path: Sequence[Node], rank: int) -> set[int] | None:
    """The axes along which constants have several numbers; None if one has them along two."""
    found = set()
    for node in path:
        for name in node.inputs:
            shape = edit.tensors[name].shape
            if edit.tensors[name].is_constant and max(shape, default=1) > 1:
                if max(shape) != edit.tensors[name].elements:
                    return None
                found.add(rank - len(shape) + shape.index(max(shape)))
    return found


def _casts_bytes(edit: Editor, node: Node) -> bool:
    """Whether it makes real numbers of bytes that have no quantisation."""
    x = edit.tensors[node.inputs[0]]
    return (
        isinstance(node.op, Cast) and node.op.dtype is DType.FLOAT32 and x.dtype in BYTES and x.quant is None
    )


def _is_exact(edit: Editor, node: Node) -> bool:
    op = node.op
    known = isinstance(op, Cast | Clamp) or (isinstance(op, Binary) and op.function in EXACT)
    y = edit.tensors[node.outputs[0]]
    return known and y.dtype is DType.FLOAT32 and y.quant is None and _computed(edit, node) is not None


def _computed(edit: Editor, node: Node) -> str | None:
    """The only operand that is not a constant; None if there are others."""
    names = [name for name in node.inputs if not edit.tensors[name].is_constant]
    return names[0] if len(names) == 1 else None
