# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Bounds of what takes its way by data: trees, sorting, boxes. No run exceeds them; the worst is close."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.interpret import interpret
from tests.support.ways_by_data import Subject, soft_with_threshold, subjects, trees
from tinyml import harness
from tinyml.bounds import bound_files
from tinyml.bounds.image_bounds import STATED, TOTALS
from tinyml.pipeline import Compiled

CLOSE = 1.2
LOOSE = 1.25  # docs/bounds.md: what is not shown
WITH_FPU = 1.1
QUEUED = ("queued", "soft")  # a queue as TensorFlow Lite's: few inputs make all of its moves long
EXACT = ("trees", "top 6 of 24", "sorting 24")  # with an FPU
SUBJECTS = subjects()
CORES = [
    *("cortex-m3", "cortex-m4"),
    *(pytest.param(core, marks=pytest.mark.deep) for core in ("cortex-m0", "cortex-m7", "cortex-m55")),
]


def run(subject: Subject, compiled: Compiled, core: str) -> list[int]:
    """The instructions of all samples, whose results are compared."""
    samples = [dict(zip(compiled.graph.inputs, row, strict=True)) for row in subject.samples]
    runs = harness.run_files(compiled.files, f"qemu-{core}", samples)
    assert runs.instructions is not None
    for sample, found in list(zip(samples, runs.outputs, strict=True))[::5]:
        for name, expected in interpret(compiled.graph, sample).items():
            np.testing.assert_allclose(found[name], expected, rtol=1e-5, atol=1e-6)
    return runs.instructions


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("subject", SUBJECTS, ids=[subject.name for subject in SUBJECTS])
def test_the_worst_run_is_close(subject: Subject, core: str) -> None:
    compiled = subject.compiled(core)
    found = bound_files(compiled.files, harness.find_machine(f"qemu-{core}"))
    counts = run(subject, compiled, core)
    queued, together = subject.name.startswith(QUEUED), "for" in subject.name
    close = CLOSE
    if core not in ("cortex-m0", "cortex-m3") and not queued:
        close = 1.0 if subject.name in EXACT else WITH_FPU
    assert found.least_instructions <= min(counts)
    assert max(counts) <= found.instructions <= close * max(counts)
    assert (STATED in found.assumptions) == (subject.name == "trees")
    assert any(TOTALS in one for one in found.assumptions) == (queued or together)


@pytest.mark.parametrize("core, close", [("cortex-m3", 1.2), ("cortex-m4", LOOSE)])
def test_a_threshold_at_run_time(core: str, close: float) -> None:
    """Totals are those for the larger of two numbers of comparisons; there are none of moves in the queue."""
    subject = soft_with_threshold("soft boxes, threshold at run time", 5)
    compiled = subject.compiled(core)
    found = bound_files(compiled.files, harness.find_machine(f"qemu-{core}"))
    counts = run(subject, compiled, core)
    assert max(counts) <= found.instructions <= close * max(counts)


def test_a_tree_that_is_deeper_than_it_says_is_found() -> None:
    """The seeded fault: a comment with fewer levels gives a bound that runs exceed."""
    compiled = trees().compiled("cortex-m4")
    assert "/* at most 4 turns */" in compiled.files["m.c"]
    wrong = compiled.files["m.c"].replace("/* at most 4 turns */", "/* at most 2 turns */")
    found = bound_files({**compiled.files, "m.c": wrong}, harness.find_machine("qemu-cortex-m4"))
    assert max(run(trees(), compiled, "cortex-m4")) > found.instructions
