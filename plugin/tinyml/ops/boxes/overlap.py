# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Greedy choice of boxes that do not overlap, in numpy; ``runtime/boxes/overlap.h`` is the same in C."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.ir import Array


def exceeds(a: Array, b: Array, part: float) -> bool:
    """Whether two boxes (y0, x0, y1, x1) have more than a part of their joint area in common."""
    zero = np.float32(0)
    height = min(a[2], b[2]) - max(a[0], b[0])
    width = min(a[3], b[3]) - max(a[1], b[1])
    if not (height > zero and width > zero):
        return False
    first, second = ((box[3] - box[1]) * (box[2] - box[0]) for box in (a, b))
    common = width * height
    joint = first + second - common
    if not (first > zero and second > zero and joint > zero):
        return False
    return bool(common / joint > np.float32(part))


def chosen(boxes: Array, order: Sequence[int], limit: int, part: float) -> list[int]:
    """Boxes in the given order that overlap none before them, at most ``limit``."""
    found: list[int] = []
    with np.errstate(all="ignore"):
        for index in order:
            if len(found) >= limit:
                break
            if not any(exceeds(boxes[other], boxes[index], part) for other in found):
                found.append(index)
    return found


def best_first(scores: Array, candidates: Sequence[int]) -> list[int]:
    """The candidates by their scores; of equal ones the first comes first."""
    return sorted(candidates, key=lambda index: -float(scores[index]))
