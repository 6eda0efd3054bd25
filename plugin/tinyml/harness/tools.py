# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The programs we run: compilers and QEMU. A missing one is an error with the command to install it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

from tinyml.base.errors import ToolError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.cores.toolchains import Toolchain


@dataclass(frozen=True)
class Compiler:
    """A C compiler. ``identity`` changes whenever it may generate different code."""

    path: Path
    identity: str


def host_compiler() -> Compiler:
    """$CC, or the usual names."""
    named = os.environ.get("CC")
    for name in (named,) if named else ("gcc", "cc", "clang"):
        if found := shutil.which(name):
            return _compiler(found)
    raise ToolError(f"no C compiler found ({named or 'gcc, cc, clang'})", "sudo apt-get install gcc")


def web_compiler() -> Compiler:
    """A clang that compiles to WebAssembly, with its linker and libraries."""
    found = shutil.which("clang")
    libraries = {"wasi-libc": "-print-file-name=libc.a", "libclang-rt-dev-wasm32": "-print-libgcc-file-name"}
    absent = [name for name, there in (("clang", found), ("lld", shutil.which("wasm-ld"))) if not there]
    absent += [name for name, option in libraries.items() if not found or not _has_web_file(found, option)]
    if absent:
        raise ToolError(
            f"WebAssembly requires {', '.join(absent)}: not installed",
            f"sudo apt-get install {' '.join(absent)}",
        )
    return _compiler(str(found))


@cache
def _has_web_file(clang: str, option: str) -> bool:
    """Whether clang finds a file; it prints the bare name if not, or where the file would be."""
    done = subprocess.run(
        [clang, "--target=wasm32-wasi", option], capture_output=True, text=True, check=False
    )
    path = Path(done.stdout.strip())
    return path.is_absolute() and path.is_file()


def cross_compiler(toolchain: Toolchain) -> Compiler:
    """A compiler for bare metal, with a C library."""
    _require(toolchain)
    return _compiler(str(shutil.which(toolchain.compiler.name)))


def linker(toolchain: Toolchain) -> Compiler:
    """The GNU compiler that links what ``cross_compiler`` has compiled."""
    _require(toolchain)
    return _compiler(str(shutil.which(toolchain.gnu.name)))


def _require(toolchain: Toolchain) -> None:
    absent = [part for part in toolchain.missing() if part != toolchain.emulator]
    if absent:
        names = " and ".join(part.name for part in absent)
        raise ToolError(
            f"{names} {'was' if len(absent) == 1 else 'were'} not found",
            f"sudo apt-get install {' '.join(part.debian for part in absent)}",
        )


def qemu(toolchain: Toolchain) -> Path:
    """The emulator of what a toolchain compiles for."""
    part = toolchain.emulator
    found = shutil.which(part.name)
    if found is None:
        raise ToolError(f"{part.name} was not found", f"sudo apt-get install {part.debian}")
    return Path(found)


@cache
def _compiler(path: str) -> Compiler:
    done = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ToolError(f"{path} --version fails: {done.stderr.strip()}")
    machine = subprocess.run([path, "-dumpmachine"], capture_output=True, text=True, check=False)
    return Compiler(Path(path), f"{path}\n{done.stdout}\n{machine.stdout}")


def symbols(toolchain: Toolchain, image: Path) -> list[tuple[int, str]]:
    """Addresses and names in an image, by rising address."""
    columns = (line.split() for line in _names(toolchain, "-n", str(image)).splitlines())
    return [(int(row[0], 16), row[2]) for row in columns if len(row) == 3]


def disassembly(toolchain: Toolchain, image: Path, *options: str) -> str:
    """The code of an image as text."""
    return _binutil(toolchain, "objdump", "-d", "--no-show-raw-insn", *options, str(image))


def attributes(toolchain: Toolchain, image: Path) -> str:
    """What the compiler noted in an image about the core."""
    return _binutil(toolchain, "readelf", "-A", str(image))


def without_debugging(toolchain: Toolchain, file: Path, copy: Path) -> bytes:
    """An object file without debug information, which contains paths; ``copy`` is written on the way."""
    _binutil(toolchain, "objcopy", "--strip-debug", str(file), str(copy))
    return copy.read_bytes()


def sections(toolchain: Toolchain, file: Path) -> dict[str, int]:
    """The sizes of an object file's sections, in bytes."""
    rows = (line.split() for line in _binutil(toolchain, "objdump", "-hw", str(file)).splitlines())
    return {row[1]: int(row[2], 16) for row in rows if len(row) > 3 and row[0].isdigit()}


def references(toolchain: Toolchain, file: Path) -> dict[str, set[str]]:
    """The symbols that each section of an object file refers to."""
    found: dict[str, set[str]] = {}
    section = ""
    for line in _binutil(toolchain, "objdump", "-rw", str(file)).splitlines():
        if line.startswith("RELOCATION RECORDS FOR ["):
            section = line.partition("[")[2].rstrip("]:")
        elif section and (row := line.split()) and len(row) == 3 and row[0] != "OFFSET":
            found.setdefault(section, set()).add(re.split(r"[+-]0x", row[2])[0])
    return found


def lines(toolchain: Toolchain, file: Path) -> list[tuple[str, int | None, int]]:
    """Source file, line and first address of the code of an object file; the line is None after its end."""
    printed = _binutil(toolchain, "objdump", "--dwarf=decodedline", str(file))
    rows = re.findall(r"^(\S+) +(\d+|-) +(0x[0-9a-f]+|0)\b", printed, re.MULTILINE)
    return [(name, None if line == "-" else int(line), int(address, 16)) for name, line, address in rows]


def defined(toolchain: Toolchain, file: Path) -> list[str]:
    """The functions and constants that an object file gives to others."""
    printed = _names(toolchain, "-g", "--defined-only", str(file))
    rows = (line.split() for line in printed.splitlines())
    return [row[2] for row in rows if len(row) == 3 and row[1] in "TWRV"]


def _names(toolchain: Toolchain, *arguments: str) -> str:
    """What nm prints. Where LLVM is installed, plain nm loads it each time, which takes 35 ms."""
    try:
        return _binutil(toolchain, "gcc-nm", *arguments)
    except (FileNotFoundError, subprocess.CalledProcessError):  # a GCC without its plugin
        return _binutil(toolchain, "nm", *arguments)


def _binutil(toolchain: Toolchain, name: str, *arguments: str) -> str:
    """What one of the compiler's companions prints."""
    compiler = linker(toolchain).path
    program = str(compiler.with_name(compiler.name.removesuffix("gcc") + name))
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=True).stdout
