# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Functions on integers equal LiteRT's reference kernels for every input, whatever the scales."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.random_graphs.recipe import Model, Recipe
from tests.random_graphs.tflite_model import litert
from tests.support.interpret import interpret
from tests.support.tflite_writer import Call, Part, Value, write
from tinyml.importers import tflite_graph
from tinyml.ir import Array, DType, Quant, Tensor
from tinyml.ops.elementwise import int16_tflite_table
from tinyml.pipeline import optimize

SCALES = {  # of the input; results are close to a tie at powers of two
    "int8": (*(2.0**e for e in range(-12, 1)), 0.0123, 0.0778, 0.31),
    "int16": (*(2.0**e for e in range(-18, -7, 3)), 3.1e-5, 7.7e-4),
}


def function(
    op_type: str, x: Array, scale: float, y: Quant, table: str = "", off: float = 0, **options: Any
) -> None:
    """Whether both compute the same of ``x``; ``off``: the share of results that may be one step off."""
    zero = -128 if x.dtype == np.int8 and op_type != "SOFTMAX" else 0
    values = [
        Value("x", x.shape, x.dtype.name, Quant.per_tensor(float(np.float32(scale)), zero)),
        Value("y", x.shape, x.dtype.name, y),
    ]
    content = write(Part(values, [Call(op_type, ["x"], ["y"], table, options)], ["x"], ["y"]))
    ((wanted,),) = litert(Model(Recipe("tflite_s8", 1, 1, 1, ()), content, [[x]]))
    graph = tflite_graph.read(Path("function.tflite"), content, {})
    (found,) = interpret(optimize(graph), {graph.inputs[0]: x}).values()
    steps = np.abs(found.astype(np.int64) - wanted)
    assert steps.max() <= (1 if off else 0)
    assert np.count_nonzero(steps) <= off * steps.size


def cases() -> Iterator[tuple[str, str, float]]:
    for op_type in ("LOGISTIC", "TANH"):
        for dtype, scales in SCALES.items():
            yield from ((op_type, dtype, scale) for scale in scales)


@pytest.mark.parametrize("op_type,dtype,scale", [*cases()])
def test_every_input(op_type: str, dtype: str, scale: float) -> None:
    pytest.importorskip("ai_edge_litert", reason="the reference")
    info = np.iinfo(dtype)
    x = np.arange(info.min, info.max + 1).astype(dtype).reshape(1, -1)
    outputs = {"LOGISTIC": Quant.per_tensor(1 / 256, -128), "TANH": Quant.per_tensor(1 / 128, 0)}
    y = outputs[op_type] if dtype == "int8" else Quant.per_tensor(2.0**-15, 0)
    function(op_type, x, scale, y)


@pytest.mark.parametrize("op_type", ["EXP", "LOG", "GELU", "GELU_TANH"])
@pytest.mark.parametrize("scale,step", [(2.0**-15, 2.0**-14), (0.0003, 0.0007), (1e-4, 1e-4), (0.001, 0.002)])
def test_interpolated_functions(op_type: str, scale: float, step: float) -> None:
    """Results beyond the largest int16, and logarithms of 0 and below, as well.

    LiteRT computes the entries of its tables in float32 when it loads a model, and its build for aarch64
    fuses products and sums: single entries are a step off there, each of which is part of 256 results.
    """
    pytest.importorskip("ai_edge_litert", reason="the reference")
    x = np.arange(-32768, 32768).astype(np.int16).reshape(1, -1)
    name, _, approximate = op_type.partition("_")
    options: dict[str, Any] = {"table": "GeluOptions", "Approximate": bool(approximate)}
    y = Quant.per_tensor(float(np.float32(step)), 0)
    off = 0.02 if platform.machine() in ("aarch64", "arm64") else 0
    function(name, x, scale, y, off=off, **(options if name == "GELU" else {}))


