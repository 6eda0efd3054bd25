"""The samples as Twister runs them: outputs on the device against those of the host, byte for byte."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from tests.zephyr.building import DIGITS, change_model, copy_of_digits, run, twister

# A 64-bit host without 32-bit libraries can only build the 64-bit variant; there, they are the same code.
NATIVE = "native_sim/native/64"
BOARDS = [
    "qemu_cortex_m3",
    "mps2/an385",
    "qemu_cortex_m4",  # DSP instructions; ours, as is the next
    "qemu_cortex_m7",
    "mps3/corstone300/an547",  # Cortex-M55 with MVE
    NATIVE,
]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Platform -> how the digits sample ended there."""
    return twister(DIGITS, BOARDS, tmp_path_factory.mktemp("twister"))


@pytest.mark.parametrize("board", BOARDS)
def test_digits(results: dict[str, str], board: str) -> None:
    """Twister names a platform in full, with the SoC where a board has only one."""
    ended = [status for name, status in results.items() if name.startswith(board)]
    assert ended == ["passed"], f"{results} on {platform.machine()}"


def test_a_written_test_guards_a_model(tmp_path: Path) -> None:
    """`west tinyml add --test`: passes with the model it was written for, fails with another."""
    app = copy_of_digits(tmp_path / "app")
    (app / "tinyml.yaml").unlink()
    run(["west", "tinyml", "add", "model.onnx", "--name", "digits", "--test"], app)
    boards = ["qemu_cortex_m3", NATIVE]
    assert set(twister(app / "tests", boards, tmp_path).values()) == {"passed"}
    change_model(app / "model.onnx")
    ended = twister(app / "tests", [NATIVE], tmp_path)
    assert [status.split()[0] for status in ended.values()] == ["failed"]
