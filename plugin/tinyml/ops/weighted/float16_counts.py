# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""How often the loops of layers run that add up products in float16: those of sums_f16.c, with Helium."""

from __future__ import annotations

from tinyml.ir import Layer
from tinyml.ops.framework.work import Work
from tinyml.ops.weighted.float16_sums import BLOCK, LANES, TILES
from tinyml.ops.weighted.float_counts import limited
from tinyml.ops.weighted.walked import Windows, groups_of, times, together
from tinyml.ops.weighted.weighted import Weighted

FOUR = 4


def sums(filters: int, elements: int, two: bool) -> Work:
    """tinyml_sums_f16(): all filters with one window or with two."""
    found: dict[str, float] = {"calls of sums": 1}
    left = filters
    blocks, rest = groups_of(elements, BLOCK), elements % BLOCK
    for size in (*TILES, left % LANES):
        if not size:
            continue
        tiles, left = divmod(left, size)
        few = size < LANES
        calls = tiles * (2 if two and few else 1)
        if calls:
            kind = "few" if few else f"{'two windows' if two else 'a window'} by {size}"
            found |= {
                kind: calls,
                f"blocks of {kind}": calls * blocks,
                f"fours of {kind}": calls * (elements // BLOCK * (BLOCK // FOUR) + rest // FOUR),
                f"single elements of {kind}": calls * (rest % FOUR),
            }
            if few:
                found["filters of few"] = calls * size
    return found


def runs(count: int, elements: int) -> Work:
    """tinyml_runs_f16(): so many runs of floats that become float16."""
    return {"calls of runs": 1, "runs": count, "fours of runs": count * groups_of(elements, FOUR)}


def rows(count: int, filters: int, elements: int) -> Work:
    """tinyml_rows_f16()."""
    pairs, one = divmod(count, 2)
    return together(
        {"calls of rows": 1},
        times(pairs, together(runs(2, elements), sums(filters, elements, True))),
        times(one, together(runs(1, elements), sums(filters, elements, False))),
    )


def dense(layer: Layer[Weighted]) -> Work:
    """dense_f16.c."""
    outputs, inputs = layer.input(1).shape
    count = layer.output.elements
    return together({"calls": 1}, rows(count // outputs, outputs, inputs), limited(layer, count))


def conv(layer: Layer[Weighted], windows: Windows) -> Work:
    """conv_f16.c."""
    count = windows.batches * windows.positions
    if windows.is_pointwise and windows.groups == 1 and not (windows.rows.pad or windows.cols.pad):
        own = rows(count, windows.out_c, windows.elements)
    else:
        own = times(windows.groups, _group(windows, count))
    return together({"calls": 1}, own, limited(layer, layer.output.elements))


def _group(windows: Windows, count: int) -> Work:
    filters = windows.out_c // windows.groups
    return together(
        {"groups": 1, "lines": windows.batches * windows.rows.out},
        times(windows.batches, _taken(windows)),
        times(count // 2, sums(filters, windows.elements, True)),
        times(count % 2, sums(filters, windows.elements, False)),
    )


def _taken(windows: Windows) -> Work:
    """All windows of an image become float16, those inside it at once."""
    lines, columns, channels = windows.rows, windows.cols, windows.in_c // windows.groups
    straight = columns.kernel == 1 or (columns.dilation == 1 and windows.groups == 1)
    whole = windows.inside if straight else 0
    found = [{"windows": windows.positions}, times(whole, runs(lines.kernel, columns.kernel * channels))]
    for row_inside, (top, bottom) in zip(lines.inside, lines.spans, strict=True):
        for inside, (first, end) in zip(columns.inside, columns.spans, strict=True):
            if straight and row_inside and inside:
                continue
            high, wide = bottom - top, end - first
            found.append({"windows in parts": 1})
            if not (row_inside and inside):
                found.append({"windows cleared": 1, "eights cleared": windows.elements // 8})
            if high and wide:
                found.append(runs(high, wide * channels) if straight else times(high, runs(wide, channels)))
    return together(*found)
