# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What is installed, what is missing and how to get it: ``tinyml doctor``.

Parts are grouped by purpose, because no user needs all of them. Only the first group, compiling a
model, must be complete.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from tinyml import __version__
from tinyml.base.errors import TinymlError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.cores.toolchains import ARM, RISCV, RISCV_VECTOR, XTENSA, Toolchain
from tinyml.setup import installation, workspace, zephyr_descriptor

if TYPE_CHECKING:
    from rich.console import Console

COMPILE = "compile models"
QUANTIZE = "quantise, compare"
HOST = "run on the host"
QEMU = "run on QEMU"
QEMU_RISCV = "run on QEMU, RISC-V"
QEMU_XTENSA = "run on QEMU, Xtensa"
WEB = "pages for a browser"
ZEPHYR = "build with Zephyr"
PLATFORMIO = "build with PlatformIO"

ARM_MACHINES = {
    "microbit": "Cortex-M0",
    "mps2-an385": "Cortex-M3",
    "mps2-an386": "Cortex-M4",
    "mps2-an500": "Cortex-M7",
    "mps2-an505": "Cortex-M33",
    "mps2-an521": "Cortex-M33 without DSP",
    "mps3-an547": "Cortex-M55",
}
RISCV_MACHINES = {"virt": "RV32"}
XTENSA_MACHINES = {"sim": "lx106, de212, sample_controller"}
SECONDS = 10  # time limit for a program to print its version


@dataclass(frozen=True)
class Row:
    """One part. ``found`` is its version or place, empty if it is missing; the rest: how to install it."""

    purpose: str
    part: str
    found: str
    debian: tuple[str, ...] = ()  # Debian and Ubuntu packages that contain it
    extra: str | None = None  # the extra of this project ("" for none) that installs it
    hint: str = ""  # any other way
    optional: bool = False

    @property
    def ok(self) -> bool:
        return bool(self.found) or self.optional


