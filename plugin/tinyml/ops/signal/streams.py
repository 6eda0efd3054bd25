# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""TensorFlow Lite Micro's operators on streams: delays, frames, stacks and overlapping sums, with states.

Each becomes a few ordinary operators and a state that holds the samples of earlier runs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.base.errors import ModelError, UnsupportedError
from tinyml.ir import DType, Tensor, TensorType
from tinyml.ops.concat import Concat
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.elementwise.cast import cast
from tinyml.ops.elementwise.where import Where
from tinyml.ops.framework.reading import MALFORMED, Builder, TfliteNode, tflite_custom_op
from tinyml.ops.indexing.gather import gather
from tinyml.ops.reshape import Reshape
from tinyml.ops.shared.flexbuffer_options import option
from tinyml.ops.slice import take

MOST_STEPS = 64
"""Frames of one run that OverlapAdd adds up, each with operators of its own."""


def _samples(node: TfliteNode, *types: DType) -> Tensor:
    """The input, if it has an axis of samples and one of these types."""
    x = node.input(0)
    if x.dtype not in types or x.quant is not None or not x.shape or not x.elements:
        known = " or ".join(dtype.value for dtype in types)
        raise UnsupportedError(
            f"{node.op_type} operator {node.name!r} on {x.dtype.value} {x.shape}", f"{known} is supported"
        )
    return x


def _continued(build: Builder, x: Tensor, past: int) -> Tensor:
    """``x`` after the last ``past`` samples of earlier runs, along the last axis; zeros at first."""
    if past == 0:
        return x
    axis, count = len(x.shape) - 1, x.shape[-1]
    state = build.state(f"{build.scope}/past", TensorType((*x.shape[:-1], past), x.dtype))
    joined = build.add1(Concat(axis), [state, x])
    build.update(state, take(build, joined, {axis: (count, past, 1)}))
    return joined


def _number(build: Builder, value: int, dtype: type[np.generic] = np.int32) -> Tensor:
    return build.constant(np.array(value, dtype))


@tflite_custom_op("SignalDelay")
def read_delay(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    x = _samples(node, DType.INT16)
    joined = _continued(build, x, option(node, "delay_length"))
    return [take(build, joined, {len(x.shape) - 1: (0, x.shape[-1], 1)})]


@tflite_custom_op("SignalFramer")
def read_framer(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    """Overlapping frames, and whether all of them are complete. Missing samples are 0."""
    x = _samples(node, DType.INT16)
    size, step = option(node, "frame_size", 1), option(node, "frame_step", 1)
    count = x.shape[-1]
    if size < step or count % step:
        raise ModelError(
            f"{node.op_type} operator {node.name!r}: frames of {size} every {step} samples of {count}",
            MALFORMED,
        )
    prefilled = bool(option(node, "prefill", 0, 1))
    # without zeros in advance, a frame begins when whole steps have filled it
    held = size if prefilled else -(-size // step) * step
    joined = _continued(build, x, held - step)
    places = np.arange(count // step)[:, None] * step + np.arange(size)
    frames = gather(build, joined, build.constant(places.astype(np.int64)), len(x.shape) - 1)
    needed = 1 if prefilled else held // step
    return [frames, _complete(build, count // step, needed)]


def _complete(build: Builder, steps: int, needed: int) -> Tensor:
    """Whether the first of ``steps`` steps in this run is at least number ``needed`` of all."""
    if needed <= 1:
        return build.constant(np.array(True))
    before = build.state(f"{build.scope}/steps", TensorType((), DType.INT32))
    after = build.add1(Binary("add"), [before, _number(build, steps)])
    build.update(before, build.add1(Binary("min"), [after, _number(build, needed)]))
    return build.add1(Binary("greater_equal"), [before, _number(build, needed - 1)])


@tflite_custom_op("SignalStacker")
def read_stacker(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    """The last rows side by side, every ``stacker_step`` runs, and whether this run is such a one.

    The first row stands for those before it.
    """
    x, channels = _samples(node, DType.INT16), option(node, "num_channels", 1)
    left, right = (option(node, f"stacker_{side}_context", high=0x7FFF) for side in ("left", "right"))
    rows, step = left + right + 1, option(node, "stacker_step", 1)
    if x.shape != (channels,) or step > rows:
        raise ModelError(
            f"{node.op_type} operator {node.name!r}: {rows} rows of {channels}, every {step}, of {x.shape}",
            MALFORMED,
        )
    held = build.state(f"{build.scope}/rows", TensorType((), DType.INT32))
    first = build.add1(Binary("equal"), [held, _number(build, 0)])
    y = x
    if rows > 1:
        past = build.state(f"{build.scope}/past", TensorType(((rows - 1) * channels,), DType.INT16))
        before = build.add1(Where(), [first, build.add1(Concat(0), [x] * (rows - 1)), past])
        y = build.add1(Concat(0), [before, x])
        build.update(past, take(build, y, {0: (channels, (rows - 1) * channels, 1)}))
    # counted from 1, so that 0 is "before the first row"
    start = build.add1(Where(), [first, _number(build, left + 1), held])
    now = build.add1(Binary("add"), [start, _number(build, 1)])
    valid = build.add1(Binary("greater_equal"), [now, _number(build, rows + 1)])
    used = build.add1(Binary("sub"), [now, _number(build, step)])
    build.update(held, build.add1(Where(), [valid, used, now]))
    return [y, valid]


@tflite_custom_op("SignalOverlapAdd")
def read_overlap_add(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    """Frames added where they overlap; int16 sums are limited, frame by frame."""
    x = _samples(node, DType.INT16, DType.FLOAT32)
    step = option(node, "frame_step", 1)
    if len(x.shape) < 2 or step > x.shape[-1]:
        raise ModelError(
            f"{node.op_type} operator {node.name!r}: frames {x.shape} every {step} samples", MALFORMED
        )
    *outer, frames, size = x.shape
    if frames > MOST_STEPS:
        raise UnsupportedError(
            f"{node.op_type} operator {node.name!r} adds {frames} frames in a run", f"at most {MOST_STEPS}"
        )
    axis = len(outer)
    zeros = build.constant(np.zeros((*outer, step), x.dtype.numpy))
    state = rest = None
    if size > step:
        state = rest = build.state(f"{build.scope}/rest", TensorType((*outer, size - step), x.dtype))
    parts = []
    for frame in range(frames):
        row = build.add1(Reshape((*outer, size)), [take(build, x, {axis: (frame, 1, 1)})])
        total = row if rest is None else _sum(build, build.add1(Concat(axis), [rest, zeros]), row)
        parts.append(take(build, total, {axis: (0, step, 1)}))
        rest = None if rest is None else take(build, total, {axis: (step, size - step, 1)})
    if state is not None and rest is not None:
        build.update(state, rest)
    return [parts[0] if frames == 1 else build.add1(Concat(axis), parts)]


def _sum(build: Builder, a: Tensor, b: Tensor) -> Tensor:
    if a.dtype is DType.FLOAT32:
        return build.add1(Binary("add"), [a, b])
    wide = build.add1(Binary("add"), [cast(build, t, DType.INT32) for t in (a, b)])
    wide = build.add1(Binary("min"), [wide, _number(build, 32767)])
    return cast(build, build.add1(Binary("max"), [wide, _number(build, -32768)]), DType.INT16)
