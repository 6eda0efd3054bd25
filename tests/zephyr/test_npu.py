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
from tests.zephyr.building import ROOT, Build, symbols, west_build
from tools import workspace

APP = ROOT / "tests" / "zephyr" / "npu"
HAL = workspace.location() / "modules" / "hal" / "ethos_u"
MPS4 = {"mps4/corstone315/fvp": "ethos-u65-256", "mps4/corstone320/fvp": "ethos-u85-256"}

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
    write_manifest(folder, f"npu: {npu}, ")
    return folder


def write_manifest(app: Path, npu: str) -> None:
    text = f"models:\n  - {{name: model, file: model.tflite, {npu}weights: sram}}\n"
    (app / "tinyml.yaml").write_text(text)


def compiler_knows(core: str) -> bool:
    command = ["arm-none-eabi-gcc", f"-mcpu={core}", "-E", "-x", "c", "/dev/null"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def check_image(build: Build) -> None:
    """The image has the driver, and memory as the NPU requires it."""
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


@pytest.mark.parametrize("board", MPS4)
def test_images_for_mps4(board: str, tmp_path: Path) -> None:
    if not compiler_knows("cortex-m85"):
        pytest.skip("arm-none-eabi-gcc does not know cortex-m85")
    check_image(west_build(application(tmp_path / "app", MPS4[board]), tmp_path / "build", board))


def test_an_image_for_mps3_follows_tinyml_yaml(tmp_path: Path) -> None:
    app = application(tmp_path / "app", "ethos-u55-128")
    build = west_build(app, tmp_path / "build", "mps3/corstone300/fvp")
    check_image(build)

    write_manifest(app, "npu: ethos-u55-256, ")
    said = " ".join(build.again(check=False).split())
    assert "is for the NPU ethos-u55-256, and the image's driver is for ethos-u55-128" in said

    write_manifest(app, "")
    assert "model.c" in build.compiled(build.again())
    assert not [name for name in symbols(build.elf) if name.endswith("_commands")]

    write_manifest(app, "npu: ethos-u65-256, ")
    with (app / "prj.conf").open("a") as settings:
        settings.write("CONFIG_ETHOS_U65_256=y\n")
    said = " ".join(build.again(check=False).split())
    assert "this build folder still has the driver for ethos-u55-128" in said