@pytest.mark.parametrize("op_type", ["ABS", "SQRT", "RSQRT"])
@pytest.mark.parametrize("scale,step", [(2.0**-15, 2.0**-15), (0.0003, 0.0007), (1e-4, 1e-4), (0.0013, 9e-4)])
def test_int16_of_positive_numbers(op_type: str, scale: float, step: float) -> None:
    """Roots of negative numbers are errors in LiteRT."""
    pytest.importorskip("ai_edge_litert", reason="the reference")
    x = np.arange(-32768 if op_type == "ABS" else 0, 32768).astype(np.int16).reshape(1, -1)
    function(op_type, x, scale, Quant.per_tensor(float(np.float32(step)), 0))


def test_interpolated_function_that_overflows() -> None:
    """float32 holds no number that large, and TensorFlow Lite leaves the result open."""
    x = Tensor("x", (1,), DType.INT16, Quant.per_tensor(0.01, 0))
    table = int16_tflite_table.table("exp", x, replace(x, quant=Quant.per_tensor(0.001, 0)).type)
    assert (table.table[0], table.table[-1]) == (0, 32767)


@pytest.mark.parametrize("scale", [2.0**-8, 0.0017, 0.02])
@pytest.mark.parametrize("step", [2.0**-8, 2.0**-7, 0.0025, 0.04])
def test_square_root(scale: float, step: float) -> None:
    pytest.importorskip("ai_edge_litert", reason="the reference")
    x = np.arange(-128, 128).astype(np.int8).reshape(1, -1)
    function("SQRT", x, scale, Quant.per_tensor(float(np.float32(step)), -120))


@pytest.mark.parametrize("depth", [2, 3, 24, 100])
@pytest.mark.parametrize("dtype,scale", [("int8", 0.02), ("int8", 0.2), ("int16", 8e-5), ("int16", 4e-6)])
def test_softmax(dtype: str, scale: float, depth: int) -> None:
    pytest.importorskip("ai_edge_litert", reason="the reference")
    info = np.iinfo(dtype)
    x = np.random.default_rng(depth).integers(info.min, info.max + 1, (150, depth)).astype(dtype)
    y = Quant.per_tensor(1 / 256, -128) if dtype == "int8" else Quant.per_tensor(2.0**-15, 0)
    function("SOFTMAX", x, scale, y, "SoftmaxOptions", Beta=1.0)


@pytest.mark.parametrize("scale", [0.05, 0.2, 0.0123, 0.25])
def test_concatenation_of_uint8_rescales(scale: float) -> None:
    """Files from before int8 have parts with scales of their own."""
    pytest.importorskip("ai_edge_litert", reason="the reference")
    x = np.arange(256, dtype=np.uint8).reshape(1, -1)
    y = Quant.per_tensor(float(np.float32(0.1)), 139)
    function("CONCATENATION", x, scale, y, "ConcatenationOptions", Axis=1)


@pytest.mark.parametrize("scale,step", [(0.05, 0.05), (0.05, 0.1), (0.05, 0.2), (0.05, 0.4), (0.013, 0.077)])
@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_sum(dtype: str, scale: float, step: float) -> None:
    """Of LiteRT's kernels only the optimised one is right: the other adds up in 8 bits."""
    interpreter = pytest.importorskip("ai_edge_litert.interpreter", reason="the reference")
    zero = -20 if dtype == "int8" else 0
    info = np.iinfo(dtype)
    x = np.random.default_rng(4).integers(info.min // 4, info.max // 4, (1, 300, 6)).astype(dtype)
    kinds = [Quant.per_tensor(float(np.float32(s)), zero) for s in (scale, step)]
    axes = Value.constant("axes", np.asarray([2], np.int32))
    values = [Value("x", x.shape, dtype, kinds[0]), axes, Value("y", (1, 300), dtype, kinds[1])]
    call = Call("SUM", ["x", "axes"], ["y"], "ReducerOptions", {"KeepDims": False})
    content = write(Part(values, [call], ["x"], ["y"]))
    kernels = interpreter.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    theirs = interpreter.Interpreter(model_content=content, experimental_op_resolver_type=kernels)
    theirs.allocate_tensors()
    theirs.set_tensor(theirs.get_input_details()[0]["index"], x)
    theirs.invoke()
    graph = tflite_graph.read(Path("sum.tflite"), content, {})
    (found,) = interpret(optimize(graph), {graph.inputs[0]: x}).values()
    np.testing.assert_array_equal(found, theirs.get_tensor(theirs.get_output_details()[0]["index"]))
