# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""How often the loops of layers with int16 activations run."""

from __future__ import annotations

from tinyml.ir import Layer
from tinyml.ops.framework.work import Work
from tinyml.ops.weighted.walked import Axis, Windows, groups_of, times, together
from tinyml.ops.weighted.weighted import Weighted

CHUNK = 256
"""Products that tinyml_add_products_s16() adds in 32 bits."""


def products(count: float, length: int) -> Work:
    """tinyml_add_products_s16() so often, and the outputs made of its sums."""
    whole, last = divmod(length, CHUNK)
    return times(
        count,
        {
            "sums": 1,
            "chunks": groups_of(length, CHUNK),
            "fours": whole * (CHUNK // 4) + last // 4,
            "elements": last % 4,
        },
    )


def dense(layer: Layer[Weighted]) -> Work:
    """dense_s16.c."""
    outputs, inputs = layer.input(1).shape
    rows = layer.output.elements // outputs
    return together(
        {"calls": 1, "rows": rows, "sums rounded once": rows * outputs * layer.op.round_once},
        products(rows * outputs, inputs),
    )


def dense_with_dsp(layer: Layer[Weighted]) -> Work:
    """dense_dsp_s16.c."""
    outputs, inputs = layer.input(1).shape
    rows, fours, words = layer.output.elements // outputs, groups_of(outputs, 4), groups_of(inputs, 2)
    return times(
        1,
        {
            "calls": 1,
            "rows": rows,
            "fours": rows * fours,
            "words": rows * fours * words,
            "odd inputs": rows * fours * (inputs % 2),
            "outputs": rows * outputs,
        },
    )


def convolution(windows: Windows, once: bool) -> Work:
    """conv_s16.c."""
    positions = windows.batches * windows.positions
    channels = windows.in_c // windows.groups
    gathered = positions * windows.groups
    inside = windows.batches * windows.groups * windows.rows.taps * windows.cols.taps
    return together(
        {
            "images": windows.batches,
            "positions": positions,
            "groups": gathered,
            "rows gathered": gathered * windows.rows.kernel,
            "taps gathered": gathered * windows.taps,
            "elements gathered": gathered * windows.taps * channels,
            "elements inside": inside * channels,
            "sums rounded once": positions * windows.out_c * once,
        },
        products(positions * windows.out_c, windows.elements),
    )


def convolution_with_dsp(windows: Windows, whole: bool, shifts: bool, whole_rows: bool = False) -> Work:
    """conv_dsp_s16.c. ``whole``: outputs are limited to what is not negative. ``shifts``: factors do not
    contain them. ``whole_rows``: an element is added to each row of taps."""
    if windows.out_c == 1:
        return single_with_dsp(windows)
    channels, count = windows.in_c // windows.groups, windows.out_c // windows.groups
    rows_at_once = windows.cols.dilation == 1 and windows.groups == 1
    run = (windows.cols.kernel if rows_at_once else 1) * channels + whole_rows
    runs = windows.rows.kernel * (1 if rows_at_once else windows.cols.kernel)
    padded = groups_of(runs * run, 4) * 4
    positions = windows.batches * windows.positions
    blocks, last = groups_of(positions, 3), positions % 3
    pairs = blocks * groups_of(count, 2)
    alone = groups_of(count, 2) if last == 1 else 0  # the last window of all
    group: Work = {
        "groups": 1,
        "blocks": blocks,
        "pairs": blocks * (count // 2),
        "single filters": blocks * (count % 2),
        "fours of pairs": (pairs - alone) * padded // 4,
        "fours of pairs alone": alone * padded // 4,
        "turns of fours": (pairs - alone) * groups_of(padded // 4 - 1, 8),
        "pairs within limits": pairs * (not whole),
        "pairs with shifts": pairs * shifts,
        **_columns_with_dsp(windows, run, rows_at_once, padded),
    }
    return together({"images": 1}, times(windows.groups, group))


def _columns_with_dsp(windows: Windows, run: int, rows_at_once: bool, padded: int) -> Work:
    """conv_columns_dsp_s16.h, for one group."""
    channels, kernel_h = windows.in_c // windows.groups, windows.rows.kernel
    runs = kernel_h * (1 if rows_at_once else windows.cols.kernel)
    positions = windows.batches * windows.positions
    if windows.is_pointwise and channels % 4 == 0:
        blocks = groups_of(positions, 3)
        return {"eights of blocks": blocks * (channels // 8), "words of blocks": blocks * (channels % 8 // 2)}
    one_run = rows_at_once and kernel_h == 1
    if rows_at_once and run % 2 == 0 and run <= kernel_h:
        return _columns_down(windows, positions, run)
    whole_blocks, copied_together = _blocks_inside(windows, bool(run % 2) and not one_run)
    length = padded if one_run else run
    blocks_of_three: Work = {
        "windows": positions,
        "runs of blocks": whole_blocks * runs,
        "eights of blocks": whole_blocks * runs * (length // 8),
        "words of blocks": whole_blocks * runs * (length % 8 // 2),
    }
    alone = positions - copied_together
    edges = windows.batches * (windows.positions - windows.inside)
    if rows_at_once and run % 2 == 0 and kernel_h > 1 and run <= (6 if channels % 2 else 4) * kernel_h:
        return together(blocks_of_three, _columns_down(windows, alone, run))
    inside_taps = windows.batches * windows.rows.taps * windows.cols.taps - copied_together * windows.taps
    lines = windows.batches * windows.rows.taps * windows.cols.out - copied_together * kernel_h
    copied = lines if rows_at_once else inside_taps
    elements = inside_taps * channels
    if channels % 2 == 0:
        mean = elements // copied if copied else 0
        return together(
            blocks_of_three,
            {
                "windows gathered": alone,
                "edges": edges,
                "lines": lines,
                "runs": copied,
                "eights put": copied * (mean // 8),
                "words put": copied * (mean % 8 // 2),
                "words of zeros": alone * padded // 2 - elements // 2,
            },
        )
    return together(
        blocks_of_three,
        {
            "windows gathered": alone,
            "edges": edges,
            "windows through memory": alone * (not one_run) + edges * one_run,
            "lines": lines,
            "runs copied": copied,
            "words copied": elements // 2,
            "odd runs": copied * (channels % 2),
            "eights put": alone * (padded // 8),
            "words put": alone * (padded % 8 // 2),
        },
    )


def _columns_down(windows: Windows, count: int, run: int) -> Work:
    """So many windows word by word of their rows."""
    inside = windows.rows.taps * windows.cols.out / (windows.positions * windows.rows.kernel)
    return {
        "windows down": count,
        "columns down": count * (run // 2),
        "words down": count * (run // 2) * windows.rows.kernel * inside,
    }


def single_with_dsp(windows: Windows) -> Work:
    """conv_single_dsp_s16.c."""
    whole_rows = windows.cols.dilation == 1
    lines = windows.rows.taps * windows.cols.out
    runs = lines if whole_rows else windows.rows.taps * windows.cols.taps
    elements = windows.rows.taps * windows.cols.taps * windows.in_c
    mean = elements // runs if runs else 0
    return times(
        windows.batches,
        {
            "single outputs": windows.positions,
            "single edges": windows.positions - windows.inside,
            "single parts": windows.positions if whole_rows else windows.rows.out * windows.cols.taps,
            "single runs": runs,
            "single eights": runs * (mean // 8),
            "single words": runs * (mean % 8 // 2),
            "single odd runs": runs * (mean % 2),
        },
    )


def _blocks_inside(windows: Windows, odd: bool) -> tuple[int, int]:
    """Blocks of three windows without padding, which are copied together, and their windows."""
    image = [row and col and not odd for row in windows.rows.inside for col in windows.cols.inside]
    inside = image * windows.batches
    found = [inside[at : at + 3] for at in range(0, len(inside), 3)]
    return sum(map(all, found)), sum(len(some) for some in found if all(some))


def depthwise_with_dsp(windows: Windows) -> Work:
    """depthwise_dsp_s16.c."""
    rows, cols = windows.rows, windows.cols
    fours, rest = divmod(windows.in_c, 4)
    pairs, singles, pair_taps, single_taps = _neighbours(cols)
    found: dict[str, float] = {
        "images": 1,
        "lines": rows.out,
        "positions": rows.out * (pairs + singles),
        "channels of pairs": rows.out * pairs * windows.in_c,
        "channels alone": rows.out * singles * windows.in_c,
    }
    for name, blocks, taps in (("pairs", pairs, pair_taps), ("alone", singles, single_taps)):
        found |= {
            f"fours {name}": rows.out * blocks * fours,
            f"rows {name}": rows.taps * blocks * fours,
            f"taps {name}": rows.taps * taps * fours,
            f"last channels {name}": rows.out * blocks * (rest > 0),
            f"rows of last channels {name}": rows.taps * blocks * (rest > 0),
            f"taps of last channels {name}": rows.taps * taps * (rest > 0),
            f"elements of last channels {name}": rows.taps * taps * rest,
        }
    return times(windows.batches, found)


def _neighbours(cols: Axis) -> tuple[int, int, int, int]:
    """Blocks of two columns with the same taps, other columns, and the taps of a row in each."""
    pairs = singles = pair_taps = single_taps = 0
    at = 0
    while at < cols.out:
        first, end = cols.spans[at]
        following = at * cols.stride - cols.pad + cols.stride
        both = at + 1 < cols.out and first == 0 and following + (cols.kernel - 1) * cols.dilation < cols.size
        if both:
            pairs, pair_taps = pairs + 1, pair_taps + end - first
        else:
            singles, single_taps = singles + 1, single_taps + end - first
        at += 1 + both
    return pairs, singles, pair_taps, single_taps


def planes_with_dsp(windows: Windows, whole: bool, shifts: bool, two: bool) -> Work:
    """depthwise_planes_dsp_s16.c. ``two``: two channels are copied at once."""
    rows, cols = windows.rows, windows.cols
    channels = windows.in_c * windows.batches
    copies = channels // 2 if two else channels
    width = (cols.kernel + cols.out) // 2 * 2
    copied = max(min(cols.size, width - cols.pad), 0)
    at_once = 4 if two else 8
    lines, in_lines = channels * rows.out, rows.kernel == 3 and not shifts
    eights, rest = divmod(cols.out, 8) if in_lines else (0, 0)
    fours = 0 if in_lines else groups_of(cols.out, 4)
    kind = " of two" if two else ""
    return {
        "calls": 1,
        "images": windows.batches,
        "bytes of planes": (4.0 if two else 2.0) * rows.reach * width,
        "channels": channels,
        f"copies{kind}": copies,
        f"lines copied{kind}": copies * rows.copied,
        f"blocks copied{kind}": copies * rows.copied * (copied // at_once),
        f"elements copied{kind}": copies * rows.copied * (copied % at_once),
        "rows of taps widened": channels * rows.kernel,
        "channels in lines": channels * in_lines,
        "lines": lines * in_lines,
        "eights": lines * eights,
        "twos": lines * (rest // 2),
        "ones": lines * (rest % 2),
        "eights within limits": lines * eights * (not whole),
        "twos and ones within limits": lines * groups_of(rest, 2) * (not whole),
        "lines of fours": lines * (fours > 0),
        "fours": lines * fours,
        "fours within limits": lines * fours * (not whole),
        "rows of taps": lines * fours * rows.kernel,
        "odd lines": lines * (cols.out % 4 > 0) * (fours > 0),
    }


def strips_with_helium(windows: Windows, shifts: bool) -> Work:
    """depthwise_strips_mve_s16.c. ``shifts``: factors do not contain them."""
    rows, cols = windows.rows, windows.cols
    strips = windows.batches * groups_of(windows.in_c, 8)
    pairs = groups_of(cols.out, 2)
    lines = strips * rows.out
    slots = (rows.kernel - 1) * rows.dilation + 2
    return {
        "calls": 1,
        "images": windows.batches,
        "bytes of rows": 16.0 * slots * (2 * pairs + 2),
        "strips": strips,
        "lines copied": strips * rows.copied,
        "positions copied": strips * rows.copied * min(cols.size, 2 * pairs + 2 - cols.pad),
        "lines": lines,
        "rows of lines": lines * rows.kernel,
        "odd lines": lines * (cols.out % 2),
        "pairs": lines * pairs,
        "pairs with shifts": lines * pairs * shifts,
        "rows of taps": lines * pairs * rows.kernel,
    }
