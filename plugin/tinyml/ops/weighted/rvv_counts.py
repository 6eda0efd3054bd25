# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""How often the loops of kernels with RISC-V's vectors run (runtime/weighted/rvv_s8.h), of 128 bits each.

Longer vectors take fewer turns; the emulated core that instructions are counted on has these.
"""

from __future__ import annotations

from tinyml.ops.framework.work import Work
from tinyml.ops.weighted.walked import Axis, Outputs, Windows, groups_of, times, together

COPIED = 128
"""Bytes of eight vectors, which are copied at once."""
FILTERS = 32
"""Sums in eight vectors."""
FILTERS_OF_WINDOWS = 16
"""Sums in four vectors, of each of four windows."""
WINDOWS = 4


def applied(elements: int, filters: int, once: bool, packed: bool) -> Work:
    """tinyml_rvv_apply(): all filters at one window."""
    vectors = groups_of(filters, FILTERS)
    return {
        "windows alone": 1,
        "vectors": vectors,
        "vectors rounded once": vectors * once,
        "elements of vectors": vectors * (elements // 2 if packed else elements),
        "last elements of vectors": vectors * (elements % 2) * packed,
    }


def applied_to_windows(elements: int, filters: int, once: bool, packed: bool) -> Work:
    """tinyml_rvv_apply_windows(): all filters at four windows."""
    vectors = groups_of(filters, FILTERS_OF_WINDOWS)
    at_once = 2 if packed else 4
    return {
        "blocks": 1,
        "vectors of blocks": vectors,
        "vectors of blocks rounded once": vectors * once,
        "elements of blocks": vectors * (elements // at_once),
        "last elements of blocks": vectors * (elements % at_once),
    }


def dense(rows: int, inputs: int, outputs: int, made: Outputs, packed: bool = False) -> Work:
    """dense_rvv_s8.c."""
    return together({"calls": 1}, times(rows, applied(inputs, outputs, made.once, packed)))


def convolution(windows: Windows, made: Outputs, packed: bool = False) -> Work:
    """conv_rvv_s8.c."""
    positions, elements = windows.positions, windows.elements
    blocks, alone = divmod(positions, WINDOWS)
    image = together(
        {"images": 1},
        _gathered(windows),
        times(blocks, applied_to_windows(elements, windows.out_c, made.once, packed)),
        times(alone, applied(elements, windows.out_c, made.once, packed)),
    )
    return together({"calls": 1}, times(windows.batches, image))


def _gathered(windows: Windows) -> Work:
    """conv_rvv_gather_window() of every window of an image."""
    rows, cols = windows.rows, windows.cols
    filled = windows.positions - windows.inside
    copies = chunks = 0
    for first, end in cols.spans:
        run = end - first if cols.dilation == 1 else 1
        count = (end - first) // run if end > first else 0
        copies += count
        chunks += count * groups_of(run * windows.in_c, COPIED)
    return {
        "windows": windows.positions,
        "windows filled": filled,
        "chunks filled": filled * groups_of(windows.elements, COPIED),
        "rows of windows": rows.taps * cols.out,
        "copies": rows.taps * copies,
        "chunks copied": rows.taps * chunks,
    }


def depthwise(windows: Windows, made: Outputs, in_place: bool) -> Work:
    """depthwise_conv_rvv_s8.c. ``in_place``: rows are read where they are."""
    rows, cols, channels = windows.rows, windows.cols, windows.in_c
    vectors = windows.positions * groups_of(channels, FILTERS)
    walked = {
        "images": 1,
        "rows of outputs": rows.out,
        "windows": windows.positions,
        "vectors": vectors,
        "vectors rounded once": vectors * made.once,
        "rows of taps": vectors * rows.kernel,
        "taps": vectors * rows.kernel * cols.kernel,
    }
    image = walked if in_place else together(walked, _ring(rows, cols, channels))
    return together({"calls": 1}, times(windows.batches, image))


def _ring(rows: Axis, cols: Axis, channels: int) -> Work:
    """tinyml_ring_fill() for all rows of outputs of an image."""
    read = range(-rows.pad, rows.reach - rows.pad)
    inside = sum(0 <= row < rows.size for row in read)
    row = max(cols.reach, cols.pad + cols.size)
    after = row - cols.pad - cols.size
    chunks = [groups_of(count * channels, COPIED) for count in (cols.pad, cols.size, after)]
    return {
        "rows read": inside,
        "chunks read": inside * chunks[1],
        "chunks beside": inside * (chunks[0] + chunks[2]),
        "rows filled": len(read) - inside,
        "chunks filled": (len(read) - inside) * groups_of(row * channels, COPIED),
    }
