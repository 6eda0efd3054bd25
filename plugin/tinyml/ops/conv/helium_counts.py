# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""How often the loops of int8 convolutions with Helium run: conv_mve_s8.c and depthwise_conv_mve_s8.c."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tinyml.ops.framework.work import Work
from tinyml.ops.weighted.helium import LANES
from tinyml.ops.weighted.walked import Axis, Windows, groups_of, times, together

WINDOWS = 4
OFFSETS = 64
"""Elements of a window that are gathered by their offsets."""
FOUR_TIMES_8 = range(25, 33)
"""Elements of windows that are gathered together."""


def convolution(windows: Windows, loop: str, groups: int = 0) -> Work:
    """conv_mve_s8_convolve(). ``groups``: ``windows`` are one of so many, or taps are apart; 0: neither."""
    vectors = groups_of(windows.elements, LANES)
    blocks = groups_of(windows.batches * windows.positions, WINDOWS)
    fours, last = divmod(windows.out_c, 4)
    walked = {
        "calls": 1,
        "vectors cleared": 4 * vectors,
        "blocks": blocks,
        "calls of fours": blocks * (fours > 0),
        **_blocks("fours", blocks * (fours + (last > 0)), loop),
        "vectors of fours": blocks * (fours + (last > 0)) * vectors,
        "rounds of fours": blocks * (fours + (last > 0)) * groups_of(vectors - 1, 4),
        "last filters": blocks * (last > 0),
    }
    return together(walked, _taken(windows, groups))


def _blocks(name: str, count: float, loop: str) -> Work:
    """Blocks of outputs, and what rounding adds; limits take only four instructions."""
    return {name: count, f"{name} rounded twice": count * loop.endswith("twice")}


