# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Build the digits sample for boards that users have, and record what was built and why the rest was not.

``python -m tools.boards [--hals DIR] [BOARD ...]`` builds in this clone's west workspace and updates the
boards' lines in docs/BOARDS.md. The HALs come from the workspace (`west config manifest.group-filter --
+boards && west update`), or from DIR with a folder ``hal_nordic``, ``hal_stm32`` or ``hal_rpi_pico``.
The compiler is Debian's; ``rpi_pico`` also requires its package picolibc-arm-none-eabi.
Building is all that is tested: nothing runs on these boards here.
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tools import workspace
from tools.environment import ROOT, VENV

BOARDS = {
    "nrf52840dk/nrf52840": "hal_nordic",
    "nrf5340dk/nrf5340/cpuapp": "hal_nordic",
    "nucleo_f446re": "hal_stm32",
    "nucleo_h743zi": "hal_stm32",
    "nucleo_u575zi_q": "hal_stm32",
    "rpi_pico": "hal_rpi_pico",
    "rpi_pico2/rp2350a/m33": "hal_rpi_pico",
}
"""The boards, each with the module that its drivers require."""
ENVIRONMENT = {"rpi_pico": {"LDFLAGS": "-Wl,-u,_stage2_boot"}}
"""For boards that need it. Debian's picolibc, which the Pico's boot loader is linked with, removes unused
sections, and the loader's linker script names no entry."""
PAGE = ROOT / "docs" / "BOARDS.md"
HEADER = """\
# Boards

Real boards that the digits sample was built for, with `west build`. Nothing was run on them: the same C
runs in QEMU on Cortex-M0, M3, M4, M7, M33 and M55 and on RISC-V. `python -m tools.boards` writes this page; a
board that was not built has the reason. `rpi_pico` requires Debian's package picolibc-arm-none-eabi.

| board | target | FPU | flash | RAM | result | Zephyr | date |
|---|---|---|---:|---:|---|---|---|
"""


@dataclass(frozen=True)
class Result:
    """How a build ended, and the facts of one that succeeded."""

    text: str
    target: str = ""
    fpu: str = ""
    flash: str = ""
    ram: str = ""

    @property
    def built(self) -> bool:
        return self.text == "built"


def find_hal(name: str, place: Path, hals: Path | None) -> Path | None:
    """The folder of a HAL: the given one, or the workspace's."""
    folders = [place / "modules" / "hal" / name.removeprefix("hal_")]
    if hals is not None:
        folders.insert(0, hals / name)
    return next((folder for folder in folders if (folder / "zephyr" / "module.yml").is_file()), None)


def build(board: str, hal: Path, place: Path, folder: Path) -> Result:
    """Build the sample for a board."""
    settings = {**workspace.environment(place), **ENVIRONMENT.get(board, {})}
    if not hal.is_relative_to(place):
        settings["EXTRA_ZEPHYR_MODULES"] = str(hal)
    sample = ROOT / "samples" / "digits"
    command = [
        str(VENV / "bin" / "west"),
        "build",
        "-p",
        "always",
        "-b",
        board,
        "-d",
        str(folder),
        str(sample),
    ]
    done = subprocess.run(command, cwd=place, env=settings, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    if done.returncode:
        return Result(f"failed: {reason(said)}")
    used = {name: f"{int(count):,}" for name, count in re.findall(r"^\s*(FLASH|RAM):\s+(\d+) B", said, re.M)}
    summary = json.loads((folder / "tinyml" / "digits" / "digits.json").read_text())
    config = (folder / "zephyr" / ".config").read_text()
    fpu = "on" if "CONFIG_FPU=y" in config else "off" if "CONFIG_CPU_HAS_FPU=y" in config else "none"
    return Result("built", summary["target"], fpu, used.get("FLASH", ""), used.get("RAM", ""))


def reason(said: str) -> str:
    """The first line of a build's output that looks like the cause."""
    lines = [line.strip() for line in said.splitlines()]
    marks = ("error:", "Error", "undefined reference", "No board", "fatal")
    found = next((line for line in lines if any(mark in line for mark in marks)), lines[-1] if lines else "")
    return re.sub(r"\S*/(?=\S)", "", found).replace("|", "/")[:120]


def line(board: str, result: Result, zephyr: str, date: str) -> str:
    facts = [f"`{board}`", result.target, result.fpu, result.flash, result.ram, result.text, zephyr, date]
    return f"| {' | '.join(facts)} |"


def renew(page: str, new: dict[str, str]) -> str:
    """The page with the lines of these boards replaced."""
    old = {found[1]: text for text in page.splitlines() if (found := re.match(r"\| `(.+?)` \|", text))}
    return HEADER + "\n".join(text for _, text in sorted({**old, **new}.items())) + "\n"


def zephyr_version(place: Path) -> str:
    text = (place / "zephyr" / "VERSION").read_text()
    fields = dict(re.findall(r"^(\w+) *= *(\w*)", text, re.M))
    return ".".join(fields[key] for key in ("VERSION_MAJOR", "VERSION_MINOR", "PATCHLEVEL"))


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description="build the digits sample for boards that users have")
    parser.add_argument("boards", nargs="*", metavar="BOARD", help=f"default: {', '.join(BOARDS)}")
    parser.add_argument("--hals", type=Path, metavar="DIR", help="folder with hal_nordic, hal_stm32, ...")
    args = parser.parse_args(argv)
    place = workspace.find()
    if place is None:
        print(workspace.why_not(workspace.location()), file=sys.stderr)
        return 1
    zephyr, date = zephyr_version(place), datetime.date.today().isoformat()
    failed = False
    for board in args.boards or BOARDS:
        name = BOARDS.get(board, "")
        hal = find_hal(name, place, args.hals)
        if hal is None:
            result = Result(f"not tried: no module {name or 'known for it'} in the workspace")
        else:
            with tempfile.TemporaryDirectory() as folder:
                result = build(board, hal, place, Path(folder))
        failed |= hal is not None and not result.built
        print(f"{board}: {result.text}", flush=True)
        PAGE.write_text(
            renew(PAGE.read_text() if PAGE.exists() else "", {board: line(board, result, zephyr, date)})
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
