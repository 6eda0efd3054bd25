# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""How often the loops of kernels run that have two windows in one word: conv_halves_s8.h and
depthwise_halves_s8.c."""

from __future__ import annotations

from collections.abc import Callable

from tinyml.ops.conv import plane_counts
from tinyml.ops.framework.work import Work
from tinyml.ops.weighted.walked import Outputs, Windows, groups_of, times, together

WINDOWS = 4


def one_by_one(made: Outputs) -> Callable[[Windows, int], Work]:
    """One filter at four windows, in assembly; in C what has narrower limits than int8."""

    def filters(windows: Windows, blocks: int) -> Work:
        count = blocks * (windows.out_c // windows.groups)
        words = groups_of(windows.elements, 4)
        way = "limited" if made.narrow else "rounded once" if made.once else "rounded twice"
        limited = times(made.narrow / windows.groups, made.of(blocks * WINDOWS))
        return together(
            {
                "blocks of windows": blocks,
                "words spread": blocks * words,
                f"filters {way}": count,
                "words of filters": count * words,
                "rounds of filters": count * groups_of(words, 2),
            },
            limited,
        )

    return filters


def depthwise(windows: Windows, way: str, packed: bool = False) -> Work:
    """Outputs of the upper and of the lower half of an image at once. ``windows``: turned as they are walked.

    ``way``: the name of the loop.
    """
    rows, cols = windows.rows, windows.cols
    half = groups_of(rows.out, 2)
    height, width = (half - 1) * rows.stride + rows.kernel, (cols.out - 1) * cols.stride + cols.kernel
    column = width == 1  # walked like a row
    lines, across = (1, half) if column else (half, cols.out)
    kernel_rows, taps = (1, windows.taps) if column else (rows.kernel, cols.kernel)
    nine = way.startswith("3x3")
    walked = windows.out_c * lines * across
    image = together(
        {
            "images": 1,
            "words cleared": height * width,
            "channels": windows.out_c,
            "rows of taps set": windows.out_c * kernel_rows,
            "taps set": windows.out_c * windows.taps,
            f"channels {way}": windows.out_c,
            f"lines {way}": windows.out_c * lines,
            f"windows {way}": walked,
            f"rows of taps {way}": walked * kernel_rows * (not nine),
            f"pairs of taps {way}": walked * kernel_rows * groups_of(taps, 2) * (not nine),
        },
        times(windows.in_c, _filled(windows, half, height, width)),
    )
    return together(times(windows.batches, image), plane_counts.unpacked(windows) if packed else {})


def _filled(windows: Windows, half: int, height: int, width: int) -> Work:
    """depthwise_halves_fill_words()."""
    rows, cols = windows.rows, windows.cols
    apart = (rows.out - half) * rows.stride
    count = max(min(width - cols.pad, cols.size), 0)
    both = one = neither = 0
    for row in range(-rows.pad, height - rows.pad):
        inside = (0 <= row < rows.size) + (0 <= row + apart < rows.size)
        both, one, neither = both + (inside == 2), one + (inside == 1), neither + (inside == 0)
    runs, length = (both > 0, both) if width == 1 else (both, count)
    return {
        "channels filled": 1,
        "rows joined": runs,
        "twos joined": runs * (length // 2),
        "odd elements joined": runs * (length % 2),
        "rows with one": one,
        "elements with one": one * count,
        "rows of padding": neither,
        "elements of padding": neither * count,
    }