def _taken(windows: Windows, groups: int) -> Work:
    """All windows as columns: those that lie inside the input several at a time."""
    rows, cols, apart = windows.rows, windows.cols, groups > 0
    undilated = apart or rows.dilation == cols.dilation == 1
    strides = rows.stride * cols.stride
    same = (rows.size, cols.size) == (rows.out, cols.out)
    if windows.taps * strides == 1 and same and undilated:
        width = windows.batches * windows.positions
        return together({"rows": 1}, _inside(windows, width, groups_of(width, WINDOWS), apart))
    wide = cols.kernel + (cols.kernel - 1) * (cols.dilation - 1) * apart
    high = rows.kernel + (rows.kernel - 1) * (rows.dilation - 1) * apart
    begin = groups_of(cols.pad, cols.stride)
    room = cols.size + cols.pad - wide
    end = min(room // cols.stride + 1 if room >= 0 else 0, cols.out)
    between = range(begin, end) if undilated else range(0)
    at_edge = [col for col in range(cols.out) if col not in between]
    one_run = cols.dilation == 1 and groups < 2
    runs = _Runs(windows, range(cols.out), one_run), _Runs(windows, at_edge, one_run)
    pieces = inside = calls = count = 0
    parts: list[Work] = []
    for start, (first, last) in zip(rows.starts, rows.spans, strict=True):
        whole = undilated and start >= 0 and start + high <= rows.size and len(between) > 0
        parts.append(runs[whole].work(first, last))
        pieces += len(at_edge) if whole else cols.out
        inside += len(between) * whole
        if whole:
            free = WINDOWS - (count + begin) % WINDOWS
            calls += 1 + groups_of(max(len(between) - free, 0), WINDOWS)
        count += cols.out
    gathered = {
        "rows": rows.out,
        "pieces": pieces,
        "vectors filled": pieces * groups_of(windows.elements, LANES),
    }
    return times(windows.batches, together(gathered, _inside(windows, inside, calls, apart), *parts))


class _Runs:
    """conv_windows_mve_piecewise() for windows at these columns: its runs by rows of the kernel."""

    def __init__(self, windows: Windows, columns: Sequence[int], one_run: bool) -> None:
        cols, channels = windows.cols, windows.in_c
        self._rows: list[list[int]] = []
        for row in range(windows.rows.kernel):
            found = [0, 0, 0, 0]
            for col in columns:
                first, end = cols.spans[col]
                run = end - first if one_run else 1
                for tap in range(first, end, max(run, 1)):
                    pieces = _put((row * cols.kernel + tap) * channels, run * channels)
                    found = [1 + found[0], pieces[0] + found[1], pieces[1] + found[2], found[3]]
                found[3] += 1
            self._rows.append(found)

    def work(self, first: int, end: int) -> Work:
        """Of the rows of the kernel that lie inside the input."""
        sums = [sum(row[index] for row in self._rows[first:end]) for index in range(4)]
        return dict(
            zip(("runs", "runs from the middle", "vectors of runs", "rows of pieces"), sums, strict=True)
        )


def _put(at: int, count: int) -> tuple[bool, int]:
    """conv_windows_mve_put_run(): whether it begins inside a vector, and the vectors after that one."""
    room = -at % LANES
    return room > 0, groups_of(max(count - room, 0), LANES)


def _inside(windows: Windows, count: int, calls: int, apart: bool) -> Work:
    """conv_windows_mve_take_windows() or the same for taps that are apart."""
    rows, cols, elements = windows.rows, windows.cols, windows.elements
    row = cols.kernel * windows.in_c
    found = {"takes": calls, "windows": count}
    if (row % LANES == 0 or rows.kernel == 1) and (not apart or cols.kernel == 1):
        vectors = count * rows.kernel * groups_of(row, LANES)
        return {**found, "rows taken": count * rows.kernel, "vectors taken": vectors}
    if elements <= OFFSETS:
        together_at = elements in FOUR_TIMES_8 and not apart
        return {
            **found,
            "offsets": elements,
            "windows by eights": count * together_at,
            "windows of elements": count * (not together_at),
            "vectors of elements": count * (not together_at) * ((elements - 1) // LANES),
        }
    taps = cols.kernel if apart else 1
    starts = [(index, windows.in_c if apart else row) for index in range(rows.kernel * taps)]
    puts = [_put(index * size, size) for index, size in starts]
    return {
        **found,
        "runs taken": count * len(puts),
        "runs taken from the middle": count * sum(middle for middle, _ in puts),
        "vectors of runs taken": count * sum(vectors for _, vectors in puts),
    }


def grouped(windows: Windows, groups: int, loop: str) -> Work:
    """tinyml_conv_groups_mve_s8(): so many groups, which may be joined ones of the layer."""
    group = replace(windows, in_c=windows.in_c // groups, out_c=windows.out_c // groups, groups=1)
    return times(groups, convolution(group, loop, groups))


def depthwise(windows: Windows, loop: str, in_place: bool) -> Work:
    """depthwise_conv_mve_s8.c. ``loop``: its name; ``in_place``: rows are read where they are."""
    cols, channels = windows.cols, windows.in_c
    blocks, rest = divmod(channels, LANES)
    runs = [(0, max(blocks, 1))] + ([(channels - LANES, 1)] if blocks and rest else [])
    walk = _three_by_three if loop.startswith("3x3") else _any
    image = together(
        {"images": 1, "taps found": windows.rows.out * windows.taps, "lines": windows.rows.out},
        *(times(windows.rows.out, walk(cols, channels, run, windows.taps, loop)) for run in runs),
        {} if in_place else _ring(windows),
    )
    return together({"calls": 1}, times(windows.batches, image))


def _step(cols: Axis, channels: int) -> int:
    """Outputs of a position; eight channels fill a vector with two neighbouring ones."""
    return channels * (2 if channels == LANES // 2 and cols.stride == 1 else 1)


def _three_by_three(cols: Axis, channels: int, run: tuple[int, int], taps: int, loop: str) -> Work:
    """depthwise_conv_mve_row_3x3()."""
    (at, count), step, end = run, _step(cols, channels), cols.out * channels
    positions = calls = lasts = 0
    while at < end:
        last = end - at < LANES
        whole = 1 if last else (end - at - LANES) // step + 1
        positions, calls, lasts, at = positions + whole, calls + 1, lasts + last, at + whole * step
    return {
        "walks": 1,
        "calls of blocks": calls,
        "positions": positions,
        **_blocks("blocks of nine taps", positions * count, loop),
        "last outputs": lasts,
    }


def _any(cols: Axis, channels: int, run: tuple[int, int], taps: int, loop: str) -> Work:
    """depthwise_conv_mve_row_taps()."""
    (at, count), step, end = run, _step(cols, channels), cols.out * channels
    positions = range(at, end, step)
    return {
        "walks": 1,
        "positions of any": len(positions),
        **_blocks("blocks", len(positions) * count, loop),
        "pairs of taps": len(positions) * count * (taps // 2),
        "odd taps": len(positions) * count * (taps % 2),
        "last outputs": sum(end - place < LANES for place in positions),
    }


def _ring(windows: Windows) -> Work:
    """tinyml_ring_fill() for all rows of outputs of an image."""
    rows, cols, channels = windows.rows, windows.cols, windows.in_c
    read = range(-rows.pad, rows.reach - rows.pad)
    inside = sum(0 <= row < rows.size for row in read)
    row = max(cols.reach, cols.pad + cols.size)
    before, size, after = (
        groups_of(n * channels, LANES) for n in (cols.pad, cols.size, row - cols.pad - cols.size)
    )
    return {
        "rows read": inside,
        "vectors read": inside * size,
        "vectors beside": inside * (before + after),
        "rows filled": len(read) - inside,
        "vectors of rows filled": (len(read) - inside) * groups_of(row * channels, LANES),
    }
