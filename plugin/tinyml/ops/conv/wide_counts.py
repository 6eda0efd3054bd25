# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""How often the loops of int8 convolutions run on processors with 32 registers: conv_wide_s8.c."""

from __future__ import annotations

from collections.abc import Callable

from tinyml.ops.framework.work import Work
from tinyml.ops.weighted.walked import Outputs, Windows, groups_of, times, together

WINDOWS = 4


def by_fours(made: Outputs) -> Callable[[Windows, int], Work]:
    """Filters in fours, the last ones as a pair; a last block of one or two windows has a loop of its own."""

    def filters(windows: Windows, blocks: int) -> Work:
        count = windows.out_c // windows.groups
        words = groups_of(windows.elements, 4)
        short = windows.positions % WINDOWS in (1, 2)
        fours = count // 4 + (count % 4 == 3)
        pairs = groups_of(count, 2) - 2 * fours if count % 4 in (1, 2) else 0
        summed = blocks * WINDOWS * made.weight_zero
        return together(
            {
                "blocks of windows": blocks,
                "columns summed": summed,
                "elements summed": summed * 4 * words,
                "fours": (blocks - short) * fours,
                "words of fours": (blocks - short) * fours * words,
                "fours of two windows": short * fours,
                "words of fours of two windows": short * fours * words,
                "pairs": blocks * pairs,
                "words of pairs": blocks * pairs * words,
                "pairs stored": blocks * groups_of(count, 2),
                "pairs less a zero": blocks * groups_of(count, 2) * made.weight_zero,
                "filters stored": blocks * count,
            },
            times(1 / windows.groups, made.of(windows.positions)),
        )

    return filters
