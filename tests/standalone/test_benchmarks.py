# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""No model of the record has become more expensive, and the measured images compute the goldens."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from tests.support.goldens import Check, Published, feeds, in_order, published, resets
from tinyml.bench import record, revision
from tinyml.bench.measure import CHOICES, Row, measure
from tinyml.bench.peers import peers
from tinyml.cost.cycles import Execute
from tinyml.ir import Graph
from tinyml.pipeline import Options
from tinyml.setup.workspace import find_cmsis_nn
from tools import benchmarks

TOLERANCE = 0.02
KEPT = record.load(benchmarks.RECORD)
MODELS = benchmarks.models()
GOLDENS = {model.row["sha256"]: model for model in published()}


def describe(row: Row) -> str:
    return f"{row.model}-{row.machine}-{row.kernels}"


def rows() -> list[Any]:
    """What users get; of the other choices of kernels, whose outputs ``test_models.py`` checks, a tenth."""
    other = pytest.mark.tenth("choices of kernels")
    return [pytest.param(row, marks=() if row.kernels == "auto" else other) for row in KEPT.rows]


@pytest.mark.parametrize("row", rows(), ids=describe)
def test_no_growth(row: Row) -> None:
    if row.sha256 not in MODELS:
        pytest.skip(f"{row.model} is not here (TINYML_MODELS names its folder)")
    if row.kernels != "portable" and find_cmsis_nn() is None:
        pytest.skip("no CMSIS-NN here (TINYML_CMSIS_NN, or a west workspace)")
    if record.compiler_name([row.machine]) != KEPT.compiler:
        pytest.skip(f"the record holds for {KEPT.compiler}")
    model = GOLDENS.get(row.sha256)
    inspect = partial(agrees, model) if model else None
    found = measure(MODELS[row.sha256], row.machine, row.kernels, Options(), row.optimize, inspect)
    grown = [str(c) for c in record.compare([row], [found]) if c.ratio > 1 + TOLERANCE]
    assert not grown, "\n".join([*grown, "if that is meant: python -m tools.benchmarks --measure"])
    known = peers().models.get(row.sha256)
    if known is not None:
        assert found.output.startswith(known.output[: len(found.output)])


def agrees(model: Published, graph: Graph, execute: Execute) -> None:
    """The image that is measured computes the model's goldens, all of them."""
    steps, check = model.steps(), Check(model)
    result = execute(list(feeds(graph, steps)), resets(steps))
    for step, outputs in zip(steps, result.outputs, strict=True):
        check.add(step, in_order(graph, outputs))
    assert not check.problems, "\n".join(check.problems)


def test_every_machine_and_library_is_recorded() -> None:
    digits = [row for row in KEPT.rows if row.model == "digits"]
    assert {(row.machine, row.kernels) for row in digits} == {
        (machine, kernels) for machine in benchmarks.MACHINES for kernels in CHOICES
    }
    assert {row.sha256 for row in digits} <= set(MODELS), "the digits model changed: measure again"


def test_auto_is_the_better_choice() -> None:
    """What users get is no worse than the better of both libraries, on any model and core."""
    best: dict[tuple[str, str], int] = {}
    for row in KEPT.rows:
        if row.kernels != "auto":
            key = (row.model, row.machine)
            best[key] = min(row.instructions, best.get(key, row.instructions))
    worse = [
        f"{row.model} on {row.machine}: {row.instructions:,}, not {best[row.model, row.machine]:,}"
        for row in KEPT.rows
        if row.kernels == "auto" and row.instructions > best[row.model, row.machine] * (1 + TOLERANCE)
    ]
    assert best
    assert not worse, "\n".join(worse)


def test_against_a_commit() -> None:
    """The compiler of the last commit and that of this tree, without touching either."""
    if not (revision.ROOT / ".git").exists():
        pytest.skip("not a git clone")
    arguments = [str(benchmarks.DIGITS), "--on", "qemu-cortex-m3", "--kernels", "portable"]
    (row,) = revision.measure_revision("HEAD", arguments).rows
    assert (row.model, row.machine, row.kernels) == ("digits", "qemu-cortex-m3", "portable")
    assert row.instructions > 0
