# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The types that hooks of ``Op`` return to passes and to the planner."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt

from tinyml.base.lazy_dataclass import dataclass


@dataclass(frozen=True)
class RowWindow:
    """How a window moves along one axis of its input, and the number of rows.

    A row is a slice at one place of that axis: a row of an image, or a column of a tensor of height 1.
    """

    kernel: int
    stride: int
    dilation: int
    pad_top: int
    in_rows: int
    out_rows: int

    def read(self, first: int, end: int) -> tuple[int, int]:
        """The input rows that output rows from ``first`` to before ``end`` look at, padding included."""
        return first * self.stride - self.pad_top, (end - 1) * self.stride - self.pad_top + self.span

    @property
    def span(self) -> int:
        """Rows from the first to the last that a window looks at."""
        return (self.kernel - 1) * self.dilation + 1

    @property
    def pad_bottom(self) -> int:
        """How far the last window reaches beyond the input."""
        return max(0, (self.out_rows - 1) * self.stride - self.pad_top + self.span - self.in_rows)

    def inside(self, row: int) -> int:
        return min(max(row, 0), self.in_rows)

    @staticmethod
    def row_by_row(rows: int) -> RowWindow:
        """Each output row depends on the input row at its place."""
        return RowWindow(1, 1, 1, 0, rows, rows)


def moved_along(axis: int, pair: Sequence[int], value: int) -> tuple[int, int]:
    """A stride or dilation for each spatial axis of NHWC windows, with another one along axis 1 or 2."""
    return (value, pair[1]) if axis == 1 else (pair[0], value)


def padded_along(axis: int, pads: Sequence[int], before: int, after: int) -> tuple[int, int, int, int]:
    """The padding of NHWC windows (top, left, bottom, right), with other padding along axis 1 or 2."""
    top, left, bottom, right = pads
    return (before, left, after, right) if axis == 1 else (top, before, bottom, after)


@dataclass(frozen=True, eq=False)
class Affine:
    """y = x * factor + offset, with one factor and one offset per channel."""

    operand: int  # which input x is
    factor: npt.NDArray[Any]
    offset: npt.NDArray[Any]


@dataclass(frozen=True)
class Steps:
    """The output with all steps of a sequence, and the one with the elements of the last step, in order."""

    all: int  # which output
    last: int
    offset: int  # of the last step in the output with all of them, in elements


@dataclass(frozen=True)
class Border:
    """Zeros around the spatial axes of an input: how many before and after each axis."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    not_negative: bool = False  # whether the elements inside the border are known to be 0 or more

    def added_to(self, pads: tuple[int, ...]) -> tuple[int, ...] | None:
        """Padding before each axis, then after each, with the border; None if there are other axes."""
        widths = (*self.before, *self.after)
        if len(widths) != len(pads):
            return None
        return tuple(own + more for own, more in zip(pads, widths, strict=True))
