# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The functions of <math.h>, as kernels name them in C: ours where there is one, so models need no libm.

``<tinyml/maths.h>`` has all of them for float. For double it has those that only move bits; the others
come from libm, which a model with double elements therefore needs.
"""

from __future__ import annotations

from tinyml.ir import DType

HEADER = "<tinyml/maths.h>"
FULL_LIBC = "CONFIG_REQUIRES_FULL_LIBC=y"
"""What a model that needs libm needs in Zephyr's configuration."""
EXACT = frozenset({"fabs", "copysign", "fmin", "fmax", "trunc", "floor", "ceil", "rint", "fmod"})
ROUNDED = frozenset(
    {
        *("exp", "expm1", "log", "log1p", "log10", "pow", "erf"),
        *("sin", "cos", "tan", "asin", "acos", "atan", "atan2"),
        *("sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
    }
)
IN_EVERY_LIBRARY = frozenset({"sqrt"})
"""Functions of double that every C library has, Zephyr's minimal one too."""


def own_name(name: str, dtype: DType) -> str | None:
    """The name in ``<tinyml/maths.h>``; None where there is none for this type."""
    if dtype is DType.FLOAT32 and name in EXACT | ROUNDED | IN_EVERY_LIBRARY:
        return f"tinyml_{name}f"
    return f"tinyml_{name}" if name in EXACT else None
