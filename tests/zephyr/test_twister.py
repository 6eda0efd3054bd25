# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Twister runs: outputs on the device against those of the host, byte for byte, and our own tests."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import yaml

from tests.zephyr.building import DIGITS, ROOT, TWISTER_SECONDS, change_model, copy_of_digits, run, twister

pytestmark = pytest.mark.timeout(2 * TWISTER_SECONDS)

# A 64-bit host without 32-bit libraries can only build the 64-bit variant; there, they are the same code.
NATIVE = "native_sim/native/64"
BOARDS = [
    "qemu_cortex_m3",  # mps2/an385, with the same core, runs the tests of threads and slots
    "qemu_cortex_m4",  # DSP instructions; ours, as is the next
    "qemu_cortex_m7",
    "mps2/an521/cpu0",  # Cortex-M33 without DSP
    "mps3/corstone300/an547",  # Cortex-M55 with MVE
    NATIVE,
]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], str]:
    """The sample names the boards that every workspace has; here it runs on ours, too."""
    folder = tmp_path_factory.mktemp("twister")
    app = copy_of_digits(folder / "digits")
    sample = yaml.safe_load((DIGITS / "sample.yaml").read_text())
    sample["tests"]["sample.tinyml.digits"]["platform_allow"] = BOARDS
    (app / "sample.yaml").write_text(yaml.safe_dump(sample))
    return twister([app, ROOT / "tests" / "zephyr" / "shell"], BOARDS, folder)


def ended(results: dict[tuple[str, str], str], test: str, board: str) -> list[str]:
    """Twister names a platform in full, with the SoC where a board has only one."""
    return [status for (name, place), status in results.items() if name == test and place.startswith(board)]


@pytest.mark.parametrize("board", BOARDS)
def test_digits(results: dict[tuple[str, str], str], board: str) -> None:
    assert ended(results, "sample.tinyml.digits", board) == ["passed"], results


@pytest.mark.parametrize("board", ["qemu_cortex_m3", NATIVE])
def test_registry_shell_and_profile(results: dict[tuple[str, str], str], board: str) -> None:
    assert ended(results, "tinyml.shell", board) == ["passed"], results


def test_a_written_test_guards_a_model(tmp_path: Path) -> None:
    """Passes with the model it was written for, fails with another. It also has rows of a test set."""
    digits = pytest.importorskip("sklearn.datasets").load_digits()
    app = copy_of_digits(tmp_path / "app")
    images = (digits.images / 16).astype(np.float32)[:, np.newaxis]
    np.savez(app / "test.npz", image=images[::5], y=digits.target[::5])
    with (app / "tinyml.yaml").open("a") as manifest:
        manifest.write("    evaluate: {data: test.npz, labels: y, min_accuracy: 0.95, rows: 32}\n")
    run(["west", "tinyml", "test", "digits"], app)
    right = twister([app / "tests"], ["qemu_cortex_m3", NATIVE], tmp_path)
    assert sorted(right.values()) == ["passed", "passed"], right
    said = [path.read_text(errors="replace") for path in tmp_path.rglob("handler.log")]
    assert len(re.findall(r"3[12] of 32 decisions are right; 31 are required", "".join(said))) == 2
    change_model(app / "model.onnx")
    wrong = twister([app / "tests"], [NATIVE], tmp_path)
    assert [status.split()[0] for status in wrong.values()] == ["failed"]
