# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Models with parts on an Arm Ethos-U: images for Corstone boards are built, not run."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.npu_models import in_between
from tests.zephyr.building import ROOT, run, symbols, west_build
from tools import workspace

APP = ROOT / "tests" / "zephyr" / "npu"
HAL = workspace.location() / "modules" / "hal" / "ethos_u"
BOARDS = {
    "mps3/corstone300/fvp": ("ethos-u55-128", "cortex-m55"),
    "mps4/corstone315/fvp": ("ethos-u65-256", "cortex-m85"),
    "mps4/corstone320/fvp": ("ethos-u85-256", "cortex-m85"),
}

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("ethosu") is None, reason="ethos-u-vela is not installed"),
    pytest.mark.skipif(
        not HAL.is_dir(),
        reason="no hal_ethos_u in the workspace (west config manifest.group-filter -- +npu; west update)",
    ),
]


def application(folder: Path, npu: str) -> Path:
    """A copy with a model in two parts, CPU work between them, and its tables where the NPU reads them."""
    shutil.copytree(APP, folder)
    in_between(folder)
    text = f"models:\n  - {{name: model, file: model.tflite, npu: {npu}, weights: sram}}\n"
    (folder / "tinyml.yaml").write_text(text)
    return folder


def compiler_knows(core: str) -> bool:
    command = ["arm-none-eabi-gcc", f"-mcpu={core}", "-E", "-x", "c", "/dev/null"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("board", BOARDS)
def test_images_have_the_driver_and_aligned_tables(board: str, tmp_path: Path) -> None:
    npu, core = BOARDS[board]
    if not compiler_knows(core):
        pytest.skip(f"arm-none-eabi-gcc does not know {core}")
    build = west_build(application(tmp_path / "app", npu), tmp_path / "build", board)
    found = symbols(build.elf)
    tables = {name: place for name, place in found.items() if name.endswith(("_commands", "_weights"))}
    assert len(tables) >= 3  # both parts may have the same commands
    assert all(address % 16 == 0 for address, _, _ in tables.values())
    assert {section for _, _, section in tables.values()} == {"tinyml_weights_SRAM"}
    address, _, section = found["model_arena"]
    assert (address % 32, section) == (0, "ISRAM")  # whole lines of the data cache
    assert found["ethosu_invoke_v3"][1] > 0
    config = (build.folder / "zephyr" / ".config").read_text()
    assert "CONFIG_ETHOS_U_DCACHE=y" in config  # or the NPU would not see what the CPU has written


def test_a_driver_for_another_npu(tmp_path: Path) -> None:
    app = application(tmp_path / "app", "ethos-u55-256")
    command: list[str | Path] = ["west", "build", "-b", "mps3/corstone300/fvp", "-d", tmp_path / "build", app]
    said = " ".join(run(command, app, check=False).split())
    assert "is for the NPU ethos-u55-256, and the image's driver is for ethos-u55-128" in said
