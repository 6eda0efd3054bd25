# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""TFLite operators with weights or windows, and reductions: every option, all types."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.random_graphs.tflite_draw import Draw
from tests.support.tflite_writer import Value
from tinyml.ir import Quant

BIASES = (("int64", 0), ("int64", 4), ("int32", 2))
"""Types of the biases of int16 layers, and what LiteRT must be told of them: it reads int64 otherwise."""
ACTIVATIONS = ("float32", "int8", "uint8", "int16")


def _weights(draw: Draw, shape: tuple[int, ...], axis: int, dtype: str) -> tuple[Value, np.ndarray[Any, Any]]:
    if dtype == "float32":
        return draw.constant(draw.values_of(shape, dtype)), np.ones(1)
    channels = dtype != "uint8" and draw.chance(0.6)
    count = shape[axis] if channels else 1
    scales = draw.rng.uniform(0.003, 0.02, count).astype(np.float32)
    zero = int(draw.rng.integers(0, 256)) if dtype == "uint8" else 0
    quant = Quant(tuple(float(s) for s in scales), (zero,) * count, axis if channels else None)
    kind = "uint8" if dtype == "uint8" else "int8"
    low = 0 if kind == "uint8" else -127
    return draw.constant(draw.rng.integers(low, low + 255, shape).astype(kind), quant), scales


def _bias(
    draw: Draw, x: Value, scales: np.ndarray[Any, Any], count: int, wide: str = "int64"
) -> Value | None:
    """None, float, int32 or (int16) of the type ``wide``; sometimes so large that outputs saturate."""
    if draw.chance(0.25):
        return None
    if x.quant is None:
        return draw.constant(draw.values_of((count,), "float32"))
    sums = (np.float32(x.quant.scale) * scales).astype(np.float32)
    quant = Quant(tuple(float(s) for s in sums), (0,) * len(sums), 0 if len(sums) > 1 else None)
    dtype = wide if x.dtype == "int16" else "int32"
    most = draw.pick(3000, 3000, 3000, 1 << 29)
    return draw.constant(draw.rng.integers(-most, most, count).astype(dtype), quant)


def _result(draw: Draw, x: Value, fan: int) -> Value:
    if x.quant is None:
        return draw.output("float32")
    scale = float(np.float32(x.quant.scale * fan**0.5 * draw.pick(0.1, 0.5, 1.0)))
    low = np.iinfo(x.dtype).min
    zero = 0 if x.dtype == "int16" else int(draw.rng.integers(low, low + 256))
    return draw.output(x.dtype, Quant.per_tensor(scale, zero))


def fully_connected(draw: Draw) -> None:
    dtype = draw.pick(*ACTIVATIONS)
    inputs, outputs = int(draw.rng.integers(1, 9)), int(draw.rng.integers(1, 6))
    x = draw.tensor((*draw.shape(1, 1, 2, most=3), inputs), dtype)
    if draw.chance(0.25):  # computed weights
        kind = dtype if dtype in ("float32", "uint8") else "int8"
        zero = draw.pick(0, 0, 7)
        quant = None if kind == "float32" else Quant.per_tensor(0.01, zero)
        w, scales = draw.tensor((outputs, inputs), kind, quant), np.asarray([0.01], np.float32)
    else:
        w, scales = _weights(draw, (outputs, inputs), 0, dtype)
    wide, number = draw.pick(*BIASES)
    bias = _bias(draw, x, scales, outputs, wide)
    operands = [x, w, bias] if bias is not None or draw.chance(0.5) else [x, w]
    fields: dict[str, Any] = {"FusedActivationFunction": draw.activation, "KeepNumDims": draw.chance(0.5)}
    fields["QuantizedBiasType"] = number
    draw.call("FULLY_CONNECTED", operands, [_result(draw, x, inputs)], "FullyConnectedOptions", **fields)


