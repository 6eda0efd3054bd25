# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The sample of the player on boards that not every workspace has, so its sample.yaml does not name them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml

from tests.zephyr.building import ROOT, TWISTER_SECONDS, environment, twister
from tinyml.cores.toolchains import RISCV
from tinyml.harness.zephyr.compilers import compiler_for

pytestmark = pytest.mark.timeout(TWISTER_SECONDS)

TEST = "sample.tinyml.player"


def sample_for(board: str, folder: Path) -> Path:
    """A copy of the sample, and of what it takes from its neighbours, whose one test is for a board."""
    for name in ("player", "digits/src", "digits/model.onnx", "model_update/model_v1.onnx"):
        source, copy = ROOT / "samples" / name, folder / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, copy)
        else:
            shutil.copy(source, copy)
    path = folder / "player" / "sample.yaml"
    sample = yaml.safe_load(path.read_text())
    sample["tests"] = {TEST: {"platform_allow": [board], "integration_platforms": [board]}}
    path.write_text(yaml.safe_dump(sample))
    return folder / "player"


def test_cortex_m4(tmp_path: Path) -> None:
    """Our own emulated board: the image for DSP instructions."""
    board = "qemu_cortex_m4"
    results = twister([sample_for(board, tmp_path)], [board], tmp_path, "--timeout-multiplier", "5")
    assert [(name, status) for (name, _), status in results.items()] == [(TEST, "passed")]
    (said,) = (path.read_text(errors="replace") for path in tmp_path.rglob("handler.log"))
    assert "version 2: digits with an arena of 1376 bytes" in said  # 1680 on a Cortex-M3


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
