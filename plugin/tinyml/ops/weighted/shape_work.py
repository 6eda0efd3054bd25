# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""How often the loops of a layer with weights may run, whatever its kernel: for kernels that do not say it.

Kernels walk over windows, channels and elements, one by one or in blocks. Every way to combine these is a
name; ``tools.fit_loops`` finds the few that explain what a kernel took, and what one turn of each takes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import cast

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Layer
from tinyml.ops.conv.convolution import Convolution
from tinyml.ops.conv.depthwise import DepthwiseConv
from tinyml.ops.dense.dense import Dense
from tinyml.ops.framework.work import Work
from tinyml.ops.weighted.walked import Axis, Windows, groups_of, outputs_of, windows_of
from tinyml.ops.weighted.weighted import Weighted

BETWEEN = " per "


class ShapeWork(Mapping[str, float]):
    """Products of three amounts, computed when they are asked for: an estimate needs a few of many."""

    def __init__(self, places: Work, channels: Work, elements: Work, others: Work) -> None:
        self._factors = (elements, channels, places)
        self._others = others

    def __getitem__(self, name: str) -> float:
        if name in self._others:
            return self._others[name]
        parts = name.split(BETWEEN)
        return math.prod([factor[part] for factor, part in zip(self._factors, parts, strict=True)])

    def __iter__(self) -> Iterator[str]:
        elements, channels, places = self._factors
        yield from self._others
        for place in places:
            for channel in channels:
                for element in elements:
                    if (place in INSIDE) == (element in IN_TAPS) or element in ANYWHERE:
                        yield BETWEEN.join((element, channel, place))

    def __len__(self) -> int:
        return sum(1 for _ in self)


@dataclass(frozen=True)
class Walk:
    """Windows, and what each of them is multiplied with."""

    windows: Windows
    depth: int  # input channels of a filter
    filters: int  # of a group
    groups: int


def shape_work(layer: Layer) -> ShapeWork | None:
    """None for operators without weights, or whose windows are not known."""
    walk = _walk(layer)
    if walk is None:
        return None
    windows, groups = walk.windows, float(walk.groups)
    channels = {name: groups * amount for name, amount in _channels(walk.filters).items()}
    return ShapeWork(_places(windows), channels, _elements(walk), _others(layer, walk))


def _walk(layer: Layer) -> Walk | None:
    op = layer.op
    if not isinstance(op, Convolution | Dense):
        return None
    outs = layer.output.shape[-1]
    if isinstance(op, Dense):
        rows, ins = layer.output.elements // outs, layer.input(1).shape[-1]
        one = Axis(1, 1, 1, 1, 1, 0)
        return Walk(Windows(one, Axis(rows, rows, 1, 1, 1, 0), 1, ins, outs), ins, outs, 1)
    if len(layer.output.shape) != 4 or not hasattr(op, "strides") or hasattr(op, "outputs"):
        return None
    windows = windows_of(cast(Layer[Convolution], layer))
    if isinstance(op, DepthwiseConv):
        return Walk(windows, 1, windows.out_c, 1)
    groups = windows.groups
    return Walk(windows, windows.in_c // groups, windows.out_c // groups, groups)


def _places(windows: Windows) -> dict[str, float]:
    rows, cols, images = windows.rows, windows.cols, windows.batches
    at_edge = images * (windows.positions - windows.inside)
    found = {
        "image": images,
        "row": images * rows.out,
        "window": images * windows.positions,
        "two in a row": images * rows.out * groups_of(cols.out, 2),
        "four in a row": images * rows.out * groups_of(cols.out, 4),
        "two windows": images * groups_of(windows.positions, 2),
        "three windows": images * groups_of(windows.positions, 3),
        "four windows": images * groups_of(windows.positions, 4),
        "last windows of fours": images * (windows.positions % 4),
        "last windows of twos": images * (windows.positions % 2),
        "window at an edge": at_edge,
        "window inside": images * windows.positions - at_edge,
        "tap inside": images * rows.taps * cols.taps,
        "row of taps inside": images * rows.taps * cols.out,
    }
    return {name: float(amount) for name, amount in found.items()}


INSIDE = ("tap inside", "row of taps inside")
IN_TAPS = ("element of a tap", "last elements of a tap")
ANYWHERE = ("time", "4 elements of a tap", "16 elements of a tap")
"""Which places are combined with which elements: all but taps, which are inside, with whole filters."""


def _channels(filters: int) -> dict[str, float]:
    """Filters one by one, in blocks, and what is left by these."""
    found = {
        "group": 1,
        "filter": filters,
        "2 filters": groups_of(filters, 2),
        "4 filters": groups_of(filters, 4),
        "last filters of 4": filters % 4,
        "8 filters": groups_of(filters, 8),
        "16 filters": groups_of(filters, 16),
        "some last of 16": filters % 16 > 0,
        "some last of 4": filters % 4 > 0,
    }
    return {name: float(amount) for name, amount in found.items()}


def _elements(walk: Walk) -> dict[str, float]:
    """The same of the elements of a filter, of a row of its taps, and of a tap."""
    rows, cols, depth = walk.windows.rows.kernel, walk.windows.cols.kernel, walk.depth
    size, row = rows * cols * depth, cols * depth
    found = {
        "time": 1,
        "tap": rows * cols,
        "row of taps": rows,
        "element": size,
        "4 elements": groups_of(size, 4),
        "8 elements": groups_of(size, 8),
        "16 elements": groups_of(size, 16),
        "whole 16 elements": size // 16,
        "last elements of 4": size % 4,
        "last elements of 16": size % 16,
        "some last of 16": size % 16 > 0,
        "16 elements of a row": rows * groups_of(row, 16),
        "4 elements of a row": rows * groups_of(row, 4),
        "last elements of a row": rows * (row % 4),
        "16 elements of a tap": groups_of(depth, 16),
        "4 elements of a tap": groups_of(depth, 4),
        "element of a tap": depth,
        "last elements of a tap": depth % 4,
    }
    return {name: float(amount) for name, amount in found.items()}


def _others(layer: Layer, walk: Walk) -> dict[str, float]:
    """How sums become outputs, and a convolution whose windows are the pixels of its input."""
    found: dict[str, float] = {}
    windows = walk.windows
    places = float(windows.batches * windows.positions)
    if isinstance(layer.op, Weighted) and layer.output.dtype.is_integer:
        found |= outputs_of(cast(Layer[Weighted], layer)).of(places)
    elif layer.output.dtype.is_float:
        low, high = getattr(layer.op, "clamp", (-math.inf, math.inf))
        found["outputs with a least"] = layer.output.elements * float(low > -math.inf)
        found["outputs with a most"] = layer.output.elements * float(high < math.inf)
    if windows.is_pointwise:
        vectors = groups_of(walk.depth, 16)
        found |= {
            "pixels": places,
            "elements of pixels": places * walk.depth,
            "vectors of pixels": places * vectors,
            "outputs of pixels": places * walk.filters,
        }
    return found
