# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""How often the loops of int8 convolutions over a stream of filters run: runtime/conv/conv_stream_s8.h."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ops.framework.work import Work
from tinyml.ops.weighted.walked import Outputs, Windows, by_runs, groups_of, times, together


@dataclass(frozen=True)
class Columns:
    """Windows of a group as columns (conv_columns_s8.h)."""

    windows: Windows

    @property
    def channels(self) -> int:
        return self.windows.in_c // self.windows.groups

    @property
    def whole_words(self) -> bool:
        return self.channels % 4 == 0

    @property
    def words(self) -> int:
        """Of a column."""
        return groups_of(self.windows.elements, 4)

    @property
    def plain(self) -> bool:
        """Whether a row of taps is one run of the input."""
        windows = self.windows
        return windows.rows.dilation == windows.cols.dilation == windows.groups == 1

    def append(self, count: int) -> Work:
        """conv_columns_append(): so many elements of the input."""
        if self.whole_words:
            return {"appended": 1, "words appended": count // 4}
        short = count < 4
        return {
            "appended": 1,
            "short appended": float(short),
            "bytes appended": count * short,
            "words of bytes appended": groups_of(count, 4) * (not short),
        }

    def pad(self, count: int) -> Work:
        """conv_columns_append_padding(): four elements at a time."""
        whole, rest = divmod(count, 4)
        return together(
            {"paddings": 1, "words of padding": groups_of(count, 4)},
            times(whole, self.append(4)),
            self.append(rest) if rest else {},
        )

    def inside(self) -> Work:
        """conv_columns_collect() of a window without padding."""
        windows = self.windows
        return times(windows.rows.kernel, self.append(windows.cols.kernel * self.channels))

    def collected(self) -> Work:
        """conv_columns_collect() of every window of an image."""
        windows = self.windows
        inside = windows.inside if self.plain else 0
        gaps = windows.cols.dilation != 1 or windows.groups != 1
        walked = by_runs(windows, self.append, self.pad, whole_rows=not gaps)
        pieces = windows.positions - inside
        in_pieces = {
            "windows in pieces": pieces,
            "rows in pieces": pieces * windows.rows.kernel,
            "pieces": pieces * windows.rows.kernel * (windows.cols.kernel if gaps else 1),
        }
        return together(walked, in_pieces)


def one_by_one(
    windows: Windows, together_at: int, filters: Callable[[Windows, int], Work], pointwise: bool = True
) -> Work:
    """conv_stream_convolve_group(): windows one after the other, ``together_at`` of them with all filters."""
    columns = Columns(windows)
    positions = windows.positions
    if pointwise and columns.whole_words and windows.groups == 1 and windows.is_pointwise:
        copied: Work = {"pixels": positions, "words of pixels": positions * columns.words}
    else:
        copied = together(
            {"windows": positions},
            columns.collected(),
            {}
            if columns.whole_words
            else {"columns of bytes": positions, "words of columns": positions * columns.words},
        )
    blocks = groups_of(positions, together_at)
    group = together({"groups": 1}, copied, filters(windows, blocks))
    return together({"images": windows.batches}, times(windows.batches * windows.groups, group))


def two_by_two(windows: Windows, filters: Callable[[Windows, int], Work]) -> Work:
    """conv_two_windows_s8.h: both windows of a block are copied at once where neither has padding."""
    columns = Columns(windows)
    blocks = groups_of(windows.positions, 2)
    pixels = windows.is_pointwise
    both = (blocks if pixels else _both_inside(windows)) if columns.plain else 0
    group = together(
        {
            "groups": 1,
            "blocks": blocks,
            "blocks that are tried": blocks * columns.plain * (not pixels),
        },
        _both_copied(columns, both),
        _one_after_the_other(columns, blocks - both, columns.plain and _last_inside(windows)),
        filters(windows, blocks),
    )
    return together({"images": windows.batches}, times(windows.batches * windows.groups, group))


def _both_copied(columns: Columns, both: int) -> Work:
    """conv_both_gather(): rows of two windows at once, as words or as bytes that are spread in the end."""
    windows = columns.windows
    rows = both * windows.rows.kernel
    count = windows.cols.kernel * windows.in_c
    if columns.whole_words:
        words = count // 4
        return {
            "rows of both": rows,
            "words of both": rows * words,
            "odd rows of both": rows * (words % 2),
        }
    return together(
        {
            "rows of both in bytes": rows,
            "short rows of both": rows * (count < 4),
            "words of both in bytes": rows * groups_of(count, 4) * (count >= 4),
        },
        _spread(columns, both),
    )


def _spread(columns: Columns, blocks: int) -> Work:
    """conv_both_spread()."""
    words = columns.words
    return {
        "columns of bytes": blocks,
        "words of columns": blocks * words,
        "odd columns": blocks * (words % 2),
    }


def _one_after_the_other(columns: Columns, blocks: int, last_with_others: bool) -> Work:
    """Both windows of the blocks that are not copied at once; a last single window is copied twice."""
    if not blocks:
        return {}
    windows = columns.windows
    odd = windows.positions % 2
    at_once = groups_of(windows.positions, 2) - blocks
    elsewhere = 2 * at_once - (odd and last_with_others)
    twice = odd and not last_with_others
    alone = together(
        {"windows": 2 * blocks},
        columns.collected(),
        times(-elsewhere, columns.inside()),
        times(twice / windows.positions, columns.collected()),  # about: it is one like the others
    )
    return alone if columns.whole_words else together(alone, _spread(columns, blocks))


def _both_inside(windows: Windows) -> int:
    """Blocks of two windows side by side without padding, and a last single window without."""
    rows, cols = windows.rows.inside, windows.cols.inside
    beside = [0, 0]  # by parity of the first column
    for col in range(len(cols) - 1):
        beside[col % 2] += cols[col] and cols[col + 1]
    found = sum(beside[row * len(cols) % 2] for row, inside in enumerate(rows) if inside)
    return found + (_last_inside(windows) if windows.positions % 2 else 0)


def _last_inside(windows: Windows) -> bool:
    return windows.rows.inside[-1] and windows.cols.inside[-1]


def by_twos(together_at: int, made: Outputs, odd_words: bool = False) -> Callable[[Windows, int], Work]:
    """conv_two_filters_s8.h. ``odd_words``: its loop takes two words at a time."""

    def filters(windows: Windows, blocks: int) -> Work:
        count = windows.out_c // windows.groups
        words = groups_of(windows.elements, 4)
        pairs = groups_of(count, 2)
        summed = blocks * together_at * made.weight_zero
        return together(
            {
                "blocks of windows": blocks,
                "columns summed": summed,
                "words summed": summed * words,
                "pairs of filters": blocks * pairs,
                "pairs of filters less a zero": blocks * pairs * made.weight_zero,
                "words of pairs": blocks * pairs * words,
                "odd words of pairs": blocks * pairs * (words % 2) * odd_words,
                "last filters": blocks * (count % 2),
            },
            times(1 / windows.groups, made.of(blocks * together_at)),
        )

    return filters


def by_fours(made: Outputs) -> Callable[[Windows, int], Work]:
    """conv_pairs_s8.c: filters in fours in assembly, the last ones, or all that have limits, in C."""

    def filters(windows: Windows, blocks: int) -> Work:
        count = windows.out_c // windows.groups
        words = groups_of(windows.elements, 4)
        fours = 0 if made.narrow else count // 4
        left = count - 4 * fours
        last = left // 4 + (left % 4 == 3)
        two = left % 4 in (1, 2)
        return times(
            blocks,
            {
                "blocks of windows": 1,
                "blocks of fours": float(fours > 0),
                "fours": fours,
                "fours rounded once": fours * made.once,
                "words of fours": (fours + last) * words,
                "rounds of fours": (fours + last) * groups_of(words, 4),
                "fours in C": last,
                "pairs": float(two),
                "words of pairs": two * words,
                "outputs in C": left,
                "outputs in C rounded once": left * made.once,
            },
        )

    return filters


def by_nibbles(made: Outputs) -> Callable[[Windows, int], Work]:
    """conv_nibbles_s8.c: four filters at four windows, of which the last ones may be missing."""

    def filters(windows: Windows, blocks: int) -> Work:
        count = windows.out_c // windows.groups
        words, fours = groups_of(windows.elements, 4), groups_of(count, 4)
        return together(
            {
                "blocks of windows": blocks,
                "words summed": windows.positions * words,
                "columns summed": windows.positions,
                "fours": blocks * fours,
                "filters of blocks": blocks * count,
                "words of fours": blocks * fours * words,
            },
            times(1 / windows.groups, made.of(windows.positions)),
        )

    return filters


def by_nibbles_with_dsp(made: Outputs) -> Callable[[Windows, int], Work]:
    """conv_nibbles_dsp_s8.c: filters in fours in assembly, the last ones, or all that have limits, in C."""

    def filters(windows: Windows, blocks: int) -> Work:
        count = windows.out_c // windows.groups
        elements = windows.elements
        words = groups_of(elements, 4)
        fours = 0 if made.narrow else count // 4
        left = count - 4 * fours
        in_c = groups_of(left, 4)
        firsts = [
            any(made.large[first : first + 4])
            for group in range(windows.groups)
            for first in range(group * count, group * count + 4 * fours, 4)
        ]
        large = sum(firsts) / windows.groups
        return times(
            blocks,
            {
                "blocks of windows": 1,
                "words summed": elements // 4,
                "blocks of words summed": float(elements >= 4),
                "last elements summed": elements % 4,
                "blocks of fours": float(fours > 0),
                "fours": fours - large,
                "fours rounded once": (fours - large) * made.once,
                "large fours": large,
                "words of fours": (fours + in_c) * words,
                "rounds of fours": (fours + in_c) * groups_of(words, 4),
                "fours in C": in_c,
                "outputs in C": left,
                "outputs in C within limits": left * made.narrow,
                "large outputs": 2 * sum(made.large) / windows.groups,
                "large outputs rounded once": 2 * sum(made.large) / windows.groups * made.once,
            },
        )

    return filters


def by_rows(windows: Windows, of_row: Callable[[Windows], Work], row_copies: bool) -> Work:
    """conv_apart_s8.h: a convolution for each row of outputs, which may be copied to their places."""
    rows = windows.rows
    parts = []
    for start in rows.starts:
        row = replace(rows, out=1, stride=2, pad=-start)
        parts.append(of_row(replace(windows, rows=row, batches=1)))
    pixels = windows.batches * windows.positions * row_copies
    return together(
        times(windows.batches, together(*parts)),
        {
            "rows of outputs": windows.batches * rows.out,
            "pixels copied": pixels,
            "words of pixels copied": pixels * (windows.out_c // 4),
            "bytes of pixels copied": pixels * (windows.out_c % 4),
        },
    )
