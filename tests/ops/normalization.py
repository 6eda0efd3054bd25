# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Normalisations: batch, layer, instance, group, RMS, Lp, mean-variance and local response."""

from __future__ import annotations

import numpy as np

from tests.support.cases import Case, Const, onnx_case
from tests.support.data import real
from tinyml.ir import Array

PARAMETERS = [real(3), real(3, seed=1), real(3, seed=2), real(3, low=0.1, seed=3)]
IMAGE = real(2, 3, 4, 5)


def local_response(x: Array, size: int, alpha: float, beta: float, bias: float) -> Array:
    """The formula of the specification, one element at a time (onnx's own reference is wrong here)."""
    y = np.empty_like(x)
    for n, c, i, j in np.ndindex(*x.shape):
        first, last = max(0, c - (size - 1) // 2), min(x.shape[1] - 1, c + -(-(size - 1) // 2))
        squares = sum(float(x[n, k, i, j]) ** 2 for k in range(first, last + 1))
        y[n, c, i, j] = x[n, c, i, j] / (bias + alpha / size * squares) ** beta
    return y


CASES: list[Case] = [
    onnx_case("batch", "BatchNormalization", [IMAGE, *map(Const, PARAMETERS)]),
    onnx_case("batch_epsilon", "BatchNormalization", [IMAGE, *map(Const, PARAMETERS)], epsilon=0.1),
    onnx_case("batch_at_run_time", "BatchNormalization", [IMAGE, *PARAMETERS]),
    onnx_case("batch_vectors", "BatchNormalization", [real(2, 3), *map(Const, PARAMETERS)]),
    onnx_case("batch_old", "BatchNormalization", [IMAGE, *map(Const, PARAMETERS)], opset=7),
    *(
        onnx_case(
            f"layer_{a}",
            "LayerNormalization",
            [IMAGE, Const(real(*IMAGE.shape[a:])), Const(real(*IMAGE.shape[a:], seed=1))],
            axis=a,
        )
        for a in (0, 1, 2, -1)
    ),
    onnx_case("layer_no_bias", "LayerNormalization", [real(2, 5), Const(real(5))], epsilon=0.1),
    onnx_case(
        "layer_statistics", "LayerNormalization", [IMAGE, real(5), real(5, seed=1)], outputs=3, axis=-1
    ),
    onnx_case("instance", "InstanceNormalization", [IMAGE, Const(real(3)), Const(real(3, seed=1))]),
    onnx_case("instance_series", "InstanceNormalization", [real(2, 3, 9), real(3), real(3, seed=1)]),
    onnx_case(
        "group_18",
        "GroupNormalization",
        [real(2, 4, 3, 5), Const(real(2)), Const(real(2, seed=1))],
        num_groups=2,
        opset=18,
    ),
    onnx_case(
        "group_21",
        "GroupNormalization",
        [real(2, 4, 3, 5), Const(real(4)), Const(real(4, seed=1))],
        num_groups=2,
    ),
    onnx_case("rms", "RMSNormalization", [real(2, 3, 5), Const(real(5))], opset=23, oracle="reference"),
    onnx_case(
        "rms_axis",
        "RMSNormalization",
        [real(2, 3, 5), Const(real(3, 5))],
        opset=23,
        oracle="reference",
        axis=1,
    ),
    *(
        onnx_case(f"lp_{p}_{a}", "LpNormalization", [real(2, 3, 4)], p=p, axis=a)
        for p in (1, 2)
        for a in (0, 1, -1)
    ),
    onnx_case(
        "lp_zero", "LpNormalization", [np.array([[0, 0], [3, 4]], np.float32)], opset=22, oracle="reference"
    ),
    onnx_case("mean_variance", "MeanVarianceNormalization", [IMAGE], opset=13),
    onnx_case("mean_variance_axes", "MeanVarianceNormalization", [IMAGE], opset=13, axes=[1, 2]),
    onnx_case("lrn", "LRN", [real(2, 7, 3, 3)], size=3),
    onnx_case(
        "lrn_even",
        "LRN",
        [real(2, 7, 3, 3)],
        size=4,
        alpha=0.2,
        beta=0.5,
        bias=2.0,
        expected=[local_response(real(2, 7, 3, 3), 4, 0.2, 0.5, 2.0)],
    ),
    onnx_case("lrn_one", "LRN", [real(1, 3, 3, 3)], size=1, alpha=0.2),
]
