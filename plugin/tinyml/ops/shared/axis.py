# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The number of an axis, as files write it."""

from __future__ import annotations


def from_front(axis: float, rank: int) -> int:
    """``axis`` counted from the front; files also count from the end, with negative numbers."""
    if axis != int(axis) or not -rank <= axis < rank:
        raise ValueError(f"axis {axis:g} is out of range for a tensor with {rank} axes")
    return int(axis) % rank