def convolution(draw: Draw) -> None:
    dtype, depthwise = draw.pick(*ACTIVATIONS), draw.chance(0.5)
    x = draw.tensor(
        (draw.pick(1, 1, 2), *(int(e) for e in draw.rng.integers(1, 8, 2)), draw.pick(1, 2, 3, 4)), dtype
    )
    kernel = tuple(int(k) for k in draw.rng.integers(1, 4, 2))
    multiplier = draw.pick(1, 1, 2, 3)
    outputs = x.shape[3] * multiplier if depthwise else int(draw.rng.integers(1, 6))
    groups = draw.pick(1, 1, 1, x.shape[3])
    shape = (1, *kernel, outputs) if depthwise else (outputs * groups, *kernel, x.shape[3] // groups)
    w, scales = _weights(draw, shape, 3 if depthwise else 0, dtype)
    count = shape[3] if depthwise else shape[0]
    fields = {
        "Padding": draw.pick(0, 1),
        "StrideH": draw.pick(1, 2, 3),
        "StrideW": draw.pick(1, 2),
        "DilationHFactor": draw.pick(1, 1, 2),
        "DilationWFactor": draw.pick(1, 1, 2),
        "FusedActivationFunction": draw.activation,
    }
    name, table = (
        ("DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions") if depthwise else ("CONV_2D", "Conv2DOptions")
    )
    wide, number = draw.pick(*BIASES)
    if depthwise:
        fields["DepthMultiplier"], wide = multiplier, "int64"
    else:
        fields["QuantizedBiasType"] = number
    bias = _bias(draw, x, scales, count, wide)
    operands = [x, w, bias] if bias is not None or depthwise else [x, w]
    draw.call(name, operands, [_result(draw, x, int(np.prod(kernel)))], table, **fields)


def transposed(draw: Draw) -> None:
    dtype = draw.pick(*ACTIVATIONS)
    x = draw.tensor((1, *(int(e) for e in draw.rng.integers(1, 5, 2)), draw.pick(1, 2, 3)), dtype)
    kernel = [int(k) for k in draw.rng.integers(1, 4, 2)]
    strides, padding = [draw.pick(1, 2, 3) for _ in range(2)], draw.pick(0, 1)
    outputs = int(draw.rng.integers(1, 4))
    w, scales = _weights(draw, (outputs, *kernel, x.shape[3]), 0, dtype)
    sizes = [
        e * s - int(draw.rng.integers(0, s))
        if padding == 0
        else (e - 1) * s + k + int(draw.rng.integers(0, s))
        for e, s, k in zip(x.shape[1:3], strides, kernel, strict=True)
    ]
    wide, number = draw.pick(*BIASES)
    bias = _bias(draw, x, scales, outputs, wide)
    operands: list[Value | None] = [draw.ints([1, *sizes, outputs]), w, x]
    fields = {"Padding": padding, "StrideH": strides[0], "StrideW": strides[1]}
    fields["QuantizedBiasType"] = number
    if draw.chance(0.5):
        fields["FusedActivationFunction"] = draw.activation
    y = _result(draw, x, x.shape[3])
    draw.call("TRANSPOSE_CONV", [*operands, *([bias] if bias else [])], [y], "TransposeConvOptions", **fields)


def pool(draw: Draw) -> None:
    dtype = draw.pick(*ACTIVATIONS)
    name = draw.pick("MAX_POOL_2D", "AVERAGE_POOL_2D", "AVERAGE_POOL_2D", "L2_POOL_2D")
    dtype = "float32" if name == "L2_POOL_2D" else dtype
    x = draw.tensor((draw.pick(1, 2), *(int(e) for e in draw.rng.integers(1, 8, 2)), draw.pick(1, 3)), dtype)
    fields = {
        "Padding": draw.pick(0, 1),
        "StrideH": draw.pick(1, 2, 3),
        "StrideW": draw.pick(1, 2),
        "FilterHeight": int(draw.rng.integers(1, 4)),
        "FilterWidth": int(draw.rng.integers(1, 4)),
        "FusedActivationFunction": draw.activation,
    }
    draw.call(name, [x], [draw.output(dtype, like=x)], "Pool2DOptions", **fields)


def reduction(draw: Draw) -> None:
    name = draw.pick(
        "MEAN", "MEAN", "SUM", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "REDUCE_ANY", "REDUCE_ALL"
    )
    dtype = draw.pick("float32", "int8", "uint8", "int16", "int32", "int64")
    if name == "SUM" and dtype in ("int8", "uint8", "int16"):
        dtype = "int32"  # LiteRT's reference kernel adds bytes in 8 bits, and something else for int16
    if name == "REDUCE_PROD" and dtype in ("int8", "uint8", "int16"):
        dtype = "float32"  # we multiply in float32, and LiteRT rounds after every factor
    dtype = "bool" if name in ("REDUCE_ANY", "REDUCE_ALL") else dtype
    x = draw.tensor(
        draw.shape(1, 2, 3, 4), dtype, limits=(-4, 4) if name == "REDUCE_PROD" and dtype == "int32" else None
    )
    count = int(draw.rng.integers(0, len(x.shape) + 1))
    axes = [int(a) for a in draw.rng.integers(-len(x.shape), len(x.shape), count)]
    y = draw.output(dtype, like=x if name in ("REDUCE_MAX", "REDUCE_MIN") or draw.chance(0.3) else None)
    draw.call(name, [x, draw.ints(axes)], [y], "ReducerOptions", KeepDims=draw.chance(0.5))


def matmul(draw: Draw) -> None:
    dtype = draw.pick("float32", "int8", "int8", "int16", "int32")
    lead = draw.shape(1, 2, most=3)
    rows, inner, columns = (int(e) for e in draw.rng.integers(1, 6, 3))
    turned = draw.chance(0.4), draw.chance(0.4)
    a = draw.tensor((*lead, *((inner, rows) if turned[0] else (rows, inner))), dtype)
    b = draw.tensor((*lead, *((columns, inner) if turned[1] else (inner, columns))), dtype)
    result = draw.pick(dtype, dtype, "int32") if dtype == "int8" else dtype
    draw.call(
        "BATCH_MATMUL", [a, b], [draw.output(result)], "BatchMatMulOptions", AdjX=turned[0], AdjY=turned[1]
    )


def resize(draw: Draw) -> None:
    name = draw.pick("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR")
    bilinear = name == "RESIZE_BILINEAR"  # of uint8: see test_uint8_resize.py
    dtype = draw.pick("float32", "int8", "int16", "int8" if bilinear else "uint8")
    x = draw.tensor((draw.pick(1, 2), *(int(e) for e in draw.rng.integers(1, 6, 2)), draw.pick(1, 3)), dtype)
    sizes = draw.ints([int(e) for e in draw.rng.integers(1, 9, 2)])
    table = "ResizeBilinearOptions" if name == "RESIZE_BILINEAR" else "ResizeNearestNeighborOptions"
    fields = {"AlignCorners": draw.chance(0.4), "HalfPixelCenters": draw.chance(0.4)}
    draw.call(name, [x, sizes], [draw.output(dtype, like=x)], table, **fields)


LAYERS = (
    fully_connected,
    fully_connected,
    convolution,
    convolution,
    transposed,
    pool,
    pool,
    reduction,
    reduction,
    matmul,
    resize,
)
