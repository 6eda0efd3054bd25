# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Loops whose condition is computed in a run: as many turns as the references, and an error above a bound."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.host.test_loops import COUNTER, ROWS, WHILE, body, condition
from tests.support import loop_models as models
from tests.support.interpret import interpret
from tests.support.tflite_case import f32
from tests.support.tflite_writer import Call, Value, write
from tests.support.tflite_writer import Part as Subgraph
from tinyml import harness, importers
from tinyml.base.errors import ModelError, TinymlError, UnsupportedError
from tinyml.importers import ModelFile
from tinyml.ir import Array
from tinyml.ir.verifier import verify
from tinyml.pipeline import Options, compile_model
from tinyml.reference.session import answers

CHECKED = harness.Options(check_arena=True)
LIMITS = (0.5, 0.2, 0.05, 0.0)
"""The smaller, the more turns; with 0 the most that there are."""


def samples(model: onnx.ModelProto) -> list[dict[str, Array]]:
    """Small limits take more turns; a state below 0 takes none, where the model asks before the first."""
    found = [{**models.sample(model), "small": np.asarray(small, np.float32)} for small in LIMITS]
    return [*found, {"h0": np.full((1, models.WIDTH), -1, np.float32), "small": np.asarray(0.1, np.float32)}]


@pytest.mark.parametrize("begins", [False, True])
def test_a_loop_ends_when_its_condition_says_so(begins: bool) -> None:
    """In numpy and in C; a few hundred steps at most, or as few as one."""
    turns = set[int]()
    for most in (30, 1):
        model = models.settling_loop(most, begins)
        graph = importers.read(models.file(model))
        verify(graph, "import")
        assert [node.op.kind for node in graph.nodes][-1] == "Loop"
        compiled = compile_model(models.file(model), Options(target="host"))
        runs = harness.run_files(compiled.files, "host", samples(model), options=CHECKED).outputs
        for sample, run in zip(samples(model), runs, strict=True):
            found, wanted = interpret(graph, sample), answers(model, sample)
            for name, array in zip(("y", "turns_y"), wanted, strict=True):
                np.testing.assert_allclose(found[name], array, rtol=1e-5, atol=1e-6)
                np.testing.assert_allclose(run[name], array, rtol=1e-5, atol=1e-6)
            turns.add(int(wanted[1]))
    assert len(turns) > 3
    assert max(turns) == 30
    assert (0 in turns) == begins


