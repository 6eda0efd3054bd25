# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Which C calls <math.h>: Zephyr's minimal C library implements almost none of it.

``python -m tinyml.libm`` prints the runtime sources that do, one per line, for CMake. Standard library only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

RUNTIME = Path(__file__).parent / "runtime"

_INCLUDES = re.compile(r"#include <(math|tinyml/scalar)\.h>")
_CALLS = re.compile(
    r"\b(?:a?(?:sin|cos|tan)h?|atan2|exp2?|expm1|log(?:2|10|1p)?|pow|cbrt|hypot|erfc?|[tl]gamma"
    r"|ceil|floor|trunc|(?:ll?)?round|(?:ll?)?rint|nearbyint|fmod|remainder|fabs|fmax|fmin|fma|fdim"
    r"|ldexp|frexp|modf|scalbn|copysign|signbit|nextafter|is(?:nan|inf|finite))f?\("
)


def calls_libm(source: str) -> bool:
    """Whether C text calls functions of <math.h>, beyond the square root that every library has.

    Constants do not count: many models use INFINITY for the bounds of their layers.
    """
    included = _INCLUDES.search(source)
    return included is not None and (included[1] != "math" or _CALLS.search(source) is not None)


def needs_libm(source: str, runtime_sources: Iterable[str]) -> bool:
    """Whether a model needs libm, either in its own C or in a runtime source that it links."""
    kernels = ((RUNTIME / name).read_text(encoding="utf-8") for name in runtime_sources)
    return calls_libm(source) or any(map(calls_libm, kernels))


def runtime_sources() -> list[Path]:
    """The runtime sources that call libm."""
    return [path for path in sorted(RUNTIME.rglob("*.c")) if calls_libm(path.read_text(encoding="utf-8"))]


if __name__ == "__main__":
    print("\n".join(path.as_posix() for path in runtime_sources()))
