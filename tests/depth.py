# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""How much runs: ``make test`` a fixed tenth of long campaigns, ``make test-deep`` (``--deep``) everything.

``@pytest.mark.deep`` leaves a test, or one case of it, to ``make test-deep``. ``@pytest.mark.tenth`` leaves
nine tenths of a test's cases to it; ``tenth("name")`` on several tests counts them as one campaign. A loop
inside one test takes its cases from ``some()``.

The choice depends on the names of cases alone, so the same ones run on every machine, and a new case does not
change which others run. A test that is named on the command line (``file.py::test``) always runs.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

SETTING = "TINYML_DEEP"
SHARE = 10
MARKERS = (
    "deep: runs in `make test-deep` only",
    "tenth: `make test` runs a fixed tenth of the cases, `make test-deep` all",
)

Case = TypeVar("Case")


def is_deep() -> bool:
    """Whether everything runs."""
    return os.environ.get(SETTING, "") not in ("", "0")


def chosen(names: Sequence[str]) -> set[str]:
    """A tenth of the names, and at least one."""
    if not names:
        return set()
    numbers = {name: zlib.crc32(name.encode()) for name in names}
    lucky = {name for name, number in numbers.items() if number % SHARE == 0}
    return lucky or {min(names, key=lambda name: (numbers[name], name))}


def some(cases: Iterable[Case], name: Callable[[Case], str] = str) -> list[Case]:
    """A tenth of the cases, and at least one; all of them in ``make test-deep``."""
    everything = list(cases)
    if is_deep():
        return everything
    kept = chosen([name(case) for case in everything])
    return [case for case in everything if name(case) in kept]
