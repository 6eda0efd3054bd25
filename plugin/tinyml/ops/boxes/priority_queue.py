# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A queue of boxes by score that gives equal scores in the order of GCC's std::priority_queue.

TensorFlow Lite compares scores alone, so its heap decides which of two equal ones comes first. An entry that
is taken leaves a hole, which moves down to a leaf, to the second child unless it is worse; the last entry
fills it and rises. ``runtime/boxes/queue.h`` is the same in C.
"""

from __future__ import annotations

from dataclasses import field

import numpy as np

from tinyml.base.lazy_dataclass import dataclass


@dataclass(frozen=True)
class Entry:
    """A box, and how many of those chosen so far it was compared with."""

    score: np.float32
    index: int
    since: int = 0


@dataclass
class PriorityQueue:
    heap: list[Entry] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.heap)

    def add(self, entry: Entry) -> None:
        self.heap.append(entry)
        self._rise(len(self.heap) - 1, entry)

    def take(self) -> Entry:
        """The best entry, which leaves."""
        heap = self.heap
        best, last = heap[0], heap.pop()
        if not heap:
            return best
        at, child = 0, 1
        while child < len(heap):
            if child + 1 < len(heap) and not heap[child + 1].score < heap[child].score:
                child += 1
            heap[at] = heap[child]
            at, child = child, 2 * child + 1
        self._rise(at, last)
        return best

    def _rise(self, at: int, entry: Entry) -> None:
        while at > 0 and self.heap[(at - 1) // 2].score < entry.score:
            self.heap[at] = self.heap[(at - 1) // 2]
            at = (at - 1) // 2
        self.heap[at] = entry
