# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Where convolutions with few filters or channels find the elements of their windows with Helium."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, Layer
from tinyml.ops.conv.convolution import Convolution
from tinyml.ops.conv.joined_groups import groups_of
from tinyml.ops.weighted.records import SMALL
from tinyml.ops.weighted.walked import Axis, Windows, windows_of


@dataclass(frozen=True)
class Lines:
    """Where the elements of windows are: in the input, or in copies of the lines of a row of outputs."""

    copied: int  # channels of whole groups that are copied at a time; 0: nothing is
    columns: int  # of a line
    column: int  # elements from one to the next
    row: int  # elements from a row of taps to the next
    tap: int  # elements from a tap of a row to the next
    total: int  # elements of all lines

    def offsets(self, layer: Layer[Convolution]) -> Array:
        """Of the elements of a window."""
        _, height, width, channels = layer.input(1).shape
        rows, taps = self.row * np.arange(height), self.tap * np.arange(width)
        return np.asarray(np.add.outer(np.add.outer(rows, taps), np.arange(channels)).reshape(-1))

    def fits(self, layer: Layer[Convolution], most: int) -> bool:
        return bool(self.offsets(layer)[-1] <= most)


def _inside(layer: Layer[Convolution]) -> bool:
    """Whether no window has padding."""
    windows = windows_of(layer)
    return all(windows.rows.inside) and all(windows.cols.inside)


def lines_of(layer: Layer[Convolution], most: int, vector: int) -> Lines | None:
    """The lines with offsets of at most ``most``; a ``vector`` has so many elements."""
    op, (_, _, width, channels) = layer.op, layer.input(0).shape
    _, height, _, each = layer.input(1).shape
    (down, along), groups = op.dilations, groups_of(layer)
    straight = Lines(0, width, channels, down * width * channels, along * channels, 0)
    if _inside(layer) and straight.fits(layer, most):
        return straight
    columns = windows_of(layer).cols.reach
    if groups == 1:
        whole = Lines(
            channels, columns, channels, columns * channels, along * channels, height * columns * channels
        )
        if whole.fits(layer, most):
            return whole
    for count in range(min(max(vector // each, 1), groups), 0, -1):
        copied = count * each
        apart = height * copied
        part = Lines(copied, columns, apart, copied, along * apart, columns * apart)
        if groups % count == 0 and part.fits(layer, most):
            return part
    return None


def one_row(layer: Layer[Convolution]) -> dict[str, int]:
    """What differs in the geometry if every window is the pixel at its place: these are a single row."""
    windows = windows_of(layer)
    pixels = windows.batches * windows.positions
    if not windows.is_pointwise or pixels >= SMALL:
        return {}
    return {"batches": 1, "in_h": 1, "in_w": pixels, "out_h": 1, "out_w": pixels}


def walked(layer: Layer[Convolution]) -> Windows:
    """The windows as the kernel sees them."""
    windows, row = windows_of(layer, groups_of(layer)), one_row(layer)
    if not row:
        return windows
    rows, cols = Axis(1, 1, 1, 1, 1, 0), Axis(row["in_w"], row["out_w"], 1, 1, 1, 0)
    return replace(windows, rows=rows, cols=cols, batches=1)
