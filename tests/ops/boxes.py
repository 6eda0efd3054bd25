# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""NonMaxSuppression: overlaps, equal scores, several batches and classes, limits that arrive."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import helper

from tests.support.cases import Case, Const, onnx_case, onnx_nodes_case, op_case
from tests.support.cases import Stored as Bytes
from tinyml.ir import Array, Quant
from tinyml.ops.boxes.detection import DetectionPostProcess
from tinyml.ops.boxes.nms import NonMaxSuppression
from tinyml.ops.boxes.suppression import BoxSuppression


def boxes(seed: int, *shape: int) -> Array:
    """Two corners each, in any order."""
    rng = np.random.default_rng(seed)
    return rng.uniform(0, 1, (*shape, 4)).astype(np.float32)


def steps(seed: int, *shape: int, levels: int = 6) -> Array:
    """Scores many of which are equal."""
    return (np.random.default_rng(seed).integers(0, levels, shape) / levels).astype(np.float32)


def number(value: int) -> Array:
    return np.array([value], np.int64)


def real(value: float) -> Array:
    return np.array([value], np.float32)


def nms(
    name: str, seed: int, shape: tuple[int, int, int], *limits: Array | Const | None, **attr: Any
) -> Case:
    batches, classes, count = shape
    scores = steps(seed + 1, batches, classes, count)
    return onnx_case(
        name, "NonMaxSuppression", [boxes(seed, batches, count), scores, *limits], opset=11, **attr
    )


LIMITS = (Const(number(5)), Const(real(0.3)), Const(real(0.2)))
EDGES = np.array([[0, 0, 1, 1], [0, 0, 1, 0.5], [0, 0, 0, 0], [1, 1, 0, 0], [0.5, 0, 1, 1]], np.float32)


def bytes_case(name: str, center: bool) -> Case:
    rng = np.random.default_rng(7)
    parts = [
        Bytes(rng.integers(-128, 128, (1, 20, 4)).astype(np.int8), Quant.per_tensor(0.01, -30)),
        Bytes(rng.integers(-8, 8, (1, 3, 20)).astype(np.int8), Quant.per_tensor(0.05, -4)),
    ]
    return op_case(name, NonMaxSuppression(30, 10, 0.4, 0.1, center), parts)


def detection(name: str, per_class: int, kinds: int, quantized: bool) -> Case:
    rng = np.random.default_rng(9)
    op = DetectionPostProcess(4, 6, kinds, per_class, 0.3, 0.5, (10.0, 10.0, 5.0, 5.0))
    if quantized:
        quants = (Quant.per_tensor(0.03, 2), Quant.per_tensor(1 / 256, -128), Quant.per_tensor(1 / 255, -128))
        shapes = ((1, 30, 5), (1, 30, 5), (30, 4))
        stored = [
            Bytes(rng.integers(-120, 121, s).astype(np.int8), q) for s, q in zip(shapes, quants, strict=True)
        ]
        return op_case(name, op, stored)
    anchors = rng.uniform(0.1, 0.6, (30, 4)).astype(np.float32)
    return op_case(name, op, [rng.normal(0, 1, (1, 30, 4)).astype(np.float32), steps(3, 1, 30, 4), anchors])


