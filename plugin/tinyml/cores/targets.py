# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Targets as far as the compiler needs to know them: instruction set and compiler flags."""

from __future__ import annotations

from tinyml.base.errors import ConfigError, did_you_mean
from tinyml.base.lazy_dataclass import dataclass


@dataclass(frozen=True)
class Target:
    """A processor core. ``arm``: it is a Cortex-M.

    ``dsp`` is the packed SIMD extension, ``mve`` Helium, ``fpu`` float32 hardware.
    ``rvv`` is RISC-V's vector extension: for integers, and with ``fpu`` for float32 as well.
    ``registers``: integer registers that code may use, where kernels depend on it.
    """

    name: str
    description: str
    arm: bool = False
    dsp: bool = False
    mve: bool = False
    fpu: bool = False
    rvv: bool = False
    gcc_flags: tuple[str, ...] = ()
    registers: int = 16


_ALL = (
    Target("host", "the machine that compiles; also native_sim", fpu=True),
    Target("cortex-m0", "Armv6-M: Cortex-M0, M0+, M1", arm=True, gcc_flags=("-mcpu=cortex-m0",)),
    Target(
        "cortex-m3",
        "Armv7-M, no DSP, no FPU",
        arm=True,
        gcc_flags=("-mcpu=cortex-m3", "-mfloat-abi=soft"),
    ),
    Target(
        "cortex-m4",
        "Armv7E-M with DSP and single-precision FPU",
        arm=True,
        dsp=True,
        fpu=True,
        gcc_flags=("-mcpu=cortex-m4", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard"),
    ),
    Target(
        "cortex-m7",
        "Armv7E-M with DSP and double-precision FPU",
        arm=True,
        dsp=True,
        fpu=True,
        gcc_flags=("-mcpu=cortex-m7", "-mfpu=fpv5-d16", "-mfloat-abi=hard"),
    ),
    Target(
        "cortex-m33",
        "Armv8-M mainline with DSP and FPU",
        arm=True,
        dsp=True,
        fpu=True,
        gcc_flags=("-mcpu=cortex-m33", "-mfpu=fpv5-sp-d16", "-mfloat-abi=hard"),
    ),
    Target(
        "cortex-m33-nodsp",
        "Armv8-M mainline without DSP and FPU",
        arm=True,
        gcc_flags=("-mcpu=cortex-m33+nodsp", "-mfloat-abi=soft"),
    ),
    Target(
        "cortex-m55",
        "Armv8.1-M with Helium (MVE)",
        arm=True,
        dsp=True,
        mve=True,
        fpu=True,
        gcc_flags=("-mcpu=cortex-m55", "-mfloat-abi=hard"),
    ),
    Target(
        "cortex-m85",
        "Armv8.1-M with Helium (MVE)",
        arm=True,
        dsp=True,
        mve=True,
        fpu=True,
        # Not -mcpu=cortex-m85, which GCC knows since version 13 only.
        gcc_flags=("-march=armv8.1-m.main+dsp+mve.fp+fp.dp", "-mfloat-abi=hard"),
    ),
    Target("riscv32", "32-bit RISC-V, plain C", gcc_flags=("-march=rv32imac", "-mabi=ilp32"), registers=32),
    Target(
        "riscv32-zve32x",
        "32-bit RISC-V with vectors of integers, of any length",
        rvv=True,
        gcc_flags=("-march=rv32imac_zve32x", "-mabi=ilp32"),
        registers=32,
    ),
    Target(
        "riscv32-zve32f",
        "32-bit RISC-V with float32 hardware and vectors of integers and floats, of any length",
        rvv=True,
        fpu=True,
        gcc_flags=("-march=rv32imafc_zve32f", "-mabi=ilp32f"),
        registers=32,
    ),
    Target("generic", "any other 32-bit or 64-bit processor, plain C: Xtensa, Cortex-A, 64-bit RISC-V"),
)

TARGETS = {target.name: target for target in _ALL}


def find_target(name: str) -> Target:
    """The target called ``name``."""
    try:
        return TARGETS[name]
    except KeyError:
        raise ConfigError(
            f"unknown target {name!r}{did_you_mean(name, TARGETS)}", f"one of: {', '.join(TARGETS)}"
        ) from None
