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


def convolution_with_dsp(windows: Windows, whole: bool, shifts: bool) -> Work:
    """conv_dsp_s16.c. ``whole``: outputs are limited to what is not negative. ``shifts``: factors do not
    contain them."""
    channels, count = windows.in_c // windows.groups, windows.out_c // windows.groups
    padded = groups_of(windows.elements, 4) * 4
    blocks, last = groups_of(windows.positions, 3), windows.positions % 3
    rows_at_once = windows.cols.dilation == 1 and windows.groups == 1
    run = (windows.cols.kernel if rows_at_once else 1) * channels
    one_run = rows_at_once and windows.rows.kernel == 1
    odd = bool(run % 2) and not one_run
    flat = windows.is_pointwise and channels % 4 == 0
    narrow = rows_at_once and not odd and run % 2 == 0 and run <= 2 * windows.rows.kernel and not flat
    whole_blocks, inside = (blocks, windows.positions) if flat else _blocks_inside(windows, odd)
    if narrow:
        whole_blocks, inside = 0, windows.positions
    alone = windows.positions - inside  # windows that are not copied with others
    direct = 0 if odd else windows.inside - inside
    runs = windows.rows.kernel * (1 if rows_at_once else windows.cols.kernel)
    length = padded if one_run else run
    through = alone - direct
    puts = direct * runs * (length // 8) + through * (padded // 8)
    rest = direct * runs * (length % 8 // 2) + through * (padded % 8 // 2)
    edges = windows.positions - windows.inside
    inside_taps = windows.rows.taps * windows.cols.taps
    taps = inside_taps if odd else inside_taps - windows.inside * windows.taps
    lines = windows.rows.taps * windows.cols.out - (0 if odd else windows.inside * windows.rows.kernel)
    if narrow:
        taps = lines = 0
    pairs = count // 2
    some = (blocks if count % 2 else 0) + pairs * (last > 0)
    group: Work = {
        "groups": 1,
        "positions": 0 if flat else windows.positions,
        "runs of blocks": whole_blocks * runs,
        "eights of blocks": whole_blocks * runs * (length // 8),
        "words of blocks": whole_blocks * runs * (length % 8 // 2),
        "narrow windows": windows.positions * narrow,
        "columns of narrow windows": windows.positions * narrow * (run // 2),
        "words of narrow windows": windows.rows.taps * windows.cols.out * narrow * (run // 2),
        "windows alone": alone,
        "runs": direct * runs,
        "eights put": puts,
        "words put": rest,
        "windows through memory": through,
        "bytes cleared": 2 * (edges if odd else through) * windows.elements,
        "lines copied": lines,
        "runs copied": lines if rows_at_once else taps,
        "words copied": (taps * channels) // 2,
        "odd runs": (lines if rows_at_once else taps) * (run % 2),
        "blocks": blocks,
        "pairs": blocks * pairs,
        "single filters": blocks * (count % 2),
        "fours of pairs": blocks * (pairs + count % 2) * padded // 4,
        "turns of fours": blocks * (pairs + count % 2) * groups_of(padded // 4 - 1, 8),
        "pairs within limits": blocks * (pairs + count % 2) * (not whole),
        "pairs with shifts": blocks * (pairs + count % 2) * shifts,
        "pairs of fewer": some,
        "outputs of fewer": some * last,
    }
    return together({"images": windows.batches}, times(windows.batches * windows.groups, group))


def _blocks_inside(windows: Windows, odd: bool) -> tuple[int, int]:
    """Blocks of three windows without padding, which are copied together, and their windows."""
    inside = [row and col and not odd for row in windows.rows.inside for col in windows.cols.inside]
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
