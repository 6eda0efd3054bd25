# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The best of some numbers, in the order in which std::partial_sort() leaves equal ones.

TensorFlow Lite ranks the classes of a box with it. It keeps the best numbers in a heap whose root is the
worst of them; a number moves down to a leaf, always to the worse child, and from there upwards.
"""

from __future__ import annotations

from tinyml.ir import Array


def partly_sorted(scores: Array, count: int) -> list[int]:
    """The places of the ``count`` largest numbers, the largest first."""
    heap = list(range(count))
    for at in range(count // 2 - 1, -1, -1):
        _settle(scores, heap, count, at, heap[at])
    for place in range(count, len(scores)):
        if scores[place] > scores[heap[0]]:
            _settle(scores, heap, count, 0, place)
    for last in range(count - 1, 0, -1):
        moved, heap[last] = heap[last], heap[0]
        _settle(scores, heap, last, 0, moved)
    return heap


def _settle(scores: Array, heap: list[int], count: int, at: int, place: int) -> None:
    top, child = at, 2 * at + 2
    while child < count:
        if scores[heap[child]] > scores[heap[child - 1]]:
            child -= 1
        heap[at] = heap[child]
        at, child = child, 2 * child + 2
    if child == count:
        heap[at] = heap[child - 1]
        at = child - 1
    while at > top and scores[heap[(at - 1) // 2]] > scores[place]:
        heap[at] = heap[(at - 1) // 2]
        at = (at - 1) // 2
    heap[at] = place
