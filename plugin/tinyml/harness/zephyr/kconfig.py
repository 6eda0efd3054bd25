# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What a board's processor is, from the Kconfig symbols that its board and chip select, without a build."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Set
from functools import cache
from pathlib import Path

_CONFIG = re.compile(r"(?:menu)?config\s+(\w+)")
_SELECT = re.compile(r"select\s+(\w+)(?:\s+if\s+(.+))?")

_TARGETS = (
    ("CPU_CORTEX_M7", "cortex-m7"),
    ("CPU_CORTEX_M4", "cortex-m4"),
    ("CPU_CORTEX_M3", "cortex-m3"),
    ("CPU_CORTEX_M23", "cortex-m0"),
    ("CPU_CORTEX_M0PLUS", "cortex-m0"),
    ("CPU_CORTEX_M0", "cortex-m0"),
    ("CPU_CORTEX_M1", "cortex-m0"),
    ("64BIT", "generic"),
    ("RISCV", "riscv32"),
)
"""The compiler's targets by the symbol that decides; zephyr_module/cmake/tinyml.cmake does the same."""


Selects = Mapping[str, list[tuple[str, str]]]


_ARMV8_M = {f"CPU_CORTEX_M{number}" for number in (33, 52, 55, 85)}


def selected(folders: Iterable[Path], start: Set[str]) -> set[str]:
    """``start`` and all that it selects in these folders. Conditions are those of boards: A || B."""
    tables = [_selects(folder) for folder in folders]
    known, waiting = set(start), sorted(start)
    while waiting:
        current = waiting.pop()
        for symbol, condition in (pair for table in tables for pair in table.get(current, ())):
            if symbol not in known and _holds(condition, known):
                known.add(symbol)
                waiting.append(symbol)
    return known


@cache
def _selects(folder: Path) -> Selects:
    """What each symbol in the Kconfig files below a folder selects, with the condition."""
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for path in (path for path in folder.rglob("Kconfig*") if path.is_file()):
        current = ""
        for line in path.read_text(encoding="utf-8").replace("\\\n", " ").splitlines():
            words = line.strip()
            if match := _CONFIG.match(words):
                current = match[1]
            elif current and (match := _SELECT.match(words)):
                found[current].append((match[1], match[2] or ""))
    return found


def _holds(condition: str, known: Set[str]) -> bool:
    if not condition:
        return True
    return any(
        all((word.strip("!() \t") in known) != word.strip().startswith("!") for word in part.split("&&"))
        for part in condition.split("||")
    )


def target(symbols: Set[str]) -> str:
    """The compiler's name of a core with these symbols."""
    if "ARMV8_1_M_MVEI" in symbols and "CPU_HAS_FPU" in symbols:
        return "cortex-m85" if "CPU_CORTEX_M85" in symbols else "cortex-m55"
    if symbols & _ARMV8_M:
        return "cortex-m33" if "ARMV8_M_DSP" in symbols else "cortex-m33-nodsp"
    return next((name for symbol, name in _TARGETS if symbol in symbols), "generic")
