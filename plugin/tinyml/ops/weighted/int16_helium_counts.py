# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""How often the loops of layers with int16 activations run with Helium."""

from __future__ import annotations

from tinyml.ops.framework.work import Work
from tinyml.ops.weighted.walked import Axis, Windows, groups_of, times, together

LANES = 8
WINDOWS = 4
TURN = 8
"""Vectors of a turn of the loop over them."""
NARROW = 3
"""Taps of a row that are no loop."""


def depthwise(windows: Windows) -> Work:
    """depthwise_mve_s16.c."""
    rows, cols = windows.rows, windows.cols
    eights, fours = windows.in_c // LANES, groups_of(windows.in_c % LANES, 4)
    narrow = cols.kernel <= NARROW and eights > 0
    kind = "narrow eights" if narrow else "eights"
    walked = sum(end > first for first, end in cols.spans) if narrow else cols.out
    image = {
        "images": 1,
        "lines": rows.out,
        "windows": windows.positions,
        "narrow windows": windows.positions * narrow,
        kind: windows.positions * eights,
        f"rows of {kind}": rows.taps * walked * eights,
        f"taps of {kind}": rows.taps * cols.taps * eights,
        "windows with fours": windows.positions * (fours > 0),
        "fours": windows.positions * fours,
        "rows of fours": rows.taps * cols.out * fours,
        "taps of fours": rows.taps * cols.taps * fours,
    }
    return together({"calls": 1}, times(windows.batches, image))


def convolution(windows: Windows, shifts: bool) -> Work:
    """conv_mve_s16.c. ``shifts``: factors do not contain them."""
    count, last = windows.out_c // windows.groups, windows.positions % WINDOWS
    blocks, vectors = groups_of(windows.positions, WINDOWS), groups_of(windows.elements, LANES)
    pairs, single = divmod(count, 2)
    walked = blocks * (pairs + single)
    some = blocks * single + pairs * (last > 0)
    group = together(
        {
            "groups": 1,
            "blocks": blocks,
            "calls of filters": blocks * ((pairs > 0) + single),
            "single filters": blocks * single,
            "pairs": walked,
            "vectors of pairs": walked * vectors,
            "turns of pairs": walked * groups_of(vectors - 1, TURN),
            "pairs with shifts": walked * shifts,
            "pairs of fewer": some,
            "outputs of fewer": windows.positions * single + pairs * last,
        },
        _windows(windows, vectors),
    )
    return together({"images": windows.batches}, times(windows.batches * windows.groups, group))


def _windows(windows: Windows, vectors: int) -> Work:
    """conv_mve_s16_windows() for all positions."""
    rows, cols, one = windows.rows, windows.cols, windows.groups == 1
    channels, positions = windows.in_c // windows.groups, windows.positions
    single_tap = windows.taps == 1
    in_a_row = rows.kernel == 1 and (single_tap or (one and cols.dilation == 1))
    straight = in_a_row or (one and cols.size == rows.dilation == 1)
    plain = rows.stride == cols.stride == 1 and not (rows.pad or cols.pad) and channels % LANES == 0
    if single_tap and plain and cols.out == cols.size and rows.out <= rows.size:
        return {"flat windows": positions}
    run = cols.kernel * channels
    if not straight and cols.dilation == 1 and one and LANES / 2 <= run <= LANES:
        cut = (rows.out - sum(rows.inside)) * cols.out
        return {
            "narrow windows": positions,
            "rows of narrow windows": rows.taps * cols.out,
            "narrow windows cut": cut,
            "vectors cleared": cut * vectors,
        }
    if not in_a_row:
        return _gathered(windows, straight)
    blocks = _blocks_in_rows(windows)
    others = times((positions - WINDOWS * blocks) / positions, _gathered(windows, straight))
    return together({"blocks in rows": blocks}, others)


def _blocks_in_rows(windows: Windows) -> int:
    """Blocks of windows that lie side by side in a row of the input."""
    cols = windows.cols
    return sum(
        cols.inside[at : at + WINDOWS] == [True] * WINDOWS
        for first, row in zip(range(0, windows.positions, cols.out), windows.rows.inside, strict=True)
        for at in range(-first % WINDOWS, cols.out, WINDOWS)
        if row
    )


def _gathered(windows: Windows, straight: bool) -> Work:
    """conv_mve_s16_gather() for all positions; windows that are straight inside the input are not copied."""
    rows, cols = windows.rows, windows.cols
    direct = windows.inside * straight
    copied = together(
        _copied(windows, rows, cols, False), times(-float(straight), _copied(windows, rows, cols, True))
    )
    edges = windows.positions - windows.inside
    return together(
        {
            "windows": windows.positions,
            "windows copied": windows.positions - direct,
            "windows cleared": edges,
            "bytes cleared": 2 * edges * windows.elements,
        },
        copied,
    )


def _copied(windows: Windows, rows: Axis, cols: Axis, inside: bool) -> Work:
    """tinyml_copy_window_s16() for all windows, or for those that lie inside the input."""
    channels = windows.in_c // windows.groups
    one_run = cols.dilation == 1 and windows.groups == 1
    spans = [span for span, whole in zip(cols.spans, cols.inside, strict=True) if whole or not inside]
    lines = [
        end - first
        for (first, end), whole in zip(rows.spans, rows.inside, strict=True)
        if whole or not inside
    ]
    parts = []
    for first, end in spans:
        taps = end - first
        if taps > 0:
            parts.append(_run(taps * channels, 1) if one_run else _run(channels, taps))
    calls = len(lines) if one_run else sum(lines)
    return together({"copies of runs": calls * len(parts)}, times(sum(lines), together(*parts)))


def _run(elements: int, count: int) -> Work:
    """tinyml_copy_runs_s16() with so many of these."""
    if elements <= LANES:
        return {"short runs": count}
    return {
        "long runs": count,
        "vectors of long runs": count * (elements // LANES),
        "rests of long runs": count * (elements % LANES > 0),
    }
