# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What one board needs: ``west tinyml doctor -b BOARD``. Nothing is built."""

from __future__ import annotations

import difflib
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import yaml

from tinyml.base.errors import ConfigError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.cores.toolchains import ARM, RISCV
from tinyml.harness.zephyr.compilers import has_sdk
from tinyml.harness.zephyr.failures import VENDOR_MODULES
from tinyml.harness.zephyr.site import OUR_BOARDS, Site, is_emulated
from tinyml.setup import doctor
from tinyml.setup.doctor import Row

BUILD, EMULATE = "build for it", "run it in an emulator"
FLASH, TALK = "write it to the board", "run on the board"

RUNNERS = {
    "stm32cubeprogrammer": ("STM32_Programmer_CLI", "STM32CubeProgrammer, from st.com"),
    "openocd": ("openocd", "apt-get install openocd, or Zephyr's SDK"),
    "openocd-stm32": ("openocd", "apt-get install openocd, or Zephyr's SDK"),
    "openocd-nrf5": ("openocd", "apt-get install openocd, or Zephyr's SDK"),
    "jlink": ("JLinkExe", "J-Link software, from segger.com"),
    "pyocd": ("pyocd", "pip install pyocd"),
    "nrfjprog": ("nrfjprog", "nRF Command Line Tools, from nordicsemi.com"),
    "nrfutil": ("nrfutil", "nRF Util, from nordicsemi.com"),
    "esp32": ("esptool.py", "pip install esptool"),
    "dfu-util": ("dfu-util", "apt-get install dfu-util"),
    "linkserver": ("LinkServer", "LinkServer, from nxp.com"),
    "bossac": ("bossac", "apt-get install bossa-cli"),
    "blackmagicprobe": ("gdb-multiarch", "apt-get install gdb-multiarch"),
}
"""Zephyr's ways to write an image: the program that each runs, and how to get it."""

_INCLUDED = re.compile(r"boards/common/([\w-]+)\.board\.cmake")
_COMPILERS = {"arm": ARM.compiler, "riscv": RISCV.compiler}


@dataclass(frozen=True)
class Board:
    """What Zephyr's files say about a board; memory in KiB."""

    name: str
    folder: Path
    facts: Mapping[str, Any]

    @property
    def socs(self) -> list[str]:
        """Names of its processors, from board.yml."""
        data = yaml.safe_load((self.folder / "board.yml").read_text(encoding="utf-8")) or {}
        boards = data.get("boards") or [data.get("board") or {}]
        name = self.name.partition("/")[0].partition("@")[0]
        return [soc["name"] for board in boards if board.get("name") == name for soc in board.get("socs", ())]


def find_board(site: Site, name: str) -> Board:
    """Raises ConfigError with similar names if Zephyr does not know the board."""
    short = name.partition("/")[0].partition("@")[0]
    known = _folders(site, next((ours for ours in OUR_BOARDS if name.startswith(ours)), ""))
    if short not in known:
        near = difflib.get_close_matches(short, known, 3)
        hint = f"did you mean {' or '.join(near)}?" if near else "`west boards` lists them"
        raise ConfigError(f"Zephyr has no board called {short!r}", hint)
    folder = Path(known[short])
    return Board(name, folder, _facts(folder, name))


@cache
def _folders(site: Site, ours: str) -> dict[str, str]:
    """The folder of every board; ``ours`` is one of this project, if its boards are to be among them."""
    done = subprocess.run(
        [*site.west, "boards", "-f", "{name} {dir}"],
        cwd=site.zephyr,
        env=site.environment(ours),
        capture_output=True,
        text=True,
        check=False,
    )
    return {word: folder for line in done.stdout.splitlines() for word, _, folder in [line.partition(" ")]}


def _facts(folder: Path, name: str) -> Mapping[str, Any]:
    """The description for Twister: of this variant of the board, else of the first."""
    found = [yaml.safe_load(path.read_text(encoding="utf-8")) or {} for path in sorted(folder.glob("*.yaml"))]
    own = [facts for facts in found if facts.get("identifier") == name]
    near = [facts for facts in found if str(facts.get("identifier", "")).startswith(name.partition("@")[0])]
    return next(iter([*own, *near]), {})


def check_board(site: Site, name: str) -> list[Row]:
    """Everything that building, emulating, flashing and running on this board takes."""
    board = find_board(site, name)
    writing = _flash(board)
    return [*_build(site, board), *_emulate(board), *writing, *(_talk() if writing else [])]


