# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""ResizePixels: RESIZE_NEAREST_NEIGHBOR of TFLite, which defines pixel positions in its own way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tinyml.base.errors import UnsupportedError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Shape, Tensor
from tinyml.ops.framework.kernel import register_kernels
from tinyml.ops.framework.reading import Builder, TfliteNode, tflite_op
from tinyml.ops.shared.operands import not_empty, numbers_from, of_rank, present, within_limits
from tinyml.ops.shared.take import Picks, Take, TakeLoops


@dataclass(frozen=True)
class Grid:
    """The position of output pixels relative to input pixels."""

    align_corners: bool = False
    half_pixel_centers: bool = False

    def scale(self, size: int, wanted: int) -> Any:
        """Input pixels per output pixel."""
        last = 1 if self.align_corners and wanted > 1 else 0
        return np.float32(np.float32(size - last) / np.float32(wanted - last))

    def nearest(self, size: int, wanted: int) -> Picks:
        """The input pixel for each output pixel of an axis, computed in float32 as TFLite does."""
        offset = np.float32(0.5 if self.half_pixel_centers else 0.0)
        place = (np.arange(wanted, dtype=np.float32) + offset) * self.scale(size, wanted)
        whole = np.floor(place + np.float32(0.5)) if self.align_corners else np.floor(place)
        return tuple(int(v) for v in np.clip(whole, 0, size - 1))


CORNERS = Grid()  # the first pixels of both are at the same position


@dataclass(frozen=True)
class ResizePixels(Take):
    """The nearest pixel of an NHWC image; works on any type."""

    operands = (
        present(1),
        of_rank(0, 4),
        not_empty(0),
        numbers_from(1, "height", "width"),
        within_limits("height", "width"),
    )
    height: int = 1
    width: int = 1
    grid: Grid = CORNERS

    def picks(self, shape: Shape) -> tuple[Picks, ...]:
        n, height, width, channels = shape
        rows, columns = self.grid.nearest(height, self.height), self.grid.nearest(width, self.width)
        return tuple(range(n)), rows, columns, tuple(range(channels))

    def extents(self, shape: Shape) -> Shape:
        return (shape[0], self.height, self.width, shape[3])


register_kernels(ResizePixels, TakeLoops())


def grid_of(node: TfliteNode) -> tuple[int, int, Grid]:
    """Height and width of the output, and the position of its pixels."""
    height, width = (int(v) for v in node.const(1).reshape(-1))
    return height, width, Grid(node.options.AlignCorners(), node.options.HalfPixelCenters())


@tflite_op("RESIZE_NEAREST_NEIGHBOR")
def read_nearest(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    x = node.input(0)
    if len(x.shape) != 4:
        raise UnsupportedError(f"{node.op_type} operator {node.name!r} requires an NHWC image")
    return [build.add1(ResizePixels(*grid_of(node)), [x])]
