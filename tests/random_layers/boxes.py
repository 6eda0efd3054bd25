# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The ends of detectors, of random sizes: NonMaxSuppression, DetectionPostProcess and BoxSuppression."""

from __future__ import annotations

import numpy as np

from tinyml.ir import DType, Graph, Node, Op, Quant, Shape, Tensor
from tinyml.ops.boxes.detection import DetectionPostProcess
from tinyml.ops.boxes.nms import NonMaxSuppression
from tinyml.ops.boxes.suppression import BoxSuppression

COUNTS = (1, 2, 3, 5, 8, 13, 16, 31, 60)


def boxes_layer(rng: np.random.Generator, name: str) -> Graph:
    """A graph with one layer. Scores of bytes are often equal; floats are normal, on both sides of zero."""
    count, most, classes = (int(rng.choice(choices)) for choices in (COUNTS, COUNTS, (1, 2, 3, 7)))
    overlap, least = float(rng.choice([0.0, 0.2, 0.5, 0.75])), float(rng.choice([-0.5, 0.0, 0.3]))
    stored = bool(rng.random() < 0.5)
    op: Op
    kind = int(rng.integers(3))
    if kind == 0:
        per_class = min(most, count)
        op = NonMaxSuppression(
            per_class * classes,
            per_class,
            overlap,
            float(rng.choice([least, -9.0])),
            bool(rng.random() < 0.3),
        )
        shapes: list[Shape] = [(1, count, 4), (1, classes, count)]
    elif kind == 1:
        per_class = int(rng.integers(0, most + 1)) if rng.random() < 0.5 else 0
        kinds = 1 if per_class else int(rng.integers(1, classes + 2))
        scales = (10.0, 10.0, 5.0, 5.0)
        op = DetectionPostProcess(classes, most, kinds, per_class, least, overlap, scales)
        shapes = [(1, count, 4 + int(rng.integers(0, 2))), (1, count, classes + int(rng.integers(0, 2)))]
        shapes.append((count, 4))
    else:
        stored, sigma = False, float(rng.choice([0.0, 0.1, 0.5, 1.0]))
        op = BoxSuppression(most, overlap, least, sigma)
        shapes = [(count, 4), (count,)]
    tensors = [_operand(rng, f"{name}_x{i}", shape, stored) for i, shape in enumerate(shapes)]
    outputs = [Tensor.of(f"{name}_y{i}", type_) for i, type_ in enumerate(op.infer(tensors))]
    node = Node(name, op, tuple(t.name for t in tensors), tuple(t.name for t in outputs))
    by_name = {tensor.name: tensor for tensor in (*tensors, *outputs)}
    return Graph("layers", by_name, (node,), node.inputs, node.outputs)


def _operand(rng: np.random.Generator, name: str, shape: Shape, stored: bool) -> Tensor:
    if not stored:
        return Tensor(name, shape, DType.FLOAT32)
    scale = float(np.float32(rng.choice([1 / 256, 0.01, 0.03])))
    return Tensor(name, shape, DType.INT8, Quant.per_tensor(scale, int(rng.integers(-128, 128))))