def _build(site: Site, board: Board) -> list[Row]:
    skipped = {ARM.compiler.name}
    common = [replace(row, purpose=BUILD) for row in doctor.zephyr() if row.part not in skipped]
    memory = ", ".join(
        f"{board.facts[kind]} KB of {word}"
        for kind, word in (("ram", "RAM"), ("flash", "flash"))
        if kind in board.facts
    )
    arch = str(board.facts.get("arch", ""))
    known = ", ".join(word for word in (arch, memory) if word) or str(board.folder)
    return [Row(BUILD, f"board {board.name}", known), *common, *_compiler(arch), *_drivers(site, board)]


def _compiler(arch: str) -> list[Row]:
    """Zephyr's SDK compiles for all; Debian has compilers for two families."""
    if arch in ("", "posix", "host"):
        return []
    part = _COMPILERS.get(arch)
    if "ZEPHYR_SDK_INSTALL_DIR" in os.environ or has_sdk():
        return [Row(BUILD, f"compiler for {arch}", "Zephyr's SDK")]
    if part is None:
        hint = "Zephyr's SDK: west sdk install"
        chosen = os.environ.get("ZEPHYR_TOOLCHAIN_VARIANT", "")
        return [
            Row(BUILD, f"compiler for {arch}", chosen if chosen not in ("gnuarmemb", "") else "", hint=hint)
        ]
    return [Row(BUILD, part.name, shutil.which(part.name) or "", (part.debian,))]


def _drivers(site: Site, board: Board) -> list[Row]:
    """The vendor's west project, by the folder of the processor in Zephyr."""
    wanted = set(board.socs)
    for path in (site.zephyr / "soc").glob("*/**/soc.yml"):
        text = path.read_text(encoding="utf-8")
        if any(re.search(rf"name: {re.escape(soc)}\s*$", text, re.MULTILINE) for soc in wanted):
            vendor = path.relative_to(site.zephyr / "soc").parts[0]
            if module := VENDOR_MODULES.get(vendor):
                return [_project(site, module)]
    return []


def _project(site: Site, module: str) -> Row:
    done = subprocess.run(
        [*site.west, "list", "-f", "{name} {abspath}"],
        cwd=site.zephyr,
        capture_output=True,
        text=True,
        check=False,
    )
    places = {word: folder for line in done.stdout.splitlines() for word, _, folder in [line.partition(" ")]}
    place = places.get(module, "")
    hint = (
        f"west update {module}"
        if place
        else f"add {module} to the projects in west.yml (or to the name-allowlist of Zephyr's import), then "
        f"west update {module}"
    )
    found = place if place and Path(place).is_dir() else ""
    return Row(BUILD, f"{module} (the vendor's drivers)", found, hint=hint)


def _emulate(board: Board) -> list[Row]:
    if not is_emulated(board.folder):
        hint = f"there is none for {board.name}: connect the board and use --serial PORT"
        return [Row(EMULATE, "emulator", "", hint=hint)]
    programs = {"arm": ARM.emulator, "riscv": RISCV.emulator}
    if part := programs.get(str(board.facts.get("arch", ""))):
        return [Row(EMULATE, part.name, shutil.which(part.name) or "", (part.debian,))]
    return [Row(EMULATE, "emulator", "this computer" if "native" in board.name else "chosen by Zephyr")]


def _flash(board: Board) -> list[Row]:
    """One of the programs is enough; the first one is Zephyr's default."""
    script = board.folder / "board.cmake"
    text = script.read_text(encoding="utf-8") if script.is_file() else ""
    runners = [runner for runner in dict.fromkeys(_INCLUDED.findall(text)) if runner in RUNNERS]
    rows = []
    for runner in runners:
        program, hint = RUNNERS[runner]
        default = " (Zephyr's default)" if runner == runners[0] else ""
        rows.append(
            Row(FLASH, f"{program} for --runner {runner}{default}", shutil.which(program) or "", hint=hint)
        )
    if any(row.found for row in rows):
        return [replace(row, optional=not row.found) for row in rows]
    return [rows[0], *(replace(row, optional=True) for row in rows[1:])] if rows else []


def _talk() -> list[Row]:
    """A serial port and the package that opens it."""
    if find_spec("serial") is None:
        return [Row(TALK, "Python package pyserial", "", extra="serial")]
    from serial.tools import list_ports

    ports = ", ".join(port.device for port in list_ports.comports() if port.hwid != "n/a")
    hint = "connect the board by USB; --serial takes the name of the port"
    return [Row(TALK, "Python package pyserial", "present"), Row(TALK, "serial ports", ports, hint=hint)]
