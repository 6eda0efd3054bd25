# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""DetectionPostProcess: boxes that a detector codes relative to anchors, decoded and sorted out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Layer, Op, Tensor, TensorType, given
from tinyml.ops.boxes.nms import plain_or_bytes
from tinyml.ops.boxes.overlap import best_first, chosen
from tinyml.ops.boxes.partial_sort import partly_sorted
from tinyml.ops.shared.operands import numbers_from, present
from tinyml.ops.shared.quant import dequantize


def boxes_scores_anchors(layer: Layer[DetectionPostProcess]) -> bool:
    """Boxes have the shape (1, boxes, at least 4), scores (1, boxes, classes), or one more for the
    background, and anchors (boxes, 4)."""
    boxes, scores, anchors = (layer.input(i).shape for i in range(3))
    fit = len(boxes) == len(scores) == 3 and boxes[0] == scores[0] == 1 and boxes[2] >= 4
    fit = fit and boxes[1] == scores[1] and anchors == (boxes[1], 4)
    return fit and scores[2] - layer.op.classes in (0, 1)


def all_floats_or_bytes(layer: Layer) -> bool:
    """Boxes, scores and anchors are float32, or bytes with a scale each."""
    return plain_or_bytes(*(layer.input(i) for i in range(3)))


def scales_are_positive(layer: Layer[DetectionPostProcess]) -> bool:
    """The four scales are positive."""
    return len(layer.op.scales) == 4 and all(scale > 0 for scale in layer.op.scales)


@dataclass(frozen=True)
class DetectionPostProcess(Op):
    """Inputs: coded boxes (1, n, 4 or more), scores (1, n, classes), anchors (n, 4).

    Outputs, all float32 with zeros after the last: corners (1, most * kinds, 4) as y0, x0, y1, x1; classes
    and scores (1, most * kinds); the number of boxes (1).
    """

    operands = (
        present(3),
        numbers_from(1, "classes", "most", "kinds"),
        numbers_from(0, "per_class"),
        boxes_scores_anchors,
        all_floats_or_bytes,
        scales_are_positive,
    )
    depends_on_cpu = True  # exp
    classes: int = 1
    most: int = 1  # boxes
    kinds: int = 1  # classes for each box
    per_class: int = 0  # 0: boxes suppress others whatever their class; else so many boxes of each class
    score: float = 0.0
    overlap: float = 0.5
    scales: tuple[float, ...] = (1.0, 1.0, 1.0, 1.0)

    def reads_stored(self, inputs: Sequence[Tensor | None]) -> bool:
        return all_floats_or_bytes(Layer("", self, tuple(inputs), ()))

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        rows = self.most * self.kinds
        shapes = ((1, rows, 4), (1, rows), (1, rows), (1,))
        return tuple(TensorType(shape, DType.FLOAT32) for shape in shapes)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        coded, scores, anchors = (_real(layer.input(i), given(inputs, i)) for i in range(3))
        with np.errstate(all="ignore"):
            boxes = self._decoded(coded[0], anchors)
        own = scores[0][:, scores.shape[2] - self.classes :]
        found = self._by_class(boxes, own) if self.per_class else self._together(boxes, own)
        rows = self.most * self.kinds
        corners, classes, best = np.zeros((rows, 4)), np.zeros(rows), np.zeros(rows)
        for row, (box, kind) in found.items():
            corners[row], classes[row], best[row] = boxes[box], kind, own[box, kind]
        parts = (corners[None], classes[None], best[None], np.array([len(self._firsts(found))]))
        return tuple(part.astype(np.float32) for part in parts)

    def _firsts(self, found: dict[int, tuple[int, int]]) -> list[int]:
        """The rows with which boxes begin."""
        return [row for row in found if self.per_class or row % self.kinds == 0]

    def _decoded(self, coded: Array, anchors: Array) -> Array:
        y, x, h, w = (coded[:, i] / np.float32(scale) for i, scale in enumerate(self.scales))
        ya, xa, ha, wa = anchors.T
        y, x = y * ha + ya, x * wa + xa
        h, w = (np.float32(0.5) * np.exp(part) * size for part, size in ((h, ha), (w, wa)))
        return np.stack([y - h, x - w, y + h, x + w], axis=1)

    def _candidates(self, boxes: Array, scores: Array, limit: int) -> list[int]:
        counts = [int(i) for i in np.flatnonzero(scores >= np.float32(self.score))]
        return chosen(boxes, best_first(scores, counts), limit, self.overlap)

    def _together(self, boxes: Array, scores: Array) -> dict[int, tuple[int, int]]:
        """Rows of the output: which box, and which class."""
        kinds = min(self.kinds, self.classes)
        found = {}
        firsts = [_first_best(own) for own in scores]
        top = scores[np.arange(len(scores)), firsts]
        for place, box in enumerate(self._candidates(boxes, top, self.most)):
            best = partly_sorted(scores[box], kinds) if kinds > 1 else [firsts[box]]
            for offset, kind in enumerate(best):
                found[place * self.kinds + offset] = (box, kind)
        return found

    def _by_class(self, boxes: Array, scores: Array) -> dict[int, tuple[int, int]]:
        found: list[tuple[int, int]] = []
        for kind in range(self.classes):
            found += [(box, kind) for box in self._candidates(boxes, scores[:, kind], self.per_class)]
            found = sorted(found, key=lambda pair: -float(scores[pair]))[: self.most]
        return dict(enumerate(found))


def _first_best(scores: Array) -> int:
    """The first of the best scores, by comparisons: NaN is it only if it comes first."""
    best = 0
    for index in range(1, len(scores)):
        if scores[index] > scores[best]:
            best = index
    return best


def _real(tensor: Tensor, array: Array) -> Array:
    return array if tensor.quant is None else dequantize(array, tensor.quant)