def yolo_end() -> Case:
    """What exporters put after NonMaxSuppression: the chosen boxes with their class and score."""
    chosen = helper.make_node("NonMaxSuppression", ["boxes", "scores", "most", "iou", "least"], ["chosen"])
    nodes = [
        chosen,
        helper.make_node("Gather", ["chosen", "two"], ["place"], axis=1),
        helper.make_node("Gather", ["chosen", "one"], ["kind"], axis=1),
        helper.make_node("Gather", ["rows", "place"], ["box"], axis=0),
        helper.make_node("Reshape", ["scores", "flat"], ["scored"]),
        helper.make_node("Slice", ["chosen", "from", "to", "axes"], ["where"]),
        helper.make_node("GatherND", ["scored", "where"], ["score"]),
        helper.make_node("Unsqueeze", ["score", "axes"], ["scores_out"]),
        helper.make_node("Unsqueeze", ["kind", "axes"], ["kinds"]),
        helper.make_node("Cast", ["kinds"], ["classes"], to=1),
        helper.make_node("Concat", ["box", "classes", "scores_out"], ["detections"], axis=1),
    ]
    whole = boxes(21, 1, 25)
    constants = {
        "most": number(4),
        "iou": real(0.4),
        "least": real(0.3),
        "two": np.array(2, np.int64),
        "one": np.array(1, np.int64),
        "flat": np.array([3, 25], np.int64),
        "from": number(1),
        "to": number(3),
        "axes": number(1),
    }
    operands = {"boxes": whole, "scores": steps(22, 1, 3, 25), "rows": whole[0] * 96}
    return onnx_nodes_case(
        "yolo_end",
        nodes,
        {**operands, **{name: Const(array) for name, array in constants.items()}},
        ["detections", "chosen"],
        opset=13,
    )


def suppression(
    name: str, seed: int, count: int, op: BoxSuppression, *limits: Array, levels: int = 1 << 20
) -> Case:
    """With few levels, many scores are equal."""
    return op_case(name, op, [boxes(seed, count), steps(seed + 1, count, levels=levels), *limits])


CASES: list[Case] = [
    nms("fixed", 1, (1, 1, 12), *LIMITS),
    nms("classes", 2, (2, 3, 20), *LIMITS),
    nms("center", 3, (1, 2, 20), *LIMITS, center_point_box=1),
    nms("at_run_time", 4, (1, 2, 20), number(4), real(0.5), real(0.3)),
    nms("no_score", 5, (1, 2, 9), number(9), real(0.1)),
    nms("none", 6, (1, 1, 5)),
    nms("more_than_there_are", 7, (1, 2, 6), Const(number(1000)), Const(real(1.0))),
    nms("strict", 8, (1, 1, 10), Const(number(10)), Const(real(1.0)), Const(real(1 / 6))),
    onnx_case("edges", "NonMaxSuppression", [EDGES[None], steps(9, 1, 1, 5), *LIMITS], opset=11),
    nms("many", 10, (1, 1, 200), Const(number(200)), Const(real(0.2)), Const(real(0.1))),
    bytes_case("bytes", center=False),
    bytes_case("bytes_center", center=True),
    detection("together", 0, 1, quantized=False),
    detection("by_class", 3, 1, quantized=False),
    detection("two_classes", 0, 2, quantized=False),
    detection("more_kinds_than_classes", 0, 5, quantized=False),
    detection("bytes_together", 0, 3, quantized=True),
    detection("bytes_by_class", 5, 1, quantized=True),
    yolo_end(),
    suppression("hard", 31, 40, BoxSuppression(12, 0.3, 0.2)),
    suppression("hard_equal", 32, 40, BoxSuppression(12, 0.3, 0.2), levels=4),
    suppression("hard_more_rows", 33, 9, BoxSuppression(30, 0.5, -1.0), levels=4),
    suppression("hard_limits", 34, 20, BoxSuppression(6), np.float32(0.4), np.float32(0.1)),
    op_case("hard_edges", BoxSuppression(9, 0.3, 0.0), [EDGES, steps(35, 5)]),
    suppression("soft", 36, 40, BoxSuppression(25, 1.0, 0.05, 0.5)),
    suppression("soft_equal", 37, 40, BoxSuppression(25, 0.6, 0.1, 0.3), levels=4),
    suppression("soft_limits", 38, 20, BoxSuppression(9, sigma=0.5), np.float32(0.9), np.float32(0.1)),
    op_case("soft_edges", BoxSuppression(9, 1.0, 0.0, 0.5), [EDGES, steps(39, 5)]),
]
