# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""TFLite's WHILE with many steps is a loop in C, and computes what LiteRT's reference kernels compute."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.interpret import interpret
from tests.support.tflite_case import bias, ints, reals, weights
from tests.support.tflite_writer import Call, Part, Value, write
from tinyml import harness
from tinyml.importers import ModelFile, tflite_graph
from tinyml.ir import Array, Quant
from tinyml.ir.verifier import verify
from tinyml.pipeline import Options, compile_model

COUNTER = Value("n", (), "int32")
WHILE = ("WhileOptions", {"CondSubgraphIndex": 1, "BodySubgraphIndex": 2})
STEPS, WIDTH = 75, 4
CHECKED = harness.Options(check_arena=True)
STATE, ROW = Quant.per_tensor(0.05, -3), Quant.per_tensor(0.04, 5)


def carried(dtype: str) -> list[Value]:
    """A state, the list of all its values, and the rows that are added to it."""
    state, row = (STATE, ROW) if dtype == "int8" else (None, None)
    return [
        Value("state", (1, WIDTH), dtype, state),
        Value("list", (STEPS, WIDTH), dtype, state),
        Value("x", (STEPS, WIDTH), dtype, row),
    ]


def condition(values: list[Value]) -> Part:
    """n < steps"""
    limit = Value.constant("limit", np.asarray(STEPS, np.int32))
    less = Call("LESS", ["n", "limit"], ["more"], "LessOptions")
    names = ["n", *(value.name for value in values)]
    return Part([COUNTER, *values, limit, Value("more", (), "bool")], [less], names, ["more"])


def body(dtype: str) -> Part:
    """The state times a matrix, plus row n of x; it is also row n of the list."""
    state, everything, x = carried(dtype)
    matrix = weights("w", (WIDTH, WIDTH), Quant.per_tensor(0.005, 0)) if dtype == "int8" else reals("w", 4, 4)
    offset = bias(WIDTH) if dtype == "int8" else reals("bias", WIDTH)
    values = [COUNTER, state, everything, x, matrix, offset, ints("none", 0, shape=())]
    values += [Value.constant("one", np.asarray(1, np.int32)), Value("next", (), "int32")]
    values += [Value("row", (WIDTH,), dtype, x.quant), Value("turned", (1, WIDTH), dtype, state.quant)]
    values += [Value("new", (1, WIDTH), dtype, state.quant), Value("place", (2,), "int32")]
    values += [Value("longer", (STEPS, WIDTH), dtype, state.quant)]
    calls = [
        Call("ADD", ["n", "one"], ["next"], "AddOptions"),
        Call("GATHER", ["x", "n"], ["row"], "GatherOptions"),
        Call("FULLY_CONNECTED", ["state", "w", "bias"], ["turned"], "FullyConnectedOptions"),
        Call("ADD", ["turned", "row"], ["new"], "AddOptions", {"FusedActivationFunction": 2}),
        Call("PACK", ["n", "none"], ["place"], "PackOptions", {"ValuesCount": 2}),
        Call("DYNAMIC_UPDATE_SLICE", ["list", "new", "place"], ["longer"]),
    ]
    return Part(values, calls, ["n", "state", "list", "x"], ["next", "new", "longer", "x"])


def model(dtype: str) -> bytes:
    """All begins with zeros; x comes from outside."""
    state, everything, x = carried(dtype)
    zeros = [
        Value.constant(f"{value.name}0", np.zeros(value.shape, dtype), value.quant)
        for value in (state, everything)
    ]
    first = Value.constant("first", np.asarray(0, np.int32))
    results = [Value("count", (), "int32")]
    results += [Value(f"{v.name}_end", v.shape, v.dtype, v.quant) for v in (state, everything, x)]
    loop = Call("WHILE", ["first", "state0", "list0", "x"], [value.name for value in results], *WHILE)
    main = Part([first, *zeros, x, *results], [loop], ["x"], ["state_end", "list_end", "count"])
    return write(main, condition(carried(dtype)), body(dtype))


def litert(content: bytes, x: Array) -> list[Array]:
    interpreter: Any = pytest.importorskip("ai_edge_litert.interpreter", reason="the reference")
    runtime = interpreter.Interpreter(
        model_content=content, experimental_op_resolver_type=interpreter.OpResolverType.BUILTIN_REF
    )
    runtime.allocate_tensors()
    runtime.set_tensor(runtime.get_input_details()[0]["index"], x)
    runtime.invoke()
    return [runtime.get_tensor(output["index"]).copy() for output in runtime.get_output_details()]


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_a_long_while_stays_a_loop(dtype: str) -> None:
    """int8 is equal in every bit."""
    content = model(dtype)
    graph = tflite_graph.read(Path("loop.tflite"), content, {})
    verify(graph, "import")
    assert [node.op.kind for node in graph.nodes] == ["Loop"]
    random = np.random.default_rng(1)
    x = (
        random.normal(0, 1, (STEPS, WIDTH))
        if dtype == "float32"
        else random.integers(-128, 128, (STEPS, WIDTH))
    )
    sample = {"x": x.astype(dtype)}
    found = interpret(graph, sample)
    compiled = compile_model(ModelFile(Path("loop.tflite"), content), Options(target="host"))
    (run,) = harness.run_files(compiled.files, "host", [sample], options=CHECKED).outputs
    for name, wanted in zip(("state_end", "list_end", "count"), litert(content, sample["x"]), strict=True):
        assert name != "list_end" or len(np.unique(wanted)) > 20
        for array in (found[name], run[name]):
            if dtype == "int8":
                np.testing.assert_array_equal(array, wanted)
            np.testing.assert_allclose(array, wanted, rtol=1e-5, atol=1e-5)
