# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Which layer an instruction of NAME_run() belongs to, by the lines of the generated C.

Compilers put the functions of layers into NAME_run(), so addresses of functions do not tell. An instruction
without a line of its own belongs to the layer before it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence

from tinyml.bounds.elf import Symbol
from tinyml.bounds.operations import Operation

_CALL = re.compile(r"TINYML_LAYER\((\d+), (\w+)\(")
_FUNCTION = re.compile(r"^static \w[\w ]*[ *](\w+)\(")


def layers_by_line(source: str) -> dict[int, int]:
    """The layer of each line of a generated source: the bodies of layers' functions, and their calls."""
    steps: dict[str, int] = {}
    found: dict[int, int] = {}
    lines = source.splitlines()
    for number, line in enumerate(lines, 1):
        if call := _CALL.search(line):
            steps[call[2]] = found[number] = int(call[1])
    inside = None
    for number, line in enumerate(lines, 1):
        if function := _FUNCTION.match(line):
            inside = steps.get(function[1])
        if inside is not None:
            found[number] = inside
        if line == "}":
            inside = None
    return found


def set_layers(
    operations: Sequence[Operation],
    run: Symbol,
    rows: Sequence[tuple[str, int | None, int]],
    file: str,
    by_line: Mapping[int, int],
) -> None:
    """Fill in the layer of each operation in ``run``. ``rows`` are those of a table of lines."""
    begin = run.address & ~1
    inside = [one for one in operations if begin <= one.address < begin + run.bytes]
    for operation, line in zip(inside, lines_of(inside, rows, file, begin), strict=True):
        if (layer := by_line.get(line)) is not None:
            operation.layer = layer


def lines_of(
    operations: Sequence[Operation], rows: Sequence[tuple[str, int | None, int]], file: str, begin: int = 0
) -> list[int]:
    """The line of each operation in a source; 0 without one. ``begin``: the first address that counts."""
    # Of several rows with one address the last counts, so the order of equal ones stays.
    places = [(address, line) for name, line, address in rows if name.endswith(file) and line]
    places.sort(key=lambda place: place[0])
    starts = [address for address, _ in places]
    found = []
    for operation in operations:
        place = bisect_right(starts, operation.address) - 1
        found.append(places[place][1] if place >= 0 and starts[place] >= begin else 0)
    return found
