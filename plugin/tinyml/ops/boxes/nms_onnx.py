# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The reader of ONNX's NonMaxSuppression."""

from __future__ import annotations

from collections.abc import Sequence

from tinyml.base.errors import ModelError
from tinyml.ir import Layer, Tensor
from tinyml.ops.boxes.nms import OVERLAP, PER_CLASS, SCORE, NonMaxSuppression
from tinyml.ops.framework.reading import MALFORMED, Builder, OnnxNode, onnx_op


def _fixed(tensor: Tensor | None) -> float | None:
    """The value of an operand that the compiler knows."""
    return None if tensor is None or tensor.data is None else tensor.data.reshape(-1)[0].item()


@onnx_op("NonMaxSuppression")
def read_onnx(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    boxes, scores = node.input(0), node.input(1)
    limit, overlap, score = (node.optional(i) for i in (PER_CLASS, OVERLAP, SCORE))
    count = build.count_along(boxes, 1) or build.count_along(scores, 2)
    per_class = 0 if limit is None else _fixed(limit)
    part = 0.0 if overlap is None else _fixed(overlap)
    if part is not None and not 0 <= part <= 1:
        raise ModelError(f"NonMaxSuppression {node.name!r}: iou_threshold is {part}", MALFORMED)
    if len(boxes.shape) != 3 or len(scores.shape) != 3:
        raise ModelError(f"NonMaxSuppression {node.name!r}: boxes and scores need three axes", MALFORMED)
    extent = boxes.shape[1]
    most = extent if per_class is None else min(max(int(per_class), 0), extent)
    given = (limit, overlap, score)
    run_time = [t if t is not None and t.data is None else None for t in given]
    least = _fixed(score)
    center = bool(node.attr("center_point_box", 0))
    rows = most * scores.shape[0] * scores.shape[1]
    op = NonMaxSuppression(rows, most, float(part or 0.0), least, center)
    if all(t is None or t.data is not None for t in (boxes, scores, *given)) and count is None:
        found = op.choose(Layer("", op, (boxes, scores), ()), [boxes.value, scores.value])
        return [build.constant(found)]
    op = NonMaxSuppression(build.bound(rows), most, float(part or 0.0), least, center)
    indices, number = build.add(op, [boxes, scores, *run_time, count], counts=True)
    build.count(indices, 0, number)
    return [indices]
