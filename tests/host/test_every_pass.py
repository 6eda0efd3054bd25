# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Each pass alone, on random models, in its place and in others, once and twice: results stay the same.

``test_random_graphs.py`` compares what all passes make of these models with other runtimes. There, a fault
of one pass may be hidden by another; here, it has a name.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from tests.random_graphs.check import build, read, widened
from tests.random_graphs.recipe import KINDS, TFLITE_KINDS, recipe
from tests.support.interpret import interpret
from tinyml.base.errors import TinymlError
from tinyml.ir import Array, Graph
from tinyml.ir.verifier import verify
from tinyml.passes import PASSES, Pass
from tinyml.passes.fuse_qdq import fuse_qdq

EACH = 14
STEPS = tuple(dict.fromkeys(PASSES))
ROUNDED_ELSEWHERE = 0.3
"""Share of integers that may change where real arithmetic between integers becomes integer arithmetic."""

STEPS_OFF = {1: 2, 2: 64}
"""By how many steps more of them may, by the bytes of an element: functions of int16 are interpolated."""


@pytest.mark.parametrize("kind", KINDS)
def test_each_pass_alone(kind: str) -> None:
    if kind in TFLITE_KINDS:
        pytest.importorskip("tflite", reason="writes TFLite models")
    rng = np.random.default_rng(4177)
    problems = []
    for number in range(EACH):
        made = recipe(number, 4177, (kind,))
        try:
            model = build(made)
            graph = read(model)
        except TinymlError:
            continue  # test_random_graphs.py counts them
        sample = dict(zip(graph.inputs, map(widened, model.samples[0]), strict=True))
        for step in PASSES:
            others = [STEPS[i] for i in rng.choice(len(STEPS), 2, replace=False)]
            problems += [f"{made}: {text}" for other in others if (text := changed(other, graph, sample))]
            problems += [f"{made}: {text}" for text in [changed(step, graph, sample)] if text]
            graph = step(graph)
    assert not problems, "\n".join(problems)


def changed(step: Pass, graph: Graph, sample: Mapping[str, Array]) -> str:
    """What is different after a pass, or after it ran again; empty if nothing is."""
    for times in ("once", "twice"):
        after = step(graph)
        if after.is_unchanged(graph):
            return ""
        verify(after, step.__name__)
        before, now = interpret(graph, sample), interpret(after, sample)
        wrong = [name for name, array in before.items() if not same(step, array, now[name])]
        if wrong:
            return f"{step.__name__} {times} changes {', '.join(wrong)}"
        graph = after
    return ""


def same(step: Pass, before: Array, after: Array) -> bool:
    if (before.shape, before.dtype) != (after.shape, after.dtype):
        return False
    if step is fuse_qdq and before.dtype.kind != "b":
        steps = np.abs(before.astype(np.float64) - after)
        few = before.dtype.kind == "f" or np.mean(steps > 0) <= ROUNDED_ELSEWHERE
        return bool(few or steps.max() <= STEPS_OFF.get(before.itemsize, 0))
    if before.dtype.kind != "f":
        return np.array_equal(before, after)
    size = float(np.abs(before[np.isfinite(before)]).max(initial=1e-3))
    return np.allclose(after, before, rtol=1e-5, atol=1e-5 * size, equal_nan=True)
