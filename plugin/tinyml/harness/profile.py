# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The cost of each layer, from the readings that ``c/profile.c`` prints."""

from __future__ import annotations

import re

from tinyml.base.errors import ToolError
from tinyml.cores.machines import Clock, Stamp

_LINE = re.compile(r"^(empty|layer) ((?:[0-9a-f]{8} ){5})$", re.MULTILINE)


def read_profile(console: str, clock: Clock) -> dict[int, int]:
    """Instructions by layer, without those that reading the clock takes."""
    costs: dict[int, int] = {}
    calling = 0
    for kind, text in _LINE.findall(console):
        layer, *words = (int(word, 16) for word in text.split())
        spent = clock.instructions(Stamp(*words[2:])) - clock.instructions(Stamp(*words[:2]))
        if kind == "empty":
            calling = spent
        else:
            costs[layer] = costs.get(layer, 0) + spent - calling  # bands of rows that arrive are calls
    if not costs:
        raise ToolError("the program printed no profile", "this is a bug in west-tinyml; please report it")
    return costs


def read_calls(console: str) -> list[int]:
    """The layers in the order in which they were called; one that takes rows is called several times."""
    return [int(text.split()[0], 16) for kind, text in _LINE.findall(console) if kind == "layer"]
