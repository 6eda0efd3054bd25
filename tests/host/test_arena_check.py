# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Builds with sanitizers notice a layer that leaves its own bytes of the arena."""

from __future__ import annotations

import pytest

from tests.support.batch import Item, run_batch
from tests.support.overflow import SAMPLE, network, spoiled
from tinyml import harness
from tinyml.base.errors import ToolError
from tinyml.pipeline import Compiled


@pytest.fixture(scope="module")
def compiled() -> Compiled:
    return network("host")


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
