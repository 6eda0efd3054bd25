# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""How often the loops of kernels run (``Kernel.loop_counts``): what those with windows and weights share."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Layer
from tinyml.ops.conv.convolution import Convolution
from tinyml.ops.framework.work import Work
from tinyml.ops.shared.quant import clamp_range, quant_of
from tinyml.ops.weighted.weighted import Weighted, channel_multipliers


def groups_of(count: int, size: int) -> int:
    """Blocks of this size that hold so many elements, the last one maybe not full."""
    return -(-count // size)


def times(factor: float, work: Work) -> Work:
    """The same work so often."""
    return {name: factor * amount for name, amount in work.items()}


def together(*works: Work) -> Work:
    """All of this."""
    found: defaultdict[str, float] = defaultdict(float)
    for work in works:
        for name, amount in work.items():
            found[name] += amount
    return dict(found)


@dataclass(frozen=True)
class Axis:
    """The windows along an axis."""

    size: int  # of the input
    out: int
    kernel: int
    stride: int
    dilation: int
    pad: int

    @property
    def starts(self) -> range:
        return range(-self.pad, self.out * self.stride - self.pad, self.stride)

    @cached_property
    def spans(self) -> Sequence[tuple[int, int]]:
        """For each window, the first of its taps inside the input, and the end of these."""
        found = []
        for start in self.starts:
            first = groups_of(-start, self.dilation) if start < 0 else 0
            end = min(self.kernel, groups_of(max(self.size - start, 0), self.dilation))
            found.append((min(first, self.kernel), max(end, min(first, self.kernel))))
        return found

    @cached_property
    def taps(self) -> int:
        """Of all windows, those that lie inside the input."""
        return sum(end - first for first, end in self.spans)

    @cached_property
    def inside(self) -> Sequence[bool]:
        """For each window, whether it lies inside the input."""
        return [(first, end) == (0, self.kernel) for first, end in self.spans]

    @property
    def reach(self) -> int:
        """Elements that all windows span."""
        return (self.kernel - 1) * self.dilation + (self.out - 1) * self.stride + 1

    @property
    def copied(self) -> int:
        """Elements of the input that windows reach."""
        return max(min(self.size, self.reach - self.pad), 0)


@dataclass(frozen=True)
class Windows:
    """The geometry of a convolution."""

    rows: Axis
    cols: Axis
    batches: int
    in_c: int
    out_c: int
    groups: int = 1

    @property
    def positions(self) -> int:
        return self.rows.out * self.cols.out

    @property
    def taps(self) -> int:
        return self.rows.kernel * self.cols.kernel

    @property
    def elements(self) -> int:
        """Of a filter."""
        return self.taps * self.in_c // self.groups

    @property
    def inside(self) -> int:
        """Windows of an image without padding."""
        return sum(self.rows.inside) * sum(self.cols.inside)

    @property
    def turned(self) -> Windows:
        """Rows in place of columns."""
        return replace(self, rows=self.cols, cols=self.rows)

    @property
    def is_pointwise(self) -> bool:
        """Whether every window is the pixel at its place."""
        strides = self.rows.stride * self.cols.stride
        return self.taps * strides == 1 and self.positions == self.rows.size * self.cols.size


def windows_of(layer: Layer[Convolution], groups: int = 0) -> Windows:
    """``groups``: where that is not what the operator says."""
    op, x, kernel, y = layer.op, layer.input(0).shape, layer.input(1).shape[1:3], layer.output.shape
    rows, cols = (
        Axis(x[1 + i], y[1 + i], kernel[i], op.strides[i], op.dilations[i], op.pads[i]) for i in range(2)
    )
    return Windows(rows, cols, x[0], x[3], y[3], groups or getattr(op, "groups", 1))


def by_runs(
    windows: Windows, run: Callable[[int], Work], padding: Callable[[int], Work], whole_rows: bool
) -> Work:
    """What copying all windows of an image takes, row by row or tap by tap.

    ``run`` copies so many neighbouring elements of a row, ``padding`` writes them where the input has none.
    """
    rows, cols, channels = windows.rows, windows.cols, windows.in_c // windows.groups
    missing_rows = rows.out * rows.kernel - rows.taps
    if not whole_rows:
        taps = rows.taps * cols.taps
        absent = windows.positions * windows.taps - taps
        return together(times(taps, run(channels)), times(absent, padding(channels)))
    parts: list[Work] = []
    for first, end in cols.spans:
        if end <= first:
            parts.append(padding(cols.kernel * channels))
            continue
        parts += [padding(n * channels) for n in (first, cols.kernel - end) if n > 0]
        parts.append(run((end - first) * channels))
    return together(
        times(rows.taps, together(*parts)),
        times(missing_rows * cols.out, padding(cols.kernel * channels)),
    )


@dataclass(frozen=True)
class Outputs:
    """How sums become outputs."""

    narrow: bool  # limits are narrower than the type
    once: bool  # rounded once
    large: Sequence[bool]  # by channel: factors of a half and more
    weight_zero: bool

    def of(self, each: float, channels: Iterable[bool] | None = None) -> Work:
        """Of every channel so many, or of these."""
        large = list(self.large if channels is None else channels)
        count = each * len(large)
        return {
            "outputs": count,
            "outputs within limits": count * self.narrow,
            "outputs rounded once": count * self.once,
            "large outputs": each * sum(large),
            "large outputs rounded once": each * sum(large) * self.once,
        }


def outputs_of(layer: Layer[Weighted]) -> Outputs:
    """Of an integer layer."""
    _, shift = channel_multipliers(layer)
    return Outputs(
        clamp_range(layer.op.clamp, layer.output) != tuple(layer.output.dtype.limits),
        layer.op.round_once,
        [bool(large) for large in np.asarray(shift) >= 0],
        bool(quant_of(layer.input(1)).zero_points[0]),
    )
