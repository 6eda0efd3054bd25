# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The words that parameters of the API choose from, as types that editors and type checkers know.

A test compares them with the tables that the functions check against.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypedDict

TargetName: TypeAlias = Literal[
    "host",
    "cortex-m0",
    "cortex-m3",
    "cortex-m4",
    "cortex-m7",
    "cortex-m33",
    "cortex-m33-nodsp",
    "cortex-m55",
    "cortex-m85",
    "riscv32",
    "riscv32-zve32x",
    "riscv32-zve32f",
    "generic",
]
MachineName: TypeAlias = Literal[
    "host",
    "qemu-cortex-m0",
    "qemu-cortex-m3",
    "qemu-cortex-m4",
    "qemu-cortex-m7",
    "qemu-cortex-m33",
    "qemu-cortex-m33-nodsp",
    "qemu-cortex-m55",
    "qemu-riscv32",
    "qemu-riscv32-zve32x",
    "qemu-riscv32-zve32f",
    "qemu-xtensa",
    "qemu-xtensa-de212",
    "qemu-xtensa-sample_controller",
]
Target: TypeAlias = TargetName | str
Machine: TypeAlias = MachineName | str
"""Editors complete the names; a name from a variable is allowed, as in a loop over cores."""

Kernels: TypeAlias = Literal["auto", "cmsis-nn", "portable"]
Optimize: TypeAlias = Literal["balanced", "speed", "size", "ram"]
Arithmetic: TypeAlias = Literal["float32", "float16"]
Io: TypeAlias = Literal["arena", "caller", "int8", "caller,int8", "rows", "rows,int8"]
AdaptKind: TypeAlias = Literal["last", "prototypes", "threshold"]
Method: TypeAlias = Literal["auto", "minmax", "entropy", "percentile"]
Interface: TypeAlias = Literal["float", "int8"]
Leaves: TypeAlias = Literal["int16", "int8"]
Weights: TypeAlias = Literal["int8", "mixed", "int4", "float16"]
Reference: TypeAlias = Literal["auto", "onnxruntime", "litert", "numpy"]
Task: TypeAlias = Literal["auto", "classes", "values", "raw"]
CostName: TypeAlias = Literal["ram", "flash", "cycles", "milliseconds"]
Objective: TypeAlias = Literal["score", "ram", "flash", "cycles", "milliseconds"]
Memory: TypeAlias = Literal["ram", "flash"]


class CompileSettings(TypedDict, total=False):
    """The settings that ``tinyml.compile`` takes as keywords: the table of settings has them, too."""

    target: Target
    kernels: Kernels
    io: Io | Sequence[str]
    optimize: Optimize
    arithmetic: Arithmetic
    bounds: Mapping[str, int]
    outputs: Sequence[str]
    operators: str | Path | Sequence[str | Path]
    npu: str
    frontend: Mapping[str, Any] | str
    classes: Sequence[str]
    watch: bool
    watch_data: str | Path
    watch_channels: bool
    adapt: AdaptKind | Mapping[str, Any]
