# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""TFLite operators against recorded outputs of TensorFlow Lite's reference kernels (see record_tflite.py).

Integers agree in every bit, in numpy and in C; floats to within rounding.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.batch import Item, run_batch
from tests.support.interpret import interpret
from tests.support.record_tflite import GOLDENS
from tests.support.tflite_case import TfliteCase
from tests.support.tflite_cases import all_cases
from tinyml.emit.model import Provenance
from tinyml.importers import tflite_graph
from tinyml.ir import Array
from tinyml.pipeline import Options, compile_graph, optimize

ORIGIN = Provenance("case.tflite", "00" * 32, "")


@pytest.fixture(scope="module")
def goldens() -> dict[str, Array]:
    with np.load(GOLDENS) as file:
        return {key: file[key] for key in file.files}


def test_every_golden_has_its_case(goldens: dict[str, Array]) -> None:
    assert {key.split("|")[0] for key in goldens} == {case.name for case in all_cases()}


def test_operators(goldens: dict[str, Array]) -> None:
    problems, items, cases = [], [], {}
    for number, case in enumerate(all_cases()):
        graph = tflite_graph.read(Path("case.tflite"), case.content, {})
        samples = [dict(zip(graph.inputs, sample, strict=True)) for sample in case.samples]
        if not graph.states:
            found = interpret(optimize(graph), samples[0])
            problems += differences(case, "numpy", 0, list(found.values()), goldens)
        compiled = compile_graph(graph, f"c{number}", ORIGIN, Options(target="host", kernels="portable"))
        items.append(Item(compiled.name, compiled.files, samples))
        cases[compiled.name] = case
    for name, outcome in run_batch(items).items():
        if outcome.failure:
            problems.append(f"{cases[name].name}: {outcome.failure}")
        for run, outputs in enumerate(outcome.outputs):
            problems += differences(cases[name], "C", run, list(outputs.values()), goldens)
    assert not problems, "\n".join(problems)


def differences(
    case: TfliteCase, how: str, run: int, found: list[Array], goldens: dict[str, Array]
) -> list[str]:
    problems = []
    for index, array in enumerate(found):
        wanted = goldens[f"{case.name}|{run}|{index}"]
        array = array.reshape(wanted.shape)
        if wanted.dtype.kind == "f":
            wrong = ~np.isclose(array, wanted, rtol=1e-5, atol=1e-5)
        else:
            wrong = array != wanted
        if wrong.any():
            problems.append(f"{case.name}, {how}, run {run}: {wrong.sum()} of {wrong.size} differ")
    return problems
