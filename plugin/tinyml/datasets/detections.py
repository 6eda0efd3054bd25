# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The boxes among the outputs of a detector, by what computed them rather than by their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tinyml.datasets.arrays import real
from tinyml.ir import Array, DType, Graph
from tinyml.ops.boxes.detection import DetectionPostProcess
from tinyml.ops.boxes.nms import NonMaxSuppression


@dataclass(frozen=True)
class Detection:
    """A box by its corners, in the model's own units; -1 for a score or a class that no output has."""

    left: float
    top: float
    right: float
    bottom: float
    score: float = -1.0
    kind: int = -1

    def name(self, labels: Sequence[str]) -> str:
        """What it is a box of."""
        if self.kind < 0:
            return "box"
        return labels[self.kind] if self.kind < len(labels) else f"class {self.kind}"


def detections(graph: Graph, outputs: Mapping[str, Array]) -> list[Detection] | None:
    """What a detector found in one run; None for a model whose outputs are not boxes."""
    enders = [node for node in graph.nodes if isinstance(node.op, (DetectionPostProcess, NonMaxSuppression))]
    if len(enders) != 1:
        return None
    (node,) = enders
    if isinstance(node.op, DetectionPostProcess):
        if not set(node.outputs) <= outputs.keys():
            return None
        corners, kinds, scores, count = (outputs[name] for name in node.outputs)
        rows = range(round(float(count.reshape(-1)[0])))
        return [_of_corners(corners.reshape(-1, 4)[i], scores.flat[i], kinds.flat[i]) for i in rows]
    assert isinstance(node.op, NonMaxSuppression)
    return _counted(graph, outputs, node.op.center)


def _counted(graph: Graph, outputs: Mapping[str, Array], center: bool) -> list[Detection] | None:
    """Outputs with as many rows as boxes were chosen: four real numbers, a score, the number of a class."""
    boxes = scores = kinds = None
    found = -1
    for known in graph.counts:
        tensor, count = graph.tensors[known.output], int(outputs[known.count].reshape(-1)[0])
        array = np.moveaxis(real(outputs[known.output], tensor), known.axis, 0)[:count]
        columns = tensor.elements // max(tensor.shape[known.axis], 1)
        is_real = tensor.dtype.is_float or tensor.quant is not None
        if is_real and columns == 4 and boxes is None:
            boxes, found = array.reshape(-1, 4), count
        elif is_real and columns == 1 and scores is None:
            scores = array.reshape(-1)
        elif tensor.dtype in (DType.INT32, DType.INT64) and columns == 1 and kinds is None:
            kinds = array.reshape(-1)
    if boxes is None:
        return None
    scores = scores if scores is not None and len(scores) == found else np.full(found, -1.0)
    kinds = kinds if kinds is not None and len(kinds) == found else np.full(found, -1)
    make = _of_center if center else _of_corners
    return [make(box, score, kind) for box, score, kind in zip(boxes, scores, kinds, strict=True)]


def _of_corners(box: Array, score: float, kind: float) -> Detection:
    """Two corners opposite each other, y before x."""
    (top, bottom), (left, right) = sorted((box[0], box[2])), sorted((box[1], box[3]))
    return Detection(float(left), float(top), float(right), float(bottom), float(score), int(kind))


def _of_center(box: Array, score: float, kind: float) -> Detection:
    """The middle, x before y, the width and the height."""
    x, y, width, height = (float(value) for value in box)
    half = width / 2, height / 2
    return Detection(x - half[0], y - half[1], x + half[0], y + half[1], float(score), int(kind))
