# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Emulated cores notice a layer that writes outside its own bytes of the arena."""

from __future__ import annotations

import pytest

from tests.support.overflow import SAMPLE, network, spoiled
from tinyml import harness
from tinyml.base.errors import ToolError

CHECKED = harness.Options(check_arena=True)


def test_an_overflow_inside_the_arena_ends_the_run() -> None:
    compiled = network("cortex-m3")
    harness.run_files(compiled.files, "qemu-cortex-m3", [SAMPLE], options=CHECKED)
    with pytest.raises(ToolError, match="layer 0 wrote outside its bytes of the arena"):
        harness.run_files(spoiled(compiled), "qemu-cortex-m3", [SAMPLE], options=CHECKED)
