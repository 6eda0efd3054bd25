# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What -Os makes of code and speed: ratios to -O2, which the fitted costs are for."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import yaml

from tinyml.base.lazy_dataclass import dataclass
from tinyml.cores.core_data import PLAIN, SAME_CODE

FILE = Path(__file__).parent / "small_code.yaml"
"""Written by ``python -m tools.spending --ratios``."""


@dataclass(frozen=True)
class Ratios:
    """Averages over the MLPerf Tiny models."""

    code: float = 1.0
    instructions: float = 1.0
    cycles: float = 1.0


@cache
def ratios(target: str, flag: str) -> Ratios:
    """How the cost of a core changes if code is compiled with ``flag`` instead of -O2."""
    if flag != "-Os":
        return Ratios()
    measured = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    return Ratios(**measured.get(SAME_CODE.get(target, target), measured[PLAIN]))
