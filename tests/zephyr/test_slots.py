# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Slots on Zephyr: packs for partitions, and `deploy`. ``test_twister.py`` has updates and power failures."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.zephyr.building import ROOT, TWISTER_SECONDS, run
from tinyml.base.errors import ConfigError
from tinyml.harness.device_session import EMULATOR_SECONDS, Session
from tinyml.harness.links import SerialPort
from tinyml.slots import container
from tinyml.slots.deploy import Refused, Slots, deploy
from tinyml.slots.places import slots_of_build, target_of_build
from tools import workspace

pytestmark = pytest.mark.timeout(2 * TWISTER_SECONDS)

SAMPLE = ROOT / "samples" / "model_update"
BOARD = "mps2/an385"


def test_pack_for_partitions(tmp_path: Path) -> None:
    """`west tinyml pack -b BOARD`: the partitions of the board's devicetree, without a build."""
    model = ROOT / "samples" / "digits" / "model.onnx"
    words: list[str | Path] = ["west", "tinyml", "pack", model, "-b", BOARD, "--app", SAMPLE]
    words += ["-o", tmp_path / "x.tmodel"]
    said = run([*words, "--slots", "model_a,model_b"], tmp_path)
    assert "model_a at 0x21008000" in said
    assert "model_b at 0x21010000" in said
    assert "for cortex-m3" in said


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample on an emulated board, with packs of two versions."""
    folder = tmp_path_factory.mktemp("slots")
    options = ["--", "-DEXTRA_CONF_FILE=host.conf"]
    run(["west", "build", "-b", BOARD, "-d", folder / "build", SAMPLE, *options], folder)
    return folder / "build"


def test_partitions_of_a_build(build: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in workspace.environment(workspace.location()).items():
        monkeypatch.setenv(name, value)
    assert target_of_build(build) == "cortex-m3"
    a, b = slots_of_build(build, ("model_a", "model_b"))
    assert (a.address, a.bytes, b.address, b.bytes) == (0x21008000, 0x8000, 0x21010000, 0x8000)
    with pytest.raises(ConfigError, match="no partition labelled 'model_c'") as wrong:
        slots_of_build(build, ("model_a", "model_c"))
    assert "storage_partition, model_a, model_b" in str(wrong.value.hint)


def test_deploy_to_an_emulator(build: Path) -> None:
    """`tinyml deploy` over the console of an emulated board: two versions, then an old one."""
    answers = deploy_to_emulator(build, [1, 2, 1])
    assert answers == ["digits 1.0.0", "digits 2.0.0", "not newer than the one in use"]


def test_deploy_models_without_code(tmp_path: Path) -> None:
    """Packs with images for every family of cores; the device's core and kernels decide which one is sent."""
    build = tmp_path / "build"
    options = ["--", "-DEXTRA_CONF_FILE=slots.conf;host.conf"]
    run(["west", "build", "-b", BOARD, "-d", build, ROOT / "samples" / "player", *options], tmp_path)
    answers = deploy_to_emulator(build, [1, 2, 1])
    assert answers == ["digits 1.0.0", "digits 2.0.0", "not newer than the one in use"]


def deploy_to_emulator(build: Path, versions: list[int]) -> list[str]:
    """What came of each deployment: the model in use, or why not."""
    quiet = ["-display", "none", "-monitor", "none", "-serial", "pty"]
    command = [
        "qemu-system-arm",
        "-machine",
        "mps2-an385",
        *quiet,
        "-kernel",
        str(build / "zephyr/zephyr.elf"),
    ]
    answers = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as emulator:
        try:
            assert emulator.stdout is not None
            terminal = re.search(r"redirected to (\S+)", emulator.stdout.readline())
            assert terminal is not None
            for version in versions:
                with SerialPort(terminal[1], 115200) as link:
                    pack = container.load(build / f"digits_{version}.tmodel")
                    session = Session(link, "the emulator")
                    session.greet(EMULATOR_SECONDS)
                    try:
                        after = deploy(Slots(session), pack).after
                        answers.append(f"{after.name} {after.version}")
                    except Refused as error:
                        answers.append(error.message.partition("the model is ")[2])
        finally:
            emulator.kill()
    return answers
