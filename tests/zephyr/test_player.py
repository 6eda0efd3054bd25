# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The sample of the player on boards that not every workspace has, so its sample.yaml does not name them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.zephyr.building import TWISTER_SECONDS, environment, twister
from tests.zephyr.played import TEST, sample_for
from tinyml.cores.toolchains import RISCV
from tinyml.harness.zephyr.compilers import compiler_for

pytestmark = pytest.mark.timeout(TWISTER_SECONDS)


@pytest.mark.deep
@pytest.mark.skipif(bool(RISCV.missing()), reason="no tools for RISC-V; see `tinyml doctor`")
def test_riscv32(tmp_path: Path) -> None:
    # Debian's linker warns of what Zephyr's linker script does, which Twister would take for an error.
    board, options = "qemu_riscv32", "--disable-warnings-as-errors"
    more = compiler_for(board, environment())
    results = twister(
        [sample_for(board, tmp_path)], [board], tmp_path, options, "--timeout-multiplier", "5", more=more
    )
    assert [(name, status) for (name, _), status in results.items()] == [(TEST, "passed")]
