# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""``tinyml doctor -b BOARD`` on a small Zephyr tree: what the board needs, and how to get it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tinyml.base.errors import ConfigError
from tinyml.harness.zephyr.board_check import BUILD, EMULATE, FLASH, TALK, check_board
from tinyml.harness.zephyr.site import Site
from tinyml.setup import doctor
from tinyml.setup.doctor import Row

WEST = """
import sys
from pathlib import Path
root = Path(__file__).parent
if sys.argv[1] == "boards":
    for folder in sorted((root / "zephyr" / "boards" / "st").iterdir()):
        print(folder.name, folder)
else:
    print("manifest", root / "west-tinyml")
    for project in root.glob("hal_*"):
        print(project.name, project)
"""
RUNNERS = """
include(${ZEPHYR_BASE}/boards/common/stm32cubeprogrammer.board.cmake)
include(${ZEPHYR_BASE}/boards/common/openocd-stm32.board.cmake)
"""


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    zephyr = tmp_path / "zephyr"
    write(zephyr / "VERSION", "VERSION_MAJOR = 4\nVERSION_MINOR = 3\nPATCHLEVEL = 1\n")
    write(zephyr / "soc" / "st" / "stm32" / "soc.yml", "family:\n  socs:\n  - name: stm32f446xx\n")
    board = zephyr / "boards" / "st" / "nucleo_f446re"
    write(board / "board.yml", "board:\n  name: nucleo_f446re\n  socs:\n  - name: stm32f446xx\n")
    write(board / "nucleo_f446re.yaml", "identifier: nucleo_f446re\narch: arm\nram: 128\nflash: 512\n")
    write(board / "board.cmake", RUNNERS)
    emulated = zephyr / "boards" / "st" / "pretend"
    write(emulated / "board.yml", "board:\n  name: pretend\n")
    write(emulated / "pretend.yaml", "identifier: pretend\narch: arm\n")
    write(emulated / "board.cmake", "set(SUPPORTED_EMU_PLATFORMS qemu)\n")
    write(tmp_path / "west.py", WEST)
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setenv("ZEPHYR_BASE", str(zephyr))
    monkeypatch.delenv("ZEPHYR_SDK_INSTALL_DIR", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return Site(zephyr, (sys.executable, str(tmp_path / "west.py")))


def program(site: Site, name: str) -> None:
    path = site.zephyr.parent / "bin" / name
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)


def found(rows: list[Row]) -> dict[str, str]:
    return {row.part: row.found for row in rows}


def test_a_board_that_lacks_everything(site: Site) -> None:
    rows = check_board(site, "nucleo_f446re")
    parts = found(rows)
    assert parts["board nucleo_f446re"] == "arm, 128 KB of RAM, 512 KB of flash"
    assert parts["hal_stm32 (the vendor's drivers)"] == ""
    assert parts["arm-none-eabi-gcc"] == ""
    able = doctor.able(rows)
    assert not able[BUILD]
    assert not able[EMULATE]
    assert not able[FLASH]
    ways = "\n".join(doctor.remedies(rows))
    assert "west update hal_stm32" in ways
    assert "gcc-arm-none-eabi" in ways
    assert "use --serial PORT" in ways


def test_a_board_with_its_drivers_and_one_program_to_flash_it(site: Site) -> None:
    (site.zephyr.parent / "hal_stm32").mkdir()
    program(site, "arm-none-eabi-gcc")
    program(site, "openocd")
    rows = check_board(site, "nucleo_f446re")
    parts = found(rows)
    assert parts["hal_stm32 (the vendor's drivers)"].endswith("hal_stm32")
    assert parts["arm-none-eabi-gcc"].endswith("arm-none-eabi-gcc")
    assert doctor.able(rows)[FLASH], "one program is enough"
    assert [row.optional for row in rows if row.purpose == FLASH] == [True, False]


def test_a_board_with_an_emulator_needs_no_cable(site: Site) -> None:
    program(site, "qemu-system-arm")
    rows = check_board(site, "pretend")
    assert doctor.able(rows)[EMULATE]
    assert {FLASH, TALK}.isdisjoint(row.purpose for row in rows)


def test_similar_names_are_suggested(site: Site) -> None:
    with pytest.raises(ConfigError, match="no board called 'nucleo_f446er'") as raised:
        check_board(site, "nucleo_f446er")
    assert raised.value.hint == "did you mean nucleo_f446re?"