def _ask(*command: str) -> str:
    """The output of a program; empty if there is no such program or it fails."""
    if shutil.which(command[0]) is None:
        return ""
    try:
        answer = subprocess.run(
            command, capture_output=True, text=True, timeout=SECONDS, check=True, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return answer.stdout


def _version(*command: str) -> str:
    """The version number in the first line of a program's output."""
    first = _ask(*command).strip().partition("\n")[0]
    number = re.search(r"\d+(\.\d+)+", re.sub(r"\(.*?\)", "", first)) or re.search(r"\d+(\.\d+)+", first)
    return number.group() if number else first


def _packages(purpose: str, extra: str, names: Iterable[str]) -> list[Row]:
    """Python packages by their distribution name."""
    rows = []
    for name in names:
        try:
            found = metadata.version(name)
        except metadata.PackageNotFoundError:
            found = ""
        rows.append(Row(purpose, f"Python package {name}", found, extra=extra))
    return rows


def _compile() -> list[Row]:
    names = ("numpy", "onnx", "tflite", "flatbuffers", "Jinja2", "PyYAML", "rich")
    return [Row(COMPILE, "Python", platform.python_version()), *_packages(COMPILE, "", names)]


def _quantize() -> list[Row]:
    (litert,) = _packages(QUANTIZE, "litert", ("ai-edge-litert",))
    note = replace(litert, part=f"{litert.part} (reference for TFLite models)", optional=True)
    return [*_packages(QUANTIZE, "quantize", ("onnxruntime",)), note]


def _host() -> list[Row]:
    compiler = next((name for name in ("gcc", "cc", "clang") if shutil.which(name)), "gcc")
    return [Row(HOST, f"C compiler {compiler}", _version(compiler, "--version"), ("gcc",))]


def _compiler(purpose: str, toolchain: Toolchain) -> Row:
    part = toolchain.compiler
    return Row(purpose, part.name, _version(part.name, "--version"), (part.debian,))


def _emulation(purpose: str, toolchain: Toolchain, machines: Mapping[str, str]) -> list[Row]:
    library, emulator = toolchain.library, toolchain.emulator
    known = _ask(emulator.name, "-machine", "help")
    rows = [
        _compiler(purpose, toolchain),
        Row(purpose, library.name, "" if library in toolchain.missing() else "present", (library.debian,)),
        Row(purpose, emulator.name, _version(emulator.name, "--version"), (emulator.debian,)),
    ]
    for machine, core in machines.items():
        found = "emulated" if re.search(rf"^{machine}\b", known, re.MULTILINE) else ""
        hint = "QEMU 7.2 or later has all these machines"
        rows.append(Row(purpose, f"{core} ({machine})", found, hint=hint))
    return rows


def _qemu() -> list[Row]:
    return _emulation(QEMU, ARM, ARM_MACHINES)


def _qemu_riscv() -> list[Row]:
    clang = replace(_compiler(QEMU_RISCV, RISCV_VECTOR), optional=True)
    vectors = replace(clang, part=f"{clang.part} (vectors: qemu-riscv32-zve32x, -zve32f)")
    return [*_emulation(QEMU_RISCV, RISCV, RISCV_MACHINES), vectors]


def _qemu_xtensa() -> list[Row]:
    return _emulation(QEMU_XTENSA, XTENSA, XTENSA_MACHINES)


def _web() -> list[Row]:
    """What `tinyml web` compiles with: clang prints the bare name of a file that it does not find."""
    rows = [
        Row(WEB, "clang", _version("clang", "--version"), ("clang",)),
        Row(WEB, "wasm-ld", _version("wasm-ld", "--version"), ("lld",)),
    ]
    files = {"wasi-libc": "-print-file-name=libc.a", "libclang-rt-dev-wasm32": "-print-libgcc-file-name"}
    for package, option in files.items():
        path = Path(_ask("clang", "--target=wasm32-wasi", option).strip() or ".")
        rows.append(Row(WEB, package, "present" if path.is_absolute() and path.is_file() else "", (package,)))
    return rows


def _zephyr_version(tree: Path) -> str:
    text = (tree / "VERSION").read_text()
    fields = dict(re.findall(r"^(\w+) *= *(\w*)", text, re.MULTILINE))
    return ".".join(fields.get(key, "?") for key in ("VERSION_MAJOR", "VERSION_MINOR", "PATCHLEVEL"))


def _cmsis_nn() -> Row:
    try:
        place = workspace.find_cmsis_nn()
        found, hint = (str(place) if place else ""), "add the project cmsis-nn to your west manifest"
    except TinymlError as error:
        found, hint = "", str(error)
    return Row(ZEPHYR, "CMSIS-NN (faster kernels)", found, hint=hint, optional=True)


def _descriptor(tree: Path) -> list[Row]:
    """Whether this Zephyr accepts the module that belongs to the command: in a workspace, the workspace's."""
    module = installation.zephyr_module()
    if module is None:
        return []
    file, version = module / zephyr_descriptor.FILE, _zephyr_version(tree)
    refused = zephyr_descriptor.is_refused(file.read_text(encoding="utf-8"), version)
    hint = (
        f"Zephyr {version} refuses the key package-managers in {file}. For Zephyr 3.7 and 4.0, set "
        f"`revision: {zephyr_descriptor.revision_for_old_zephyr(__version__)}` of west-tinyml in the west "
        "manifest and run `west update`"
    )
    return [Row(ZEPHYR, "module.yml for this Zephyr", "" if refused else str(file), hint=hint)]


def zephyr() -> list[Row]:
    """What builds with Zephyr need, whatever the board."""
    tree = workspace.find_zephyr()
    where = f"{_zephyr_version(tree)} in {tree}" if tree else ""
    get = "in this repository: make setup; elsewhere: west init, west update, and set ZEPHYR_BASE"
    toolchain = os.environ.get("ZEPHYR_TOOLCHAIN_VARIANT") or os.environ.get("ZEPHYR_SDK_INSTALL_DIR", "")
    set_it = (
        "export ZEPHYR_TOOLCHAIN_VARIANT=gnuarmemb GNUARMEMB_TOOLCHAIN_PATH=/usr, or install Zephyr's SDK"
    )
    return [
        *_packages(ZEPHYR, "zephyr", ("west", "pyelftools", "pykwalify", "jsonschema")),
        Row(ZEPHYR, "cmake", _version("cmake", "--version"), ("cmake",)),
        Row(ZEPHYR, "ninja", _version("ninja", "--version"), ("ninja-build",)),
        Row(ZEPHYR, "dtc", _version("dtc", "--version"), ("device-tree-compiler",)),
        Row(ZEPHYR, "gperf", _version("gperf", "--version"), ("gperf",)),
        _compiler(ZEPHYR, ARM),
        Row(ZEPHYR, "Zephyr", where, hint=get),
        *(_descriptor(tree) if tree else []),
        Row(ZEPHYR, "choice of toolchain", toolchain, hint=set_it, optional=True),
        _cmsis_nn(),
    ]


def _platformio() -> list[Row]:
    return _packages(PLATFORMIO, "platformio", ("platformio",))


CHECKS: tuple[Callable[[], list[Row]], ...] = (
    _compile,
    _quantize,
    _host,
    _qemu,
    _qemu_riscv,
    _qemu_xtensa,
    _web,
    zephyr,
    _platformio,
)


def examine() -> list[Row]:
    """Check this machine."""
    return [row for check in CHECKS for row in check()]


def able(rows: Sequence[Row]) -> dict[str, bool]:
    """For each purpose, whether everything it needs is there."""
    purposes = dict.fromkeys(row.purpose for row in rows)
    return {purpose: all(row.ok for row in rows if row.purpose == purpose) for purpose in purposes}


def remedies(rows: Sequence[Row]) -> list[str]:
    """How to get what is missing: one command per way of installing, then the rest part by part."""
    absent = [row for row in rows if not row.found]
    found = []
    if debian := dict.fromkeys(package for row in absent for package in row.debian):
        sudo = "" if hasattr(os, "geteuid") and os.geteuid() == 0 else "sudo "
        found.append(f"{sudo}apt-get install --no-install-recommends {' '.join(debian)}")
    if extras := dict.fromkeys(row.extra for row in absent if row.extra is not None):
        found.append(
            f"{sys.executable} -m pip install {installation.for_pip([name for name in extras if name])}"
        )
    hints = {row.hint: row.part for row in reversed(absent) if row.hint}
    return found + [f"{part}: {hint}" for hint, part in reversed(hints.items())]


def render(rows: Sequence[Row], console: Console) -> None:
    """A table of parts, then what works and what does not, then how to install what is missing."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in ("for", "part", "found"):
        table.add_column(heading, overflow="fold")
    purpose = ""
    for row in rows:
        absent = "[yellow]missing, optional[/]" if row.optional else "[red]missing[/]"
        table.add_row(row.purpose if row.purpose != purpose else "", row.part, escape(row.found) or absent)
        purpose = row.purpose
    console.print(table)
    console.print()
    for purpose, ready in able(rows).items():
        console.print(f"[green]yes[/]  {purpose}" if ready else f"[red]no[/]   {purpose}")
    for title, optional in (("To install what is missing:", False), ("Optional:", True)):
        ways = remedies([row for row in rows if row.optional is optional])
        if ways:
            console.print(f"\n{title}")
        for way in ways:
            console.print(f"  {way}", soft_wrap=True, markup=False)


def as_json(rows: Sequence[Row]) -> str:
    """The same for programs."""
    parts = [
        {"for": row.purpose, "part": row.part, "found": row.found or None, "optional": row.optional}
        for row in rows
    ]
    return json.dumps({"can": able(rows), "parts": parts, "remedies": remedies(rows)}, indent=2) + "\n"


def show(rows: Sequence[Row], console: Console, json_wanted: bool) -> None:
    """Print rows as tables or as JSON."""
    if json_wanted:
        console.file.write(as_json(rows))
    else:
        render(rows, console)


def run(console: Console | None = None, json_wanted: bool = False) -> int:
    """Print the state of this machine; returns 1 if it cannot compile models."""
    if console is None:
        from rich.console import Console as Terminal

        console = Terminal(highlight=False)
    rows = examine()
    show(rows, console, json_wanted)
    return 0 if able(rows)[COMPILE] else 1
