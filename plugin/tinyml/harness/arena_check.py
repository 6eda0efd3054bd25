# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The port header that guards the bytes of the arena that a layer must not touch: see ``c/check_arena.h``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Ranges = tuple[tuple[tuple[int, int], ...], ...]
"""For each layer, the bytes of the arena that it may touch: pairs of start and end."""


def ranges_of(summary: Mapping[str, Any]) -> Ranges:
    """From the summary (JSON) of a compiled model."""
    layers = summary.get("layers", ())
    return tuple(tuple((start, end) for start, end in layer.get("arena", ())) for layer in layers)


def port_header(name: str, ranges: Ranges) -> str:
    """C that wraps each layer of the model ``name``; included before its code. Nothing without ranges."""
    if not any(ranges):
        return ""
    merged = [_merged(layer) for layer in ranges]
    width = max(len(layer) for layer in merged)
    rows = [
        ", ".join(f"{{{start}, {end}}}" for start, end in (*[(0, 0)] * (width - len(layer)), *layer))
        for layer in merged
    ]
    table = "".join(f"\t{{{row}}},\n" for row in rows)
    return (
        '#include "check_arena.h"\n'
        "__attribute__((unused)) "
        f"static const struct check_arena_range {name}_ranges[][{width}] = {{\n{table}}};\n"
        "#undef TINYML_WRAP_LAYER\n"
        "#define TINYML_WRAP_LAYER(index, call) "
        f"CHECK_ARENA({name}_arena, {name}_ranges, index, call)\n"
    )


def _merged(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same bytes as ranges in order that do not overlap."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
