# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Boards that are known without Zephyr: their table, their names, and the verbs that take them."""

from __future__ import annotations

from pathlib import Path

import pytest

import tinyml
from tinyml.api.costs import cost_of
from tinyml.base.errors import ConfigError
from tinyml.cores.boards import Board, known_board, known_boards, similar_board
from tinyml.cores.machines import find_machine
from tinyml.cores.targets import TARGETS
from tinyml.harness.zephyr import kconfig
from tinyml.harness.zephyr.boards import find_board
from tinyml.verbs.cli import main
from tools import known_boards as page

DIGITS = Path(__file__).parents[2] / "samples" / "digits" / "model.onnx"


@pytest.fixture
def no_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TINYML_WORKSPACE", "ZEPHYR_BASE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


def test_the_table_is_consistent() -> None:
    names = [name for board in known_boards() for name in board.names()]
    assert len(names) == len(set(names))
    for board in known_boards():
        assert board.target in TARGETS
        assert board.title
        if board.machine:
            assert find_machine(board.machine).target.name == board.target


def test_the_page_is_up_to_date() -> None:
    assert page.PAGE.read_text() == page.page(), "run: python -m tools.known_boards"


@pytest.mark.parametrize(
    "name,found",
    [
        ("nrf52840dk/nrf52840", "nrf52840dk/nrf52840"),
        ("nrf52840dk", "nrf52840dk/nrf52840"),
        ("nrf52840dk_nrf52840", "nrf52840dk/nrf52840"),  # until Zephyr 3.6
        ("nrf52840_dk", "nrf52840dk/nrf52840"),  # PlatformIO
        ("nrf5340dk@2.0.0/nrf5340/cpuapp", "nrf5340dk/nrf5340/cpuapp"),
        ("nrf52840dk@1.0.0", "nrf52840dk/nrf52840"),
        ("nano33ble", "arduino_nano_33_ble"),
    ],
)
def test_names(name: str, found: str, no_workspace: None) -> None:
    assert find_board(name).name == found


def test_a_short_name_of_several_boards_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"short for several boards.*\n.*m33 or .*hazard3"):
        known_board("rpi_pico2")


def test_variants_without_zephyr(no_workspace: None) -> None:
    """The non-secure image has the same core; its memory is known to Zephyr only."""
    assert find_board("nrf5340dk/nrf5340/cpuapp/ns").name == "nrf5340dk/nrf5340/cpuapp"
    assert similar_board("nrf5340dk/nrf5340/cpunet") is None


def test_unknown_boards(no_workspace: None) -> None:
    with pytest.raises(ConfigError, match="'nucleo_f446r' is not known; did you mean nucleo_f446re"):
        find_board("nucleo_f446r")
    with pytest.raises(ConfigError, match=r"'nrf5340dk/nrf5340/cpunet' is not known(?s:.*)workspace"):
        find_board("nrf5340dk/nrf5340/cpunet")


def test_cost_and_report_of_a_board(no_workspace: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cost", str(DIGITS), "-b", "nucleo_u575zi_q"]) == 0
    said = capsys.readouterr().out
    assert "nucleo_u575zi_q: cortex-m33 at 160 MHz, 768 KiB of RAM, 2048 KiB of flash" in said
    assert "ms per run at 160 MHz" in said
    assert "on an STM32U575" in said
    assert "of 786,432 bytes" in said
    assert main(["report", str(DIGITS), "-b", "nrf52840dk", "--mhz", "32"]) == 0
    said = capsys.readouterr().out
    assert "nrf52840dk/nrf52840: cortex-m4" in said
    assert "ms per run at 32 MHz" in said
    assert "flash budget" in said
    assert "energy" not in said  # no figure was published for this chip
    assert main(["report", str(DIGITS), "-b", "nrf52840dk", "--ram", "1k"]) == 1
    assert "over budget: RAM" in capsys.readouterr().out
    assert main(["report", str(DIGITS), "-b", "nrf52840dk", "--on", "qemu-cortex-m7"]) == 1
    assert "does not have the core of nrf52840dk/nrf52840" in capsys.readouterr().err


def test_costs_are_compared_with_the_memory() -> None:
    compiled = tinyml.compile(DIGITS, target="cortex-m4")
    assert cost_of(compiled, Board("large", "cortex-m4", 64 * 1024, 64 * 1024)).fits
    assert not cost_of(compiled, Board("no RAM", "cortex-m4", 1024, 64 * 1024)).fits
    assert not cost_of(compiled, Board("no flash", "cortex-m4", 64 * 1024, 1024)).fits
    assert cost_of(compiled, Board("unknown", "cortex-m4")).fits
    assert tinyml.cost(DIGITS, board="rpi_pico").target == "cortex-m0"


KCONFIG = """\
config BOARD_X
\tselect SOC_X_APP if BOARD_X_SOC_APP || \\
\t\tBOARD_X_SOC_APP_NS
\tselect SOC_X_NET if BOARD_X_SOC_NET

config SOC_X_APP
\tselect SOC_SERIES_X
\tselect CPU_HAS_FPU
\tselect ARMV8_M_DSP

config SOC_X_NET
\tselect SOC_SERIES_X

config SOC_SERIES_X
\tselect ARM
\tselect CPU_CORTEX_M33
"""


@pytest.mark.parametrize("cpu,dsp", [("APP", True), ("APP_NS", True), ("NET", False)])
def test_symbols_that_a_board_selects(cpu: str, dsp: bool, tmp_path: Path) -> None:
    (tmp_path / "Kconfig.x").write_text(KCONFIG)
    found = kconfig.selected([tmp_path], {"BOARD_X", f"BOARD_X_SOC_{cpu}"})
    assert "CPU_CORTEX_M33" in found
    assert ("ARMV8_M_DSP" in found) == dsp
