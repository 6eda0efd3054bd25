# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Which rows of an input some rows of an output depend on, and the window on a part of the input.

Rows are a ``range``: those from one place on, a step apart. Several readers of a tensor need the smallest
such range that contains the rows of all.
"""

from __future__ import annotations

from math import gcd

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir.hook_types import RowWindow


@dataclass(frozen=True)
class Reading:
    """The rows that windows look at: every ``step``-th from ``first`` to ``last``, some in the padding."""

    first: int
    last: int
    step: int
    inside: range


def joined(one: range | None, other: range) -> range:
    """The smallest range that contains both; None is one without rows."""
    if one is None:
        return other
    step = gcd(one[0] - other[0], _step(one), _step(other))
    return range(min(one[0], other[0]), max(one[-1], other[-1]) + 1, step or 1)


def read_by(window: RowWindow, rows: range) -> Reading | None:
    """What ``rows`` of the output look at; None if all of it is padding.

    Between the rows of a dilated convolution, and between those of which the output keeps only some, there
    may be others that nothing reads.
    """
    step = gcd(_step(rows) * window.stride, window.dilation if window.kernel > 1 else 0) or 1
    first = rows[0] * window.stride - window.pad_top
    last = rows[-1] * window.stride - window.pad_top + (window.kernel - 1) * window.dilation
    inside = range(first % step if first < 0 else first, min(last, window.in_rows - 1) + 1, step)
    return Reading(first, last, step, inside) if inside else None


def part_read(window: RowWindow, rows: range, given: range) -> range:
    """The part without gaps of the ``given`` rows of an input that contains all that are read."""
    reading = read_by(window, rows)
    assert reading is not None, "layers that read only padding stay as they are"
    inside = reading.inside
    return given[given.index(inside[0]) : given.index(inside[-1]) + 1]


def window_on(window: RowWindow, rows: range, given: range) -> RowWindow:
    """The window that computes ``rows`` of the output from ``given`` rows, of which it reads the first."""
    reading = read_by(window, rows)
    assert reading is not None, "layers that read only padding stay as they are"
    step = given.step if len(given) > 1 else reading.step
    return RowWindow(
        window.kernel,
        _step(rows) * window.stride // step or 1,
        window.dilation // step if window.kernel > 1 else 1,
        (given[0] - reading.first) // step,
        len(given),
        len(rows),
    )


def _step(rows: range) -> int:
    """0 for a single row, which is on any grid."""
    return rows.step if len(rows) > 1 else 0
