# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`report`, `verify` and `profile` know an application's models by name, and boards by theirs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tinyml.cores.boards import emulated_boards
from tinyml.cores.machines import MACHINES
from tinyml.verbs.cli import main
from tinyml.verbs.named import machine_of

APP = Path(__file__).parents[2] / "samples" / "digits"


def test_every_board_is_a_machine() -> None:
    assert set(MACHINES) - set(emulated_boards().values()) == {
        "qemu-cortex-m33",
        "qemu-riscv32-zve32x",
        "qemu-riscv32-zve32f",
        "qemu-xtensa",
        "qemu-xtensa-de212",
        "qemu-xtensa-sample_controller",
    }  # not boards of Zephyr's
    assert machine_of("native_sim/native/64") == "host"
    assert machine_of("mps3/corstone300/an547") == "qemu-cortex-m55"


def test_model_by_its_name(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(APP / "src")
    assert main(["report", "digits"]) == 0
    assert "digits for cortex-m3" in capsys.readouterr().out
    assert main(["verify", "digits", "--samples", "1"]) == 0
    assert "agrees on host" in capsys.readouterr().out


def test_without_a_workspace_a_board_is_its_core(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And the output says so; a serial port has no such substitute."""
    for name in ("TINYML_WORKSPACE", "ZEPHYR_BASE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    model = str(APP / "model.onnx")
    assert main(["verify", model, "-b", "native_sim", "--samples", "1"]) == 0
    said = capsys.readouterr().out
    assert "no Zephyr image: Zephyr was not found" in said
    assert "agrees on host" in said
    assert main(["verify", model, "-b", "nrf52840dk/nrf52840"]) == 1
    assert "not a board that can be emulated" in capsys.readouterr().err
    assert main(["verify", model, "-b", "native_sim", "--serial", "/dev/null"]) == 1
    assert "Zephyr was not found" in capsys.readouterr().err
    assert main(["verify", model, "--serial", "/dev/null"]) == 1
    assert "--serial requires the name of the board" in capsys.readouterr().err


def test_model_by_its_name_from_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["report", "digits", "--app", str(APP)]) == 0
    assert "digits for cortex-m3" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments,words",
    [
        (["other", "--app", str(APP)], "no model of that name"),
        (["absent.onnx"], "absent.onnx"),
        (["digits", "--app", str(APP), "-b", "nrf52840dkk"], "did you mean nrf52840dk"),
    ],
)
def test_mistakes(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", *arguments]) == 1
    assert words in capsys.readouterr().err.replace("\n", " ")
