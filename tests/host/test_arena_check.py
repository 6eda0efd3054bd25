# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Builds with sanitizers notice a layer that leaves its own bytes of the arena."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.support.batch import Item, run_batch
from tests.support.sketch import Sketch
from tinyml import harness
from tinyml.emit.model import Provenance
from tinyml.errors import ToolError
from tinyml.ir import DType
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.elementwise.unary import Unary
from tinyml.pipeline import Compiled, Options, compile_graph


@pytest.fixture(scope="module")
def compiled() -> Compiled:
    """x is read again by the last layer: while the others run, it is live and nobody's business."""
    sketch = Sketch()
    other = sketch.input((64,), DType.FLOAT32)
    x = sketch.input((64,), DType.FLOAT32)
    y = sketch.add(Unary("abs"), other)
    return compile_graph(
        sketch.graph(sketch.add(Binary("add"), sketch.add(Unary("sqrt"), y), x)),
        "net",
        Provenance("net", "0" * 64, ""),
        Options(target="host"),
    )


SAMPLE = {"in0": np.ones(64, np.float32), "in1": np.ones(64, np.float32)}


def spoiled(compiled: Compiled) -> dict[str, str]:
    """The first layer's loop goes 40 elements too far: into another tensor, not out of the arena."""
    assert compiled.plan.arena_bytes >= (64 + 40) * 4
    first = compiled.plan.places[compiled.selected[0].layer.output.name].offset
    assert first + (64 + 40) * 4 <= compiled.plan.arena_bytes, "the overflow would leave the arena"
    source, found = re.subn(r"< 64;", "< 104;", compiled.files["net.c"], count=1)
    assert found
    return {**compiled.files, "net.c": source}


def test_ranges_are_those_of_the_plan(compiled: Compiled) -> None:
    for layer in compiled.summary["layers"]:
        assert layer["arena"]
        assert all(0 <= start < end <= compiled.plan.arena_bytes for start, end in layer["arena"])


def test_batch_sees_an_overflow_inside_the_arena(compiled: Compiled) -> None:
    assert not run_batch([Item("net", compiled.files, [SAMPLE])])["net"].failure
    outcome = run_batch([Item("net", spoiled(compiled), [SAMPLE])])["net"]
    assert "use-after-poison" in outcome.failure


def test_sanitized_build_sees_an_overflow_inside_the_arena(compiled: Compiled) -> None:
    checks = harness.Options(sanitize=True, strict=True)
    harness.run_files(compiled.files, "host", [SAMPLE], options=checks)
    harness.run_files(spoiled(compiled), "host", [SAMPLE])  # unnoticed
    with pytest.raises(ToolError, match="use-after-poison"):
        harness.run_files(spoiled(compiled), "host", [SAMPLE], options=checks)
