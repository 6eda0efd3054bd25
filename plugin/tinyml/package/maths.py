# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Which C needs <math.h>: Zephyr's minimal C library has next to nothing of it."""

from __future__ import annotations

import re

_INCLUDES = re.compile(r"#include <(math|tinyml/scalar)\.h>")
_CALLS = re.compile(
    r"\b(?:a?(?:sin|cos|tan)h?|atan2|exp2?|expm1|log(?:2|10|1p)?|pow|cbrt|hypot|erfc?|[tl]gamma"
    r"|ceil|floor|trunc|(?:ll?)?round|(?:ll?)?rint|nearbyint|fmod|remainder|fabs|fmax|fmin|fma|fdim"
    r"|ldexp|frexp|modf|scalbn|copysign|signbit|nextafter|is(?:nan|inf|finite))f?\("
)


def needs_maths(source: str) -> bool:
    """Whether a source calls functions of <math.h>, beyond the square root that every library has.

    Constants such as INFINITY, which many models have for the bounds of their layers, are no reason.
    """
    included = _INCLUDES.search(source)
    return included is not None and (included[1] != "math" or _CALLS.search(source) is not None)
