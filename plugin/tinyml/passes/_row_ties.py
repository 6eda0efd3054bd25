# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""How the rows of an output depend on those of the inputs, axis by axis, and layers on fewer rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Layer, Op, Shape
from tinyml.ir.hook_types import RowWindow
from tinyml.ops.pad import Pad
from tinyml.ops.reshape import Reshape
from tinyml.ops.slice import Slice
from tinyml.passes._row_windows import part_read, read_by, window_on

Rows = tuple[range, ...]  # of each axis of a tensor


@dataclass(frozen=True)
class Tie:
    """Rows of the output along one axis depend on rows of one input along one axis, through a window."""

    input: int
    axis: int  # of the input
    out_axis: int
    window: RowWindow
    moves: bool = False  # whether the operator takes another stride, dilation and padding there


def whole(shape: Shape) -> Rows:
    return tuple(range(extent) for extent in shape)


def ties_of(layer: Layer) -> list[Tie]:
    """All ties of a layer; along other axes it needs all of its inputs and computes all of its output."""
    if len(layer.outputs) != 1 or layer.op.inner_graph is not None or layer.op.by_rows:
        return []
    tensors = [tensor for tensor in (*layer.inputs, layer.output) if tensor is not None]
    if any(tensor.elements == 0 for tensor in tensors):
        return []
    if isinstance(layer.op, Slice):
        found = list(_of_slice(layer, layer.op))
    elif isinstance(layer.op, Pad):
        found = list(_of_pad(layer, layer.op))
    else:
        found = list(_of_windows(layer)) or list(_of_places(layer))
    return [tie for tie in found if not _has_own_scales(layer, tie)]


def _of_slice(layer: Layer, op: Slice) -> Iterator[Tie]:
    x, y = layer.input(0).shape, layer.output.shape
    for axis, (start, step) in enumerate(zip(op.starts, op.steps, strict=True)):
        if step > 0:
            yield Tie(0, axis, axis, RowWindow(1, step, 1, -start, x[axis], y[axis]), True)


def _of_pad(layer: Layer, op: Pad) -> Iterator[Tie]:
    x, y = layer.input(0).shape, layer.output.shape
    for axis, before in enumerate(op.begins):
        yield Tie(0, axis, axis, RowWindow(1, 1, 1, before, x[axis], y[axis]))


def _of_windows(layer: Layer) -> Iterator[Tie]:
    """Rows have to follow one another in memory, so that a part of them needs no copy."""
    x, y = layer.input(0).shape, layer.output.shape
    if len(x) != 4 or len(y) != 4 or x[0] != 1:
        return
    for axis in (1, 2):
        window = layer.op.row_window(layer, axis)
        if window is None or layer.op.with_window(axis, window) is None:
            return
        if prod(x[:axis]) == prod(y[:axis]) == 1:
            yield Tie(0, axis, axis, window, True)


def _of_places(layer: Layer) -> Iterator[Tie]:
    """Along axes that the operator carries; what it does to channels may depend on their number."""
    last = len(layer.output.shape) - 1
    for index, x in enumerate(layer.inputs):
        if x is None:
            continue
        for axis, extent in enumerate(x.shape):
            places = layer.op.carried_axis(layer, index, axis)
            if places is None or layer.output.shape[places[0]] != extent:
                continue
            if places[0] != last or layer.op.movement:
                yield Tie(index, axis, places[0], RowWindow.row_by_row(extent))


def _has_own_scales(layer: Layer, tie: Tie) -> bool:
    """Whether the rows of a tensor are quantised one by one."""
    x, y = layer.input(tie.input), layer.output
    axes = (x.quant and x.quant.axis, y.quant and y.quant.axis)
    return axes[0] == tie.axis or axes[1] == tie.out_axis


def reads(layer: Layer, ties: Sequence[Tie], rows: Rows) -> list[Rows | None] | None:
    """The rows of each input that are needed for rows of the output; None if some see only padding."""
    found = [None if x is None else list(whole(x.shape)) for x in layer.inputs]
    for tie in ties:
        reading, own = read_by(tie.window, rows[tie.out_axis]), found[tie.input]
        if reading is None or own is None:
            return None
        own[tie.axis] = reading.inside
    return [None if own is None else tuple(own) for own in found]


def parts(layer: Layer, ties: Sequence[Tie], rows: Rows, given: Mapping[int, Rows]) -> dict[int, Rows]:
    """What a layer on these rows reads of each input, of which only the ``given`` rows exist."""
    needed = reads(layer, ties, rows)
    assert needed is not None, "layers that read only padding stay as they are"
    found = {index: list(own) for index, own in enumerate(needed) if own is not None}
    for tie in ties:
        if tie.moves:
            found[tie.input][tie.axis] = _taken(layer, tie, rows[tie.out_axis], given[tie.input][tie.axis])
    return {index: tuple(own) for index, own in found.items()}


def _taken(layer: Layer, tie: Tie, rows: range, given: range) -> range:
    """All given rows where that needs no more than what is read; else the part that is."""
    if isinstance(layer.op, Slice):
        return given
    part, reading = part_read(tie.window, rows, given), read_by(tie.window, rows)
    if part[0] == given[0] and reading is not None and reading.step % given.step == 0:
        window = window_on(tie.window, rows, given)
        room = window.in_rows + window.pad_top + window.pad_bottom - window.span
        if room // window.stride + 1 == window.out_rows:
            return given
    return part


def narrowed(layer: Layer, ties: Sequence[Tie], rows: Rows, given: Mapping[int, Rows]) -> Op | None:
    """The operator that computes ``rows`` of the output from the ``given`` rows of its inputs."""
    op, shape = layer.op, tuple(len(own) for own in rows)
    if isinstance(op, Reshape):
        return replace(op, shape=shape)
    windows = {tie.axis: window_on(tie.window, rows[tie.out_axis], given[0][tie.axis]) for tie in ties}
    if isinstance(op, Slice):
        starts, steps = list(op.starts), list(op.steps)
        for axis in windows:
            first, own = op.starts[axis] + rows[axis][0] * op.steps[axis], given[0][axis]
            starts[axis] = own.index(first)
            steps[axis] = rows[axis].step * op.steps[axis] // own.step if len(rows[axis]) > 1 else 1
        return replace(op, starts=tuple(starts), extents=shape, steps=tuple(steps))
    if isinstance(op, Pad):
        begins, ends = list(op.begins), list(op.ends)
        for axis, window in windows.items():
            begins[axis], ends[axis] = window.pad_top, window.pad_bottom
        return replace(op, begins=tuple(begins), ends=tuple(ends))
    for tie in ties:
        own = given[tie.input][tie.axis]
        if tie.moves and (len(own), len(rows[tie.out_axis])) != (tie.window.in_rows, tie.window.out_rows):
            changed = op.with_window(tie.axis, windows[tie.axis])
            if changed is None:
                return None
            op = changed
    return op
