"""`report`, `verify` and `profile` know an application's models by name, and boards by theirs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tinyml.cli import main
from tinyml.verbs.named import BOARDS, _machine
from tinyml.verbs.run import MACHINES

APP = Path(__file__).parents[2] / "samples" / "digits"


def test_every_board_is_a_machine() -> None:
    assert set(BOARDS.values()) == set(MACHINES)
    assert _machine("native_sim/native/64") == "host"
    assert _machine("mps3/corstone300/an547") == "qemu-cortex-m55"


def test_model_by_its_name(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(APP / "src")
    assert main(["report", "digits"]) == 0
    assert "digits for cortex-m3" in capsys.readouterr().out
    assert main(["verify", "digits", "-b", "native_sim", "--samples", "1"]) == 0
    assert "agrees on host" in capsys.readouterr().out


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
        (["digits", "--app", str(APP), "-b", "nrf52840dk"], "not a board that can be emulated"),
    ],
)
def test_mistakes(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", *arguments]) == 1
    assert words in capsys.readouterr().err.replace("\n", " ")
