# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""How often the loops of float layers run: those of filters_f32.c and of windows_f32.c."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Layer
from tinyml.ops.framework.tally import Tally
from tinyml.ops.framework.work import Work
from tinyml.ops.weighted.walked import Axis, Windows, groups_of, times, together
from tinyml.ops.weighted.weighted import Weighted

TILES = (8, 4, 1)
"""Filters that are computed at once."""


def limited(layer: Layer[Weighted], count: int) -> Work:
    """tinyml_limit_f32()."""
    low, high = layer.op.clamp
    if high < math.inf:
        return {"outputs within two limits": count, "fours within two limits": groups_of(count, 4)}
    if low > -math.inf:
        return {"outputs within a limit": count, "fours within a limit": groups_of(count, 4)}
    return {}


def used(layer: Layer[Weighted]) -> float:
    """The share of weights that are not zero: without an FPU, products with zero and their sums are short."""
    weights = layer.input(1)
    return np.count_nonzero(weights.value) / max(weights.elements, 1) if weights.is_constant else 1.0


def filters(count: int, rows: int, elements: int, windows: int, two: bool) -> Work:
    """tinyml_filters_f32(): so many filters with windows of some rows, alone or in pairs."""
    found: dict[str, float] = {"calls of filters": 1}
    left = count
    for size in TILES:
        tiles, left = divmod(left, size)
        if tiles:
            kind = f"{'two windows' if two else 'a window'} by {size}"
            calls = tiles * windows
            found |= {
                "tiles": found.get("tiles", 0) + tiles,
                kind: calls,
                f"rows of {kind}": calls * rows,
                f"fours of {kind}": calls * rows * (elements // 4),
                f"single elements of {kind}": calls * rows * (elements % 4),
                f"pairs of elements of {kind}": calls * rows * (elements // 2),
                f"odd elements of {kind}": calls * rows * (elements % 2),
            }
    return found


def dense(layer: Layer[Weighted]) -> Work:
    """dense_f32.c."""
    outputs, inputs = layer.input(1).shape
    rows = layer.output.elements // outputs
    return together(
        {"calls": 1},
        filters(outputs, 1, inputs, rows // 2, True) if rows > 1 else {},
        filters(outputs, 1, inputs, 1, False) if rows % 2 else {},
        {"products": rows * inputs * outputs * used(layer)},
        limited(layer, layer.output.elements),
    )


@dataclass(frozen=True)
class Block:
    """Outputs along an axis whose windows have the same taps inside the input."""

    count: int
    first: int
    end: int


def _blocks(axis: Axis) -> Iterator[Block]:
    """windows_f32_alike(), output by output."""
    at = 0
    while at < axis.out:
        start = at * axis.stride - axis.pad
        after = axis.size - 1 - (axis.kernel - 1) * axis.dilation - start
        count = 1 if start < 0 or after < 0 else min(1 + after // axis.stride, axis.out - at)
        yield Block(count, *axis.spans[at])
        at += count


Compute = Callable[[int, int, int, bool], Work]
"""Rows of taps, taps in a row, windows or pairs of them, whether it is pairs."""


@dataclass(frozen=True)
class Overlap:
    """Where outputs are that may be inputs of other windows: so many elements behind the first input."""

    distance: int
    backwards: bool  # the last position is computed first


def overlap_of(tally: Tally) -> Overlap | None:
    return None if tally.distance is None else Overlap(tally.distance // 4, tally.backwards)


def over_windows(windows: Windows, compute: Compute, overlap: Overlap | None = None) -> Work:
    """tinyml_windows_f32(): blocks of windows, two at a time, if they can be written before all are read.

    Blocks are halved until windows_f32_apart() says so, which takes as long as a short window does.
    """
    if windows.is_pointwise and not (windows.rows.pad or windows.cols.pad):
        count = windows.batches * windows.positions
        row = replace(windows.rows, size=1, out=1)
        cols = replace(windows.cols, size=count, out=count)
        windows = replace(windows, rows=row, cols=cols, batches=1)
    if overlap is not None:
        return _overlapping(windows, compute, overlap)
    parts: list[Work] = []
    columns = list(_blocks(windows.cols))
    for rows in _blocks(windows.rows):
        parts += [_block(rows, cols, compute) for cols in columns]
        asked = rows.count > 1 or sum(cols.count > 1 for cols in columns)
        parts.append({"rows of blocks": 1, "blocks tried": float(asked)})
    return times(windows.batches, together({"images": 1}, *parts))


def _overlapping(windows: Windows, compute: Compute, overlap: Overlap) -> Work:
    """The same where blocks are halved until their outputs are apart from their inputs."""
    rows, cols = windows.rows, windows.cols
    in_line, out_line = cols.size * windows.in_c, cols.out * windows.out_c
    found: Counter[tuple[Block, Block]] = Counter()
    row_blocks = tried = 0

    def apart(lines: int, count: int, x: int, y: int) -> bool:
        nonlocal tried
        tried += 1
        height = (lines - 1) * rows.stride + (rows.kernel - 1) * rows.dilation
        width = (count - 1) * cols.stride + (cols.kernel - 1) * cols.dilation
        x_end = x + height * in_line + (width + 1) * windows.in_c
        return x_end <= y or y + (lines - 1) * out_line + count * windows.out_c <= x

    for item in range(windows.batches):
        image = item * rows.size * in_line
        outputs = overlap.distance + item * rows.out * out_line

        def row_at(first: int, image: int = image) -> int:
            return image + (first * rows.stride - rows.pad) * in_line

        def whole(first: int, lines: int, outputs: int = outputs) -> bool:
            return apart(lines, cols.out, row_at(first) - cols.pad * windows.in_c, outputs + first * out_line)

        for top, lines in _halved(rows, overlap.backwards, whole):
            x, y = row_at(top), outputs + top * out_line
            row_blocks += 1

            def part(first: int, count: int, x: int = x, y: int = y, lines: Block = lines) -> bool:
                left = x + (first * cols.stride - cols.pad) * windows.in_c
                return lines.count > 1 or apart(1, count, left, y + first * windows.out_c)

            found.update((lines, block) for _, block in _halved(cols, overlap.backwards, part))
    parts = [times(count, _block(*blocks, compute)) for blocks, count in found.items()]
    own = {"images": windows.batches, "rows of blocks": row_blocks, "blocks tried": tried}
    return together(own, *parts)


def _halved(axis: Axis, backwards: bool, fits: Callable[[int, int], bool]) -> Iterator[tuple[int, Block]]:
    """Blocks of outputs that fit, each with its first output."""
    spans, done = axis.spans, 0
    while done < axis.out:
        at = axis.out - 1 - done if backwards else done
        start = at * axis.stride - axis.pad
        after = axis.size - 1 - (axis.kernel - 1) * axis.dilation - start
        count = 1
        if start >= 0 and after >= 0:
            count = min(1 + (start if backwards else after) // axis.stride, axis.out - done)
        while count > 1 and not fits(at - count + 1 if backwards else at, count):
            count -= count // 2
        yield (at - count + 1 if backwards else at), Block(count, *spans[at])
        done += count


def _block(rows: Block, cols: Block, compute: Compute) -> Work:
    """windows_f32_compute()."""
    taps = cols.end - cols.first if rows.end > rows.first else 0
    high = rows.end - rows.first if taps > 0 else 0
    lines, count = rows.count, cols.count
    by_columns = lines // 2 > count
    calls, each = (count, lines // 2) if by_columns else (lines // 2, count)
    parts = [{"blocks": 1.0}, times(calls, compute(high, taps, each, True)) if calls else {}]
    if lines % 2:
        parts.append(compute(high, taps, count // 2, True) if count > 1 else {})
        parts.append(compute(high, taps, 1, False) if count % 2 else {})
    return together(*parts)


def conv(layer: Layer[Weighted], windows: Windows, overlap: Overlap | None = None) -> Work:
    """conv_f32.c."""
    group_in, group_out = windows.in_c // windows.groups, windows.out_c // windows.groups
    nonzero = used(layer) * windows.out_c * group_in

    def compute(rows: int, taps: int, each: int, two: bool) -> Work:
        at_once = rows == 0 or (windows.groups == 1 and (windows.cols.dilation == 1 or taps == 1))
        calls = 1 if at_once else rows * taps
        run = taps * group_in if at_once else group_in
        one = filters(group_out, rows if at_once else 1, run, each, two)
        products = each * (2 if two else 1) * rows * taps * nonzero
        found = {"computed": 1, "groups": windows.groups, "products": products}
        return together(found, times(windows.groups * calls, one))

    return together(over_windows(windows, compute, overlap), limited(layer, layer.output.elements))


def depthwise(
    layer: Layer[Weighted],
    windows: Windows,
    tiles: tuple[int, ...],
    vectors: bool,
    overlap: Overlap | None = None,
) -> Work:
    """depthwise_conv_f32.c. ``vectors``: tiles of four may have fewer channels."""
    nonzero = used(layer) * windows.out_c

    def compute(rows: int, taps: int, each: int, two: bool) -> Work:
        found: dict[str, float] = {
            "computed": 1,
            "windows": each,
            "outputs": each * windows.out_c,
            "products": each * rows * taps * nonzero,
        }
        left = windows.out_c
        several = windows.out_c != windows.in_c
        for size in (1,) if several else tiles:
            count = groups_of(left, size) if vectors and size == 4 else left // size
            left -= count * size
            kind = f"channels by {size}" if not several else "filters of channels"
            found |= {
                kind: count * each,
                f"rows of {kind}": count * each * rows,
                f"taps of {kind}": count * each * rows * taps,
            }
        return found

    return together(over_windows(windows, compute, overlap), limited(layer, layer.output.elements))


def dense_one_by_one(layer: Layer[Weighted]) -> Work:
    """dense_f32_s8.c."""
    outputs, inputs = layer.input(1).shape
    rows = layer.output.elements // outputs
    return {
        "calls": 1,
        "rows": rows,
        "outputs": rows * outputs,
        "elements": rows * outputs * inputs,
        "products": rows * outputs * inputs * used(layer),
    }


def conv_one_by_one(layer: Layer[Weighted], windows: Windows) -> Work:
    """conv_f32_s8.c: every filter at every position."""
    rows, cols, outputs = windows.rows, windows.cols, windows.batches * windows.out_c
    depth = windows.in_c // windows.groups
    whole = cols.dilation == 1 and windows.groups == 1
    runs = sum(end > first for first, end in cols.spans) if whole else cols.taps
    elements = outputs * rows.taps * cols.taps * depth
    return {
        "calls": 1,
        "positions": windows.batches * windows.positions,
        "outputs": outputs * windows.positions,
        "rows of taps": outputs * rows.taps * cols.out,
        "runs": outputs * rows.taps * runs,
        "elements": elements,
        "products": elements * used(layer),
    }


def into_float(layer: Layer[Weighted], times_each: int, inputs: int, count: int, weight_zero: bool) -> Work:
    """tinyml_filters_s8_to_f32() so often: ``count`` filters of int8."""
    low, high = layer.op.clamp
    fours, ones = divmod(count, 4)
    summed = inputs * weight_zero
    found: Work = {
        "calls of filters": 1,
        "elements summed": summed,
        "vectors summed": summed // 16,
        "fours": fours,
        "quads of fours": fours * (inputs // 4),
        "single elements of fours": fours * (inputs % 4),
        "twos of fours": fours * (inputs // 2),
        "odd elements of fours": fours * (inputs % 2),
        "vectors of fours": fours * groups_of(inputs, 16),
        "filters": ones,
        "quads of filters": ones * (inputs // 4),
        "single elements of filters": ones * (inputs % 4),
        "twos of filters": ones * (inputs // 2),
        "odd elements of filters": ones * (inputs % 2),
        "vectors of filters": ones * groups_of(inputs, 16),
        "outputs": count,
        "outputs with bias": count * layer.has_input(2),
        "outputs within limits": count * (low > -math.inf or high < math.inf),
    }
    return times(times_each, found)


def windows_into_float(layer: Layer[Weighted], windows: Windows, weight_zero: bool) -> Work:
    """conv_s8_to_f32.c."""
    channels, count = windows.in_c // windows.groups, windows.out_c // windows.groups
    positions = windows.batches * windows.positions
    taps = positions * windows.groups * windows.taps
    inside = windows.batches * windows.groups * windows.rows.taps * windows.cols.taps
    return together(
        {
            "images": windows.batches,
            "positions": positions,
            "groups": positions * windows.groups,
            "rows gathered": positions * windows.groups * windows.rows.kernel,
            "taps copied": inside,
            "bytes copied": inside * channels,
            "words copied": inside * (channels // 4),
            "rest copied": inside * (channels % 4),
            "taps filled": taps - inside,
            "bytes filled": (taps - inside) * channels,
            "words filled": (taps - inside) * (channels // 4),
            "rest filled": (taps - inside) * (channels % 4),
        },
        into_float(layer, positions * windows.groups, windows.elements, count, weight_zero),
    )