@pytest.mark.parametrize("most", [1, 90])
def test_all_steps_or_none(most: int) -> None:
    """The number of steps is known, but not whether there is a first one."""
    model = models.permitted_loop(most)
    graph = importers.read(models.file(model))
    verify(graph, "import")
    h0 = models.sample(models.filter_scan(1))["a0"]
    given = [{"h0": h0, "permitted": np.asarray(permitted)} for permitted in (False, True)]
    compiled = compile_model(models.file(model), Options(target="host"))
    runs = harness.run_files(compiled.files, "host", given, options=CHECKED).outputs
    for sample, run in zip(given, runs, strict=True):
        (wanted,) = answers(model, sample)
        np.testing.assert_allclose(interpret(graph, sample)["y"], wanted, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(run["y"], wanted, rtol=1e-5, atol=1e-6)


def test_a_bound_takes_the_place_of_the_largest_number_of_steps() -> None:
    model = models.settling_loop(None)
    with pytest.raises(UnsupportedError, match="depends on computed values"):
        importers.read(models.file(model))
    graph = importers.read(models.file(model), bounds={"settling": 40})
    sample = samples(model)[2]
    wanted = answers(model, sample)
    assert 1 < wanted[1] < 40
    np.testing.assert_allclose(interpret(graph, sample)["y"], wanted[0], rtol=1e-5, atol=1e-6)


def test_rows_of_a_number_that_a_run_decides() -> None:
    """They have room for all steps, zeros after the last, and a count."""
    model = models.settling_loop(30, begins=True, rows=True)
    graph = importers.read(models.file(model))
    verify(graph, "import")
    assert [graph.tensors[name].shape for name in graph.outputs][2:] == [(30, 1, models.WIDTH), (1,)]
    compiled = compile_model(models.file(model), Options(target="host"))
    runs = harness.run_files(compiled.files, "host", samples(model), options=CHECKED).outputs
    lengths = set[int]()
    for sample, run in zip(samples(model), runs, strict=True):
        rows = answers(model, sample)[2]
        lengths.add(len(rows))
        for found in (interpret(graph, sample), run):
            assert found["rows_count"] == len(rows)
            np.testing.assert_allclose(found["rows"][: len(rows)], rows, rtol=1e-5, atol=1e-6)
            assert not found["rows"][len(rows) :].any()
    assert {0, 30} < lengths


def test_a_number_of_steps_that_arrives() -> None:
    """Up to the bound; no step at all if it is 0 or less."""
    model = models.counting_loop()
    with pytest.raises(UnsupportedError, match="depends on computed values"):
        importers.read(models.file(model))
    options = Options(target="host", bounds={"counting": 9})
    graph = importers.read(models.file(model), bounds=options.bounds)
    h0 = models.sample(models.filter_scan(1))["a0"]
    given = [{"h0": h0, "most": np.asarray([steps], np.int64)} for steps in (-1, 0, 1, 5, 9)]
    compiled = compile_model(models.file(model), options)
    runs = harness.run_files(compiled.files, "host", given, options=CHECKED).outputs
    for sample, run in zip(given, runs, strict=True):
        (wanted,) = answers(model, sample)
        np.testing.assert_allclose(interpret(graph, sample)["y"], wanted, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(run["y"], wanted, rtol=1e-5, atol=1e-6)
    with pytest.raises(ModelError, match="more steps than its bound, 9"):
        interpret(graph, {**given[0], "most": np.asarray([10], np.int64)})


@pytest.mark.parametrize("most", [None, 30])
def test_more_steps_than_the_bound_are_an_error(most: int | None) -> None:
    """Of the run, in numpy and in C; no result that is not the model's."""
    model = models.settling_loop(most)
    sample = samples(model)[2]
    steps = int(answers(models.settling_loop(most or 1000), sample)[1])
    for bound, fits in ((steps - 1, False), (steps, True)):
        options = Options(target="host", bounds={"settling": bound})
        graph = importers.read(models.file(model), bounds=options.bounds)
        compiled = compile_model(models.file(model), options)
        if fits:
            assert interpret(graph, sample)["turns_y"] == steps
            (run,) = harness.run_files(compiled.files, "host", [sample], options=CHECKED).outputs
            assert run["turns_y"] == steps
            continue
        with pytest.raises(ModelError, match=f"more steps than its bound, {bound}"):
            interpret(graph, sample)
        with pytest.raises(TinymlError, match="more results than its bound"):
            harness.run_files(compiled.files, "host", [sample], options=CHECKED)


def test_a_while_that_starts_at_a_number_of_the_run(tmp_path: Path) -> None:
    """TFLite asks before the first turn: rows of x from ``start`` on are added up."""
    start = Value("start", (), "int32")
    values = [f32("x", (3, 2)), start, Value.constant("zero", np.zeros((1, 2), np.float32))]
    values += [Value("n", (), "int32"), f32("y", (1, 2)), f32("x2", (3, 2))]
    loop = Call("WHILE", ["start", "zero", "x"], ["n", "y", "x2"], *WHILE)
    parts = [Subgraph(values, [loop], ["x", "start"], ["y", "n"])]
    parts += [condition(3, f32("sum", (1, 2)), f32("x", (3, 2))), body()]
    assert COUNTER.name == "n"
    file = ModelFile(tmp_path / "loop.tflite", write(*parts))
    compiled = compile_model(file, Options(target="host", bounds={"n": 3}))
    assert [node.op.kind for node in compiled.graph.nodes][-1] == "Loop"
    given = [{"x": ROWS, "start": np.asarray(number, np.int32)} for number in range(5)]
    found = harness.run_files(compiled.files, "host", given, options=CHECKED).outputs
    for number, run in enumerate(found):
        np.testing.assert_array_equal(run["y"], 2 * ROWS[number:].sum(0, keepdims=True))
        assert run["n"] == max(number, 3)
