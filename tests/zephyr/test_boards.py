# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Real boards: their images are built, but not run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.zephyr.building import DIGITS, TWISTER_SECONDS, run, twister
from tinyml.verbs.cli import main

pytestmark = pytest.mark.timeout(TWISTER_SECONDS)

BOARDS = {
    "nrf52840dk/nrf52840": "hal_nordic",
    "nucleo_f446re": "hal_stm32",
    "nucleo_h743zi": "hal_stm32",
}


def require(project: str) -> None:
    """Skip where the workspace lacks the project, by name."""
    told = run(["west", "list", "-f", "{name} {cloned}"], DIGITS)
    if f"{project} cloned" not in told.splitlines():
        pytest.skip(
            f"no {project} in the workspace: west config manifest.group-filter -- +boards; west update"
        )


@pytest.mark.parametrize("board", BOARDS)
def test_digits_are_built(board: str, tmp_path: Path) -> None:
    require(BOARDS[board])
    results = twister([DIGITS], [board], tmp_path)
    (ended,) = (status for (name, _), status in results.items() if BOARDS[board][4:7] in name)
    assert ended.split()[0] in ("passed", "not"), results  # "not run": the test only builds


def test_a_board_without_an_emulator_requires_a_port(capsys: pytest.CaptureFixture[str]) -> None:
    require("hal_nordic")
    assert main(["verify", str(DIGITS / "model.onnx"), "-b", "nrf52840dk/nrf52840"]) == 1
    said = capsys.readouterr().err
    assert "nrf52840dk/nrf52840 is hardware: Zephyr has no emulator for it" in said
    assert "--serial PORT" in said
