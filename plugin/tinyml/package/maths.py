"""Which C needs <math.h>: Zephyr's minimal C library has next to nothing of it."""

from __future__ import annotations

import re

_INCLUDES = re.compile(r"#include <(math|tinyml/scalar)\.h>")


def needs_maths(source: str) -> bool:
    """Whether a source, by what it includes, calls functions of <math.h>."""
    return _INCLUDES.search(source) is not None
