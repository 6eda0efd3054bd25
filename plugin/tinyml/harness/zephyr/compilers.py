# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Chooses Zephyr's compiler if the user has not, or if the user's choice does not work."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tinyml.cores.toolchains import ARM, RISCV

RISCV_BOARDS = ("qemu_riscv32",)
_CHOICE = "ZEPHYR_TOOLCHAIN_VARIANT"
_FOR_ARM = "gnuarmemb"


def compiler_for(board: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Variables to add to the environment: none if Zephyr's SDK is installed or the user's choice works."""
    chosen = environment.get(_CHOICE)
    riscv = shutil.which(RISCV.compiler.name) if board.startswith(RISCV_BOARDS) else None
    if riscv and chosen == _FOR_ARM:
        return _riscv(riscv, environment)
    if chosen or "ZEPHYR_SDK_INSTALL_DIR" in environment or has_sdk():
        return {}
    if riscv:
        return _riscv(riscv, environment)
    if arm := shutil.which(ARM.compiler.name):
        return {_CHOICE: _FOR_ARM, "GNUARMEMB_TOOLCHAIN_PATH": str(Path(arm).parents[1])}
    return {}


def _riscv(compiler: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Debian's GCC 12 finds its libraries by -march, but not for Zephyr's: rv32imafc_zicsr_zifencei.

    With floats in registers, because CONFIG_TINYML enables the FPU.
    """
    asked = [compiler, "-march=rv32imafc", "-mabi=ilp32f", "-print-libgcc-file-name"]
    library = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    flags = f"{environment.get('EXTRA_LDFLAGS', '')} -L{Path(library).parent}".strip()
    return {_CHOICE: "cross-compile", "CROSS_COMPILE": compiler.removesuffix("gcc"), "EXTRA_LDFLAGS": flags}


def has_sdk() -> bool:
    """Zephyr finds its SDK by CMake's registry of packages."""
    return (Path.home() / ".cmake" / "packages" / "Zephyr-sdk").is_dir()
