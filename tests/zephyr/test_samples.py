# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Samples with another model, and with devices that do not fit. ``test_twister.py`` runs them as they are."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.zephyr.building import ROOT, TWISTER_SECONDS, run, west_build

pytestmark = pytest.mark.timeout(TWISTER_SECONDS)

GESTURE = ROOT / "samples" / "gesture"
NATIVE = "native_sim/native/64"


@pytest.mark.deep
def test_a_wake_word_of_your_own(tmp_path: Path) -> None:
    """Another model in the place of model.onnx, nothing else: the application hears "hey steven" instead.

    The model was trained as the README says: `record.py --word "hey steven"`, train.py, `tinyml quantize`.
    """
    sample = tmp_path / "wake_word"
    shutil.copytree(ROOT / "samples" / "wake_word", sample)
    shutil.copytree(ROOT / "samples" / "common", tmp_path / "common")
    shutil.copy(Path(__file__).parent / "wake_word" / "hey_steven.onnx", sample / "model.onnx")
    expected = run(["python", "expected.py"], sample).splitlines()
    assert expected[1:-1] == ["4.22 s: wake word (99 %), LED on"]
    build = west_build(sample, tmp_path / "build", NATIVE, "-DCONFIG_NATIVE_SIM_SLOWDOWN_TO_REAL_TIME=n")
    said = build.in_qemu("overruns").splitlines()
    assert [line.rstrip() for line in said if line.rstrip() in expected] == expected, said


# What is changed in the devicetree, how far the build gets, and the message.
WRONG = {
    "file": ('recording = "none.csv"', "--cmake-only", "none.csv, which does not exist"),
    "channels": ('recording = "two.csv"', "--cmake-only", "has 2 channels; the device has 3"),
    "rate": (
        "sampling-frequency = <100>",
        "--target=app",
        "trained with another sampling rate than the sensor",
    ),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("wrong")


@pytest.mark.tenth
@pytest.mark.parametrize("what", WRONG)
def test_wrong_devices_are_build_errors(what: str, folder: Path) -> None:
    """One build folder for all; what CMake can know is said before anything is compiled."""
    change, until, message = WRONG[what]
    overlay = folder / "wrong.overlay"
    (folder / "two.csv").write_text("1,2\n3,4\n")
    overlay.write_text(f"&replay_accel {{ {change.replace('two.csv', str(folder / 'two.csv'))}; }};\n")
    build: list[str | Path] = ["west", "build", "-b", NATIVE, "-d", folder / "build", until]
    said = run([*build, GESTURE, "--", f"-DEXTRA_DTC_OVERLAY_FILE={overlay}"], folder, check=False)
    assert message in " ".join(said.split())
