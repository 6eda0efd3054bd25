# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""More operators for random TFLite models of bytes, which round their scales in ways of their own."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.random_graphs.tflite_draft import Draft, pick
from tests.support.tflite_writer import Value

SAME, VALID = 0, 1


def _other_scale(draft: Draft, rng: Any, x: Value) -> float:
    """Of an output that is close to its input: half of them a power of two away, so that ties are many."""
    return draft.scale(x) * float(pick(rng, 0.5, 2.0, rng.uniform(0.5, 1.6), rng.uniform(0.5, 1.6)))


def relu_rescaled(draft: Draft, rng: Any, x: Value) -> None:
    y = draft.result(x.shape, _other_scale(draft, rng, x))
    draft.call(pick(rng, "RELU", "RELU6", "RELU_N1_TO_1"), [x], y)


def leaky_relu(draft: Draft, rng: Any, x: Value) -> None:
    y = draft.result(x.shape, _other_scale(draft, rng, x))
    draft.call("LEAKY_RELU", [x], y, "LeakyReluOptions", Alpha=float(pick(rng, 0.1, 0.25, 0.5)))


def hard_swish(draft: Draft, rng: Any, x: Value) -> None:
    draft.call("HARD_SWISH", [x], draft.result(x.shape, draft.scale(x) * float(rng.uniform(0.7, 1.5))))


def prelu(draft: Draft, rng: Any, x: Value) -> None:
    alpha = draft.byte_constant(rng, (1, 1, x.shape[3]), float(rng.uniform(0.002, 0.008)))
    draft.call("PRELU", [x, alpha], draft.result(x.shape, _other_scale(draft, rng, x)))


def transpose_conv(draft: Draft, rng: Any, x: Value) -> None:
    kernel, strides = [int(pick(rng, 1, 2, 3)) for _ in range(2)], [int(pick(rng, 1, 2)) for _ in range(2)]
    padding, outputs = int(pick(rng, SAME, VALID)), int(pick(rng, 1, 3, 4))
    if padding == SAME:
        extents = [e * s for e, s in zip(x.shape[1:3], strides, strict=True)]
        if any(k < s for k, s in zip(kernel, strides, strict=True)):
            return
    else:
        extents = [(e - 1) * s + k for e, s, k in zip(x.shape[1:3], strides, kernel, strict=True)]
    w, scales = draft.weights(rng, (outputs, *kernel, x.shape[3]), 0, bool(rng.random() < 0.5))
    shape = (1, *extents, outputs)
    y = draft.result(shape, draft.sums_scale(rng, x, scales, kernel[0] * kernel[1] * x.shape[3]))
    operands = [draft.ints(*shape), w, x, draft.bias(rng, x, scales, outputs)]
    options = {"Padding": padding, "StrideH": strides[0], "StrideW": strides[1]}
    draft.call("TRANSPOSE_CONV", operands, y, "TransposeConvOptions", **options)


def resize(draft: Draft, rng: Any, x: Value) -> None:
    sizes = [int(rng.integers(1, 9)) for _ in range(2)]
    y = draft.result((1, *sizes, x.shape[3]), 1, like=x)
    name, table = "RESIZE_NEAREST_NEIGHBOR", "ResizeNearestNeighborOptions"
    if draft.dtype == "int8" and rng.random() < 0.5:  # uint8: tests/host/test_uint8_resize.py
        name, table = "RESIZE_BILINEAR", "ResizeBilinearOptions"
    corners, centres = pick(rng, (False, False), (True, False), (False, True))
    draft.call(name, [x, draft.ints(*sizes)], y, table, AlignCorners=corners, HalfPixelCenters=centres)


def extremum(draft: Draft, rng: Any, x: Value) -> None:
    other = draft.byte_constant(rng, x.shape, draft.scale(x), like=x)
    name = pick(rng, "MAXIMUM", "MINIMUM")
    draft.call(name, [x, other], draft.result(x.shape, 1, like=x), "MaximumMinimumOptions")


def with_constant(draft: Draft, rng: Any, x: Value) -> None:
    """ADD, SUB or MUL with a constant of other scale, one value for each channel."""
    other = draft.byte_constant(rng, (x.shape[-1],), draft.scale(x) * float(pick(rng, 0.5, 2.0, 0.7)))
    name = pick(rng, "ADD", "SUB", "MUL")
    assert other.quant is not None
    product = float(np.float32(draft.scale(x)) * np.float32(other.quant.scale))
    scale = product * 128 if name == "MUL" else draft.scale(x) * 2
    table = {"ADD": "AddOptions", "SUB": "SubOptions", "MUL": "MulOptions"}[name]
    operands = [x, other] if rng.random() < 0.7 else [other, x]
    draft.call(name, operands, draft.result(x.shape, scale), table)


def reduction(draft: Draft, rng: Any, x: Value) -> None:
    name, axes = pick(rng, "MEAN", "REDUCE_MAX"), pick(rng, (1,), (2,), (3,), (1, 2), (1, 2, 3))
    shape = [1 if i in axes else e for i, e in enumerate(x.shape)]
    like = x if name == "REDUCE_MAX" else None
    y = draft.result(tuple(shape), _other_scale(draft, rng, x), like)
    draft.call(name, [x, draft.ints(*axes)], y, "ReducerOptions", KeepDims=True)


def requantize(draft: Draft, rng: Any, x: Value) -> None:
    draft.call("QUANTIZE", [x], draft.result(x.shape, _other_scale(draft, rng, x)), "QuantizeOptions")


MORE_SPATIAL = (
    *(relu_rescaled, leaky_relu, hard_swish, prelu, transpose_conv, transpose_conv, resize, resize),
    *(extremum, with_constant, with_constant, reduction, requantize),
)
MORE_FLAT = (relu_rescaled, leaky_relu, extremum, with_constant, requantize)
