"""The programs we start: compilers and QEMU. A missing one is an error that says how to install it."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tinyml.errors import ToolError


@dataclass(frozen=True)
class Compiler:
    """A C compiler. ``identity`` differs whenever it may generate other code."""

    path: Path
    identity: str


def host_compiler() -> Compiler:
    """$CC, or the usual names."""
    named = os.environ.get("CC")
    for name in (named,) if named else ("gcc", "cc", "clang"):
        if found := shutil.which(name):
            return _compiler(found)
    raise ToolError(f"no C compiler found ({named or 'gcc, cc, clang'})", "sudo apt-get install gcc")


def arm_compiler() -> Compiler:
    """Arm's GNU compiler for bare metal, with a C library."""
    found = shutil.which("arm-none-eabi-gcc")
    if found is None:
        raise ToolError(
            "arm-none-eabi-gcc was not found",
            "sudo apt-get install gcc-arm-none-eabi libnewlib-arm-none-eabi",
        )
    if not _has_c_library(found):
        raise ToolError("arm-none-eabi-gcc has no C library", "sudo apt-get install libnewlib-arm-none-eabi")
    return _compiler(found)


def qemu() -> Path:
    """The emulator of 32-bit Arm machines."""
    found = shutil.which("qemu-system-arm")
    if found is None:
        raise ToolError("qemu-system-arm was not found", "sudo apt-get install qemu-system-arm")
    return Path(found)


@cache
def _compiler(path: str) -> Compiler:
    done = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ToolError(f"{path} --version fails: {done.stderr.strip()}")
    machine = subprocess.run([path, "-dumpmachine"], capture_output=True, text=True, check=False)
    return Compiler(Path(path), f"{path}\n{done.stdout}\n{machine.stdout}")


@cache
def _has_c_library(path: str) -> bool:
    """GCC prints the bare name when it does not find the file."""
    done = subprocess.run([path, "-print-file-name=libc.a"], capture_output=True, text=True, check=False)
    return done.stdout.strip() != "libc.a"


def symbols(image: Path) -> list[tuple[int, str]]:
    """Addresses and names in an Arm image, by rising address."""
    nm = str(arm_compiler().path.with_name("arm-none-eabi-nm"))
    done = subprocess.run([nm, "-n", str(image)], capture_output=True, text=True, check=True)
    columns = (line.split() for line in done.stdout.splitlines())
    return [(int(row[0], 16), row[2]) for row in columns if len(row) == 3]
