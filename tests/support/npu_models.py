# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Small int8 TFLite models for an NPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from tests.support.tflite_writer import Call, Part, Value, write
from tinyml.ir import Quant

Q = Quant((0.05,), (3,))
SHAPE = (1, 8, 8, 8)
DEPTHWISE = "DepthwiseConv2DOptions"


def value(name: str, dtype: str = "int8", shape: tuple[int, ...] = SHAPE) -> Value:
    return Value(name, shape, dtype, None if dtype == "float32" else Q)


def conv(x: str, y: str, seed: int, inputs: int = 8, outputs: int = 8) -> tuple[list[Value], Call]:
    """A 3x3 convolution with a ReLU, and its constants."""
    rng = np.random.default_rng(seed)
    scales, zeros = tuple(0.002 * (channel + 1) for channel in range(outputs)), (0,) * outputs
    weights = rng.integers(-127, 128, (outputs, 3, 3, inputs)).astype(np.int8)
    bias = rng.integers(-500, 500, outputs).astype(np.int32)
    constants = [
        Value.constant(f"{y}/w", weights, Quant(scales, zeros, 0)),
        Value.constant(f"{y}/b", bias, Quant(tuple(0.05 * s for s in scales), zeros, 0)),
    ]
    fields = {"Padding": 0, "StrideW": 1, "StrideH": 1, "DilationWFactor": 1, "DilationHFactor": 1}
    call = Call(
        "CONV_2D", [x, f"{y}/w", f"{y}/b"], [y], "Conv2DOptions", {**fields, "FusedActivationFunction": 1}
    )
    return constants, call


def saved(
    folder: Path,
    *parts: tuple[Sequence[Value], Call],
    inputs: Sequence[str] = ("x",),
    outputs: Sequence[str] = ("y",),
) -> Path:
    """A model of these operators: every tensor that is not declared is int8."""
    declared = {v.name: v for values, _ in parts for v in values}
    used = [name for _, call in parts for name in (*call.inputs, *call.outputs)]
    values = [declared.get(name) or value(name) for name in dict.fromkeys(used)]
    path = folder / "model.tflite"
    path.write_bytes(write(Part(values, [call for _, call in parts], list(inputs), list(outputs))))
    return path


def in_between(folder: Path) -> Path:
    """conv -> reverse, which Vela refuses for every NPU -> conv; the first result is an output, too."""
    length = Value.constant("length", np.array([5], np.int32))
    fields = {"SeqDim": 2, "BatchDim": 0}
    reverse = ([length], Call("REVERSE_SEQUENCE", ["a", "length"], ["b"], "ReverseSequenceOptions", fields))
    return saved(folder, conv("x", "a", 1), reverse, conv("b", "y", 2), outputs=("y", "a"))


def one_operator(folder: Path, kind: str) -> Path:
    """A model of one operator. All tensors have the same scale."""
    window = {"Padding": 0, "StrideW": 2, "StrideH": 2, "FilterWidth": 3, "FilterHeight": 3}
    if kind == "conv":
        return saved(folder, conv("x", "y", 1))
    if kind == "depthwise":
        values, call = conv("x", "y", 1)
        weights = np.random.default_rng(4).integers(-127, 128, (1, 3, 3, 8)).astype(np.int8)
        quant = values[0].quant
        assert quant is not None
        values[0] = Value.constant("y/w", weights, replace(quant, axis=3))
        fields = {**call.fields, "DepthMultiplier": 1}
        return saved(
            folder, (values, replace(call, op_type="DEPTHWISE_CONV_2D", table=DEPTHWISE, fields=fields))
        )
    if kind in ("max", "average"):
        fields = window if kind == "max" else {**window, "Padding": 1}
        y = value("y", shape=(1, 4, 4, 8) if kind == "max" else (1, 3, 3, 8))
        return saved(folder, ([y], Call(f"{kind.upper()}_POOL_2D", ["x"], ["y"], "Pool2DOptions", fields)))
    if kind == "relu":
        return saved(folder, ([], Call("RELU", ["x"], ["y"])))
    if kind == "leaky":
        call = Call("LEAKY_RELU", ["x"], ["y"], "LeakyReluOptions", {"Alpha": 0.1})
        return saved(folder, ([], call))
    if kind == "logistic":
        return saved(
            folder, ([Value("y", SHAPE, "int8", Quant((1 / 256,), (-128,)))], Call("LOGISTIC", ["x"], ["y"]))
        )
    if kind == "slice":
        places = {"begin": [0, 2, 1, 0], "size": [1, 5, 7, 8]}
        constants = [Value.constant(what, np.array(numbers, np.int32)) for what, numbers in places.items()]
        y = value("y", shape=(1, 5, 7, 8))
        return saved(folder, ([*constants, y], Call("SLICE", ["x", "begin", "size"], ["y"], "SliceOptions")))
    if kind == "softmax":
        y = Value("y", SHAPE, "int8", Quant((1 / 256,), (-128,)))
        return saved(folder, ([y], Call("SOFTMAX", ["x"], ["y"], "SoftmaxOptions", {"Beta": 1.0})))
    other = Value.constant("c", np.random.default_rng(4).integers(-128, 128, SHAPE).astype(np.int8), Q)
    table = {"add": "AddOptions", "mul": "MulOptions", "minimum": "MaximumMinimumOptions"}[kind]
    return saved(folder, ([other], Call(kind.upper(), ["x", "c"], ["y"], table)))
