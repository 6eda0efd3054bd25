# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The boxes among the outputs of a detector, by what computed them rather than by their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.datasets.arrays import real
from tinyml.ir import Array, DType, Graph, Node
from tinyml.ops.boxes.detection import DetectionPostProcess
from tinyml.ops.boxes.nms import NonMaxSuppression
from tinyml.ops.boxes.suppression import BoxSuppression

ENDERS = (DetectionPostProcess, NonMaxSuppression, BoxSuppression)
INTEGERS = (DType.INT32, DType.INT64)


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
    enders = [node for node in graph.nodes if isinstance(node.op, ENDERS)]
    if len(enders) != 1:
        return None
    (node,) = enders
    if isinstance(node.op, BoxSuppression):
        return _suppressed(graph, node, outputs)
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
        elif tensor.dtype in INTEGERS and columns == 1 and kinds is None:
            kinds = array.reshape(-1)
    if boxes is None:
        return None
    scores = scores if scores is not None and len(scores) == found else np.full(found, -1.0)
    kinds = kinds if kinds is not None and len(kinds) == found else np.full(found, -1)
    make = _of_center if center else _of_corners
    return [make(box, score, kind) for box, score, kind in zip(boxes, scores, kinds, strict=True)]


def _suppressed(graph: Graph, node: Node, outputs: Mapping[str, Array]) -> list[Detection] | None:
    """TFLite's suppression gives places of boxes and their number; the model gathers the rest by them."""
    places, own_scores, number = node.outputs
    gathered = _computed_from(graph, (places, own_scores))
    copies = _computed_from(graph, (places,), lambda reader: len(reader.inputs) == 1)
    counts = [name for name in graph.outputs if name in _computed_from(graph, (number,))]
    if not counts:
        return None
    found: dict[str, Array] = {}
    for name in graph.outputs:
        tensor, rows = graph.tensors[name], graph.tensors[places].elements
        if name not in gathered or name in copies or tensor.elements not in (rows, 4 * rows):
            continue
        is_real = tensor.dtype.is_float or tensor.quant is not None
        if is_real and tensor.shape[-1:] == (4,) and tensor.elements == 4 * rows:
            found.setdefault("boxes", real(outputs[name], tensor).reshape(rows, 4))
        elif tensor.elements == rows and (is_real or tensor.dtype in INTEGERS):
            values = real(outputs[name], tensor) if is_real else outputs[name]
            found.setdefault("scores" if is_real else "kinds", values.reshape(rows))
    if "boxes" not in found:
        return None
    count = int(outputs[counts[0]].reshape(-1)[0])
    scores, kinds = (found.get(key, np.full(count, -1)) for key in ("scores", "kinds"))
    return [_of_corners(found["boxes"][i], scores[i], kinds[i]) for i in range(count)]


def _computed_from(
    graph: Graph, tensors: Sequence[str], through: Callable[[Node], bool] = lambda node: True
) -> set[str]:
    """These tensors and all that nodes compute of them."""
    known = set(tensors)
    for node in graph.nodes:
        if not known.isdisjoint(node.inputs) and through(node):
            known.update(node.outputs)
    return known


def _of_corners(box: Array, score: float, kind: float) -> Detection:
    """Two corners opposite each other, y before x."""
    (top, bottom), (left, right) = sorted((box[0], box[2])), sorted((box[1], box[3]))
    return Detection(float(left), float(top), float(right), float(bottom), float(score), int(kind))


def _of_center(box: Array, score: float, kind: float) -> Detection:
    """The middle, x before y, the width and the height."""
    x, y, width, height = (float(value) for value in box)
    half = width / 2, height / 2
    return Detection(x - half[0], y - half[1], x + half[0], y + half[1], float(score), int(kind))
