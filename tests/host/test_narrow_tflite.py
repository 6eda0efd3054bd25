# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""TFLite weights of two and four bits: the same as with a byte for each weight, here and in LiteRT."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.interpret import interpret
from tests.support.tflite_writer import Call, Part, Value, write
from tinyml.emit.model import Provenance
from tinyml.importers import tflite_graph
from tinyml.ir import Array, Quant
from tinyml.pipeline import Options, compile_graph, optimize

RNG = np.random.default_rng(5)
ORIGIN = Provenance("model.tflite", "0" * 64, "")
FLAT = Quant.per_tensor(0.05, 3)
CONV = {"Padding": 0, "StrideW": 1, "StrideH": 1, "DilationWFactor": 1, "DilationHFactor": 1}
LIMITS = {"int4": (-7, 7), "int2": (-1, 1)}


def ours(content: bytes, x: Array) -> Array:
    graph = tflite_graph.read(Path("model.tflite"), content, {})
    (y,) = interpret(optimize(graph), {graph.inputs[0]: x}).values()
    return y


def theirs(content: bytes, x: Array) -> Array:
    litert = pytest.importorskip("ai_edge_litert.interpreter")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        resolver = litert.OpResolverType.BUILTIN_REF
        runtime = litert.Interpreter(model_content=content, experimental_op_resolver_type=resolver)
    runtime.allocate_tensors()
    runtime.set_tensor(runtime.get_input_details()[0]["index"], x)
    runtime.invoke()
    return np.asarray(runtime.get_tensor(runtime.get_output_details()[0]["index"]))


def layer(op_type: str, dtype: str, per_channel: bool, shape: tuple[int, ...]) -> tuple[Part, Part]:
    """A layer with int8 activations and weights of ``dtype``, and the same with weights of int8."""
    channels = shape[-1] if op_type.startswith("DEPTH") else shape[0]
    axis = len(shape) - 1 if op_type.startswith("DEPTH") else 0
    scales = tuple(RNG.uniform(0.01, 0.1, channels if per_channel else 1).tolist())
    quant = Quant(scales, (0,) * len(scales), axis if per_channel else None)
    low, high = LIMITS[dtype]
    weights = RNG.integers(low, high, shape, endpoint=True).astype(np.int8)
    biases = Quant(tuple(0.05 * s for s in scales), (0,) * len(scales), 0 if per_channel else None)
    ins, outs, options = {
        "CONV_2D": ((1, 6, 5, shape[-1]), (1, 6, 5, channels), ("Conv2DOptions", CONV)),
        "DEPTHWISE_CONV_2D": (
            (1, 6, 5, channels),
            (1, 6, 5, channels),
            ("DepthwiseConv2DOptions", {**CONV, "DepthMultiplier": 1}),
        ),
        "FULLY_CONNECTED": ((3, shape[-1]), (3, channels), ("FullyConnectedOptions", {})),
        "TRANSPOSE_CONV": (
            (1, 6, 5, shape[-1]),
            (1, 12, 10, channels),
            ("TransposeConvOptions", {"Padding": 0, "StrideW": 2, "StrideH": 2}),
        ),
    }[op_type]
    values = [
        Value("x", ins, "int8", FLAT),
        Value("w", shape, dtype, quant, weights),
        Value("b", (channels,), "int32", biases, RNG.integers(-90, 90, channels).astype(np.int32)),
        Value("y", outs, "int8", Quant.per_tensor(0.1, -4)),
    ]
    call = Call(op_type, ["x", "w", "b"], ["y"], *options)
    if op_type == "TRANSPOSE_CONV":
        values.append(Value.constant("shape", np.array(outs, np.int32)))
        call = Call(op_type, ["shape", "w", "x", "b"], ["y"], *options)
    wide = [replace(value, dtype="int8") if value.name == "w" else value for value in values]
    return Part(values, [call], ["x"], ["y"]), Part(wide, [call], ["x"], ["y"])


LAYERS: dict[str, tuple[str, str, bool, tuple[int, ...]]] = {
    "conv": ("CONV_2D", "int4", True, (5, 3, 3, 3)),
    "conv, one scale": ("CONV_2D", "int4", False, (5, 3, 3, 3)),
    "depthwise": ("DEPTHWISE_CONV_2D", "int4", True, (1, 3, 3, 7)),
    "dense": ("FULLY_CONNECTED", "int4", False, (5, 9)),
    "dense, odd": ("FULLY_CONNECTED", "int4", False, (3, 7)),
    "transposed": ("TRANSPOSE_CONV", "int4", True, (5, 4, 3, 3)),
    "dense of two bits": ("FULLY_CONNECTED", "int2", False, (3, 7)),
}

NOT_IN_LITERT = ("transposed", "dense of two bits")
"""LiteRT's reference kernels have these with a byte for each weight only."""


@pytest.mark.parametrize("name", LAYERS)
def test_packed_weights_are_those_of_a_byte_each(name: str) -> None:
    narrow, wide = (write(part) for part in layer(*LAYERS[name]))
    assert len(narrow) < len(wide)
    shape = (3, LAYERS[name][3][-1]) if "dense" in name else (1, 6, 5, LAYERS[name][3][-1])
    x = RNG.integers(-128, 127, shape, endpoint=True).astype(np.int8)
    found = ours(narrow, x)
    np.testing.assert_array_equal(found, ours(wide, x))
    expected = theirs(wide, x)
    if name not in NOT_IN_LITERT:
        np.testing.assert_array_equal(theirs(narrow, x), expected)
    steps = 1 if "dense" in name else 0  # LiteRT's dense layers round once
    assert np.abs(found.astype(int) - expected.astype(int)).max() <= steps


def in_blocks(dtype: str, block: int, half: bool = False, **changes: Any) -> tuple[bytes, Array]:
    """A dense layer on floats with a scale for each block, and its real weights."""
    low, high = LIMITS[dtype]
    stored = RNG.integers(low, high, (6, 64), endpoint=True).astype(np.int8)
    scales = RNG.uniform(0.01, 0.1, (6, 64 // block)).astype(np.float16 if half else np.float32)
    weights = Value("w", (6, 64), dtype, None, stored, blocks=("s", block))
    values = [
        Value("x", (2, 64)),
        replace(weights, **changes),
        Value.constant("s", scales),
        Value("y", (2, 6)),
    ]
    call = Call("FULLY_CONNECTED", ["x", "w", ""], ["y"], "FullyConnectedOptions", {})
    real = stored * np.repeat(scales.astype(np.float32), block, axis=1)
    return write(Part(values, [call], ["x"], ["y"])), real


@pytest.mark.parametrize("dtype", LIMITS)
@pytest.mark.parametrize("half", [False, True])
def test_blocks_are_read_and_stay_packed(dtype: str, half: bool) -> None:
    content, weights = in_blocks(dtype, 32, half)
    x = RNG.normal(0, 1, (2, 64)).astype(np.float32)
    np.testing.assert_allclose(ours(content, x), x @ weights.T, rtol=1e-5, atol=1e-5)
    graph = tflite_graph.read(Path("model.tflite"), content, {})
    assert any("hybrid" in note for note in graph.notes)
    compiled = compile_graph(graph, "net", ORIGIN, Options(target="host"))
    assert [chosen.kernel.name for chosen in compiled.selected] == ["tinyml_dense_f32_s4"]
