# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Every operator that is written as ONNX: onnxruntime computes from it what the graph computes."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.support.cases import Case
from tests.support.interpret import interpret
from tests.support.tflite_cases import all_cases
from tinyml.base.errors import TinymlError
from tinyml.importers import tflite_graph
from tinyml.ir import Array, Graph
from tinyml.quantize import export
from tinyml.reference.session import Session

pytest.importorskip("onnxruntime")

FILES = sorted(p.stem for p in (Path(__file__).parents[1] / "ops").glob("*.py") if p.stem != "__init__")

UNDEFINED = {
    "binary": ("div_int", "div_uint", "mod_int", "mod_uint", "fmod_int", "fmod_uint"),  # divisors of 0
    "choice": ("cast_odd",),  # floats that are no integers
    "not_numbers": ("max_pool", "global_max_pool", "reduce", "top_"),
    "power": ("negative_exponent",),
    "reduce": ("max_nan", "min_nan", "sum_wraps"),
    "tflite": ("nothing",),
    "tensor_scatter": ("linear_past_the_end", "linear_far_away"),
}
"""Parts of names of cases whose results ONNX does not define, or onnxruntime computes in another way."""

LACKING = ("Could not find an implementation", "is invalid", "bound to different types")
"""What onnxruntime says of element types that it has no kernel for."""


@pytest.mark.parametrize("file", FILES)
def test_written_as_onnx(file: str) -> None:
    """All cases that can be written; their checked models compute the same."""
    cases: list[Case] = import_module(f"tests.ops.{file}").CASES
    problems = []
    for case in cases:
        if not case.name.startswith(UNDEFINED.get(file, "-")):
            problems += check(case.name, case.graph(), case.inputs, case.rtol, case.atol)
    assert not problems, "\n".join(problems)


def test_tflite_written_as_onnx() -> None:
    problems = []
    for case in all_cases():
        graph = tflite_graph.read(Path("case.tflite"), case.content, {})
        inputs = dict(zip(graph.inputs, case.samples[0], strict=True))
        if not graph.states and not case.name.startswith(UNDEFINED["tflite"]):
            problems += check(case.name, graph, inputs)
    assert not problems, "\n".join(problems)


def check(
    name: str, graph: Graph, inputs: Mapping[str, Array], rtol: float = 0, atol: float = 0
) -> list[str]:
    try:
        model = export.to_onnx(graph)
    except TinymlError:  # no writer, or not of these attributes
        return []
    wanted = interpret(graph, inputs)
    try:
        session = Session(model)
        known = {value.name for value in session.session.get_inputs()}
        found = session.run({key: array for key, array in inputs.items() if key in known})
    except TinymlError as problem:
        lacking = any(words in str(problem) for words in LACKING)
        return [] if lacking else [f"{name}: {str(problem).splitlines()[0]}"]
    limits = max(rtol, 1e-5), max(atol, 1e-5)
    return [f"{name}: {key} differs" for key in wanted if not same(found[key], wanted[key], *limits)]


def same(found: Array, wanted: Array, rtol: float, atol: float) -> bool:
    if (found.dtype, found.shape) != (wanted.dtype, wanted.shape):
        return False
    if wanted.dtype.kind != "f":
        return bool(np.array_equal(found, wanted))
    return np.allclose(found.astype(np.float64), wanted.astype(np.float64), rtol, atol, equal_nan=True)


WRITTEN = {
    "arg_reduce": {"ArgMax", "ArgMin"},
    "binary": {"Mod", "BitShift", "Where"},
    "cumulative": {"CumSum"},
    "movement": {"Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND", "TopK"},
    "sampling": {"Resize"},
}


@pytest.mark.parametrize("file", WRITTEN)
def test_operators_are_written_as_themselves(file: str) -> None:
    """Else the other test would compare nothing."""
    found = set()
    for case in import_module(f"tests.ops.{file}").CASES:
        model = export.written(case.graph())
        found |= {node.op_type for node in (model or onnx.ModelProto()).graph.node}
    assert found >= WRITTEN[file]
