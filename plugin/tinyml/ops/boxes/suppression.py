# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""BoxSuppression: of boxes that overlap, the best; with a sigma, the others lose part of their score.

It is TensorFlow Lite's NonMaxSuppressionV4 and V5, in its order of arithmetic. A box that was chosen goes
back into the queue there: its next turn finds it equal to itself and drops it. A box without an area
overlaps nothing, not even itself, and is chosen again and again.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Layer, Op, Tensor, TensorType, given
from tinyml.ops.boxes.priority_queue import Entry, PriorityQueue
from tinyml.ops.shared.operands import numbers_from, of_type, present

OVERLAP, SCORE = 2, 3  # inputs that may arrive at run time
ZERO = np.float32(0)


def boxes_and_their_scores(layer: Layer) -> bool:
    """Boxes have the shape (boxes, 4), scores (boxes); there is at least one."""
    boxes, scores = layer.input(0).shape, layer.input(1).shape
    return len(scores) == 1 and scores[0] > 0 and boxes == (scores[0], 4)


def single_thresholds(layer: Layer) -> bool:
    """The thresholds are single numbers."""
    return all(not layer.has_input(i) or layer.input(i).elements == 1 for i in (OVERLAP, SCORE))


@dataclass(frozen=True)
class BoxSuppression(Op):
    """Inputs: boxes (n, 4), scores (n); then, where the model does not fix them, overlap and score.

    Outputs, with zeros after the last: the boxes that are chosen (rows), their scores (rows), their number.
    """

    operands = (
        present(2),
        *(of_type(index, DType.FLOAT32) for index in range(4)),
        boxes_and_their_scores,
        single_thresholds,
        numbers_from(1, "rows"),
    )
    depends_on_cpu = True  # exp
    rows: int = 1
    overlap: float = 0.5
    score: float = 0.0
    sigma: float = 0.0  # 0: a box is dropped or keeps its score

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        return (
            TensorType((self.rows,), DType.INT32),
            TensorType((self.rows,), DType.FLOAT32),
            TensorType((), DType.INT32),
        )

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        limits = [np.float32(self.overlap), np.float32(self.score)]
        for place, index in enumerate((OVERLAP, SCORE)):
            arrived = inputs[index] if index < len(inputs) else None
            if arrived is not None:
                limits[place] = np.asarray(arrived, np.float32).reshape(-1)[0]
        with np.errstate(all="ignore"):
            found = self._choose(given(inputs, 0), given(inputs, 1), *limits)
        indices, scores = np.zeros(self.rows, np.int32), np.zeros(self.rows, np.float32)
        for row, entry in enumerate(found):
            indices[row], scores[row] = entry.index, entry.score
        return indices, scores, np.array(len(found), np.int32)

    @property
    def scale(self) -> np.float32:
        """Of squared overlaps, in the exponent of the factor that a score is multiplied by."""
        return np.float32(-0.5) / np.float32(self.sigma) if self.sigma > 0 else ZERO

    def _choose(self, boxes: Array, scores: Array, part: np.float32, least: np.float32) -> list[Entry]:
        queue = PriorityQueue()
        for index, score in enumerate(scores):
            if score > least:
                queue.add(Entry(score, index))
        most, found = min(len(queue), self.rows), list[Entry]()
        while len(queue) and len(found) < most:
            entry = queue.take()
            others = [boxes[other.index] for other in found[entry.since :]]
            score = self._lowered(entry.score, boxes[entry.index], others, part, least)
            if score is None or not score > least:
                continue
            after = Entry(score, entry.index, len(found))
            if score == entry.score:
                found.append(after)
            queue.add(after)
        return found

    def _lowered(
        self, score: np.float32, box: Array, others: Sequence[Array], part: np.float32, least: np.float32
    ) -> np.float32 | None:
        """What is left of a score, compared with the latest choice first; None for a box that is dropped."""
        for other in reversed(others):
            share = shared(box, other)
            if share >= part:
                return None
            if self.sigma > 0:
                score = score * np.float32(np.exp(np.float64(self.scale * share * share)))
            if score <= least:
                break
        return score


def shared(a: Array, b: Array) -> np.float32:
    """The common area of two boxes as a part of their joint area. Corners come in any order."""
    (y0, x0, y1, x1), (v0, u0, v1, u1) = _ordered(a), _ordered(b)
    first, second = (y1 - y0) * (x1 - x0), (v1 - v0) * (u1 - u0)
    if first <= ZERO or second <= ZERO:
        return ZERO
    height, width = _least(y1, v1) - _largest(y0, v0), _least(x1, u1) - _largest(x0, u0)
    common = _largest(height, ZERO) * _largest(width, ZERO)
    return np.float32(common / (first + second - common))


def _ordered(box: Array) -> tuple[np.float32, np.float32, np.float32, np.float32]:
    y, x, v, u = box
    return _least(y, v), _least(x, u), _largest(y, v), _largest(x, u)


def _least(a: np.float32, b: np.float32) -> np.float32:
    """As std::min() treats NaN: the first, unless the second is less."""
    return b if b < a else a


def _largest(a: np.float32, b: np.float32) -> np.float32:
    return b if a < b else a
