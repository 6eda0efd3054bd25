# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Cross compilers and emulators for bare metal: their names, and the packages that contain them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from tinyml.base.lazy_dataclass import dataclass


@dataclass(frozen=True)
class Part:
    """A program or library, and its Debian and Ubuntu package."""

    name: str
    debian: str


@dataclass(frozen=True)
class Toolchain:
    """A cross compiler, its C library, and the emulator of what it compiles for.

    ``linker``: the GNU compiler that links and has binutils beside it, where ``compiler`` is another one.
    """

    compiler: Part
    library: Part
    emulator: Part
    library_file: str  # which the compiler finds if the library is installed
    compile_flags: tuple[str, ...] = ()
    link_flags: tuple[str, ...] = ()
    emulator_flags: tuple[str, ...] = ()
    linker: Part | None = None

    @property
    def gnu(self) -> Part:
        """The GNU compiler."""
        return self.linker or self.compiler

    @property
    def parts(self) -> tuple[Part, ...]:
        return (*dict.fromkeys((self.compiler, self.gnu)), self.library, self.emulator)

    def missing(self) -> Iterator[Part]:
        """The missing parts."""
        for part in dict.fromkeys((self.compiler, self.gnu)):
            if shutil.which(part.name) is None:
                yield part
        path = shutil.which(self.gnu.name)
        if path is None or not _finds(path, self.library_file):
            yield self.library
        if shutil.which(self.emulator.name) is None:
            yield self.emulator


def _finds(compiler: str, file: str) -> bool:
    """GCC prints the bare name if it does not find the file."""
    done = subprocess.run([compiler, f"-print-file-name={file}"], capture_output=True, text=True, check=False)
    return Path(done.stdout.strip()).is_absolute()


ARM = Toolchain(
    compiler=Part("arm-none-eabi-gcc", "gcc-arm-none-eabi"),
    library=Part("newlib", "libnewlib-arm-none-eabi"),
    emulator=Part("qemu-system-arm", "qemu-system-arm"),
    library_file="libc.a",
    link_flags=("--specs=nosys.specs",),
)

_PICOLIBC = "--specs=picolibc.specs"  # Debian's RISC-V compiler has no C library of its own
RISCV = Toolchain(
    compiler=Part("riscv64-unknown-elf-gcc", "gcc-riscv64-unknown-elf"),
    library=Part("picolibc", "picolibc-riscv64-unknown-elf"),
    emulator=Part("qemu-system-riscv32", "qemu-system-misc"),
    library_file="picolibc.specs",
    compile_flags=(_PICOLIBC,),
    link_flags=(_PICOLIBC,),
    emulator_flags=("-bios", "none"),
)

# GCC knows vectors from version 14 on, which Debian 12 does not have; clang compiles, and GCC links, with the
# libraries for the same core without vectors.
RISCV_VECTOR = Toolchain(
    compiler=Part("clang-19", "clang-19"),
    linker=RISCV.compiler,
    library=RISCV.library,
    emulator=RISCV.emulator,
    library_file=RISCV.library_file,
    compile_flags=(
        "--target=riscv32-unknown-elf",
        "--sysroot=/usr/lib/picolibc/riscv64-unknown-elf",  # where that package has its headers
        "-ftls-model=local-exec",
    ),
    link_flags=(_PICOLIBC, "-march=rv32imac"),
    emulator_flags=("-bios", "none"),
)

RISCV_FLOAT_VECTOR = replace(RISCV_VECTOR, link_flags=(_PICOLIBC, "-march=rv32imafc"))

# Literals lie beside the code that loads them, and calls reach every address.
_LX106 = ("-mtext-section-literals", "-mlongcalls")
XTENSA = Toolchain(
    compiler=Part("xtensa-lx106-elf-gcc", "gcc-xtensa-lx106"),
    library=Part("picolibc", "picolibc-xtensa-lx106-elf"),
    emulator=Part("qemu-system-xtensa", "qemu-system-misc"),
    library_file="libc.a",
    compile_flags=_LX106,
    link_flags=_LX106,
)
