# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What was measured on a core: ``cost/data/CORE.json``, and the bytes of code that kernels link.

Cores on which no library competes with our kernels choose them by ``cost/data/kernels/CORE.json``: figures
that were fitted to single layers, so that new counts of models change no choice.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

DATA = Path(__file__).parents[1] / "cost" / "data"
SAME_CODE = {"cortex-m33": "cortex-m4", "cortex-m33-nodsp": "cortex-m3", "cortex-m85": "cortex-m55"}
"""Cores that were not measured, and those that execute practically the same code."""
SAME_CHOICES = {"riscv32-zve32f": "riscv32-zve32x"}
"""Cores that choose kernels by the figures of another one, whose estimates would not be theirs."""
PLAIN = "cortex-m3"
"""The core whose figures stand for those of processors without measurements: plain C, which they run too."""


def data_file(target: str) -> Path:
    """The measurements of a core, which may not exist."""
    return DATA / f"{SAME_CODE.get(target, target)}.json"


def kernels_file(target: str) -> Path:
    """The figures by which kernels are chosen on a core, if these are not those of its estimates."""
    return DATA / "kernels" / f"{SAME_CHOICES.get(target, target)}.json"


def own_loops_file(target: str) -> Path:
    """The figures of loops in the model's own C on a core; it may not exist."""
    return DATA / "own_loops" / f"{SAME_CODE.get(target, target)}.json"


@cache
def measured(target: str) -> Any:
    """The figures by which kernels are chosen on a core, or those that stand for them."""
    candidates = (kernels_file(target), data_file(target), data_file(PLAIN))
    path = next(path for path in candidates if path.is_file())
    return json.loads(path.read_text(encoding="utf-8"))


@cache
def loops(target: str) -> Any:
    """Figures of the loops of kernels: those of a core's estimates, where it chooses by others too."""
    file = data_file(SAME_CHOICES.get(target, target))
    path = file if file.is_file() else data_file(PLAIN)
    return json.loads(path.read_text(encoding="utf-8"))["instructions"].get("loops", {})


def linked_bytes(target: str, functions: Iterable[str]) -> int:
    """What the linker keeps for these functions; shared parts count once, unknown functions nothing."""
    sizes, pieces = _code(target)
    return sum(sizes[piece] for piece in {piece for name in functions for piece in pieces.get(name, ())})


@cache
def _code(target: str) -> tuple[list[int], dict[str, list[int]]]:
    code = measured(target)["code"]
    return [size for _, size in code["pieces"]], code["functions"]
