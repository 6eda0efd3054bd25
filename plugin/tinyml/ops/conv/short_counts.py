# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""How often the loops of convolutions with short filters run: runtime/conv/conv_short_s8.h."""

from __future__ import annotations

from collections.abc import Iterator

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ops.framework.work import Work
from tinyml.ops.weighted.walked import Axis, Outputs, Windows, groups_of, times, together

WINDOWS = 4
VECTOR = 16


@dataclass(frozen=True)
class Inside:
    """Positions whose windows are read where they are in the input."""

    rows: tuple[int, int]  # the first, and the end
    cols: tuple[int, int]
    lowest: int  # the row of outputs whose windows reach the last row of the input, or -1
    lowest_end: int  # of its positions behind whose windows a word is in the input

    def last(self, row: int) -> int:
        """The end of positions of a row."""
        return self.lowest_end if row == self.lowest else self.cols[1]


def inside(windows: Windows, multiple: int) -> Inside:
    """Of rows of windows, so many elements are read at once, which may be more than a row has."""
    rows, cols = windows.rows, windows.cols
    bottom = rows.size - 1 - (rows.kernel - 1) * rows.dilation
    first, last = _inside(cols, cols.size)
    spare = groups_of(-cols.kernel * windows.in_c % multiple, windows.in_c)
    return Inside(
        _inside(rows, rows.size),
        (first, last),
        next((place for place, start in enumerate(rows.starts) if start == bottom), -1),
        max(_inside(cols, cols.size - spare)[1], first),
    )


def _inside(axis: Axis, size: int) -> tuple[int, int]:
    """Windows that lie inside so many elements."""
    room = size + axis.pad - (axis.kernel - 1) * axis.dilation - 1
    end = min(room // axis.stride + 1 if room >= 0 else 0, axis.out)
    return min(groups_of(axis.pad, axis.stride), end), end


def in_place(windows: Windows, made: Outputs, multiple: int) -> Work:
    """The layer."""
    rows, cols, found = windows.rows, windows.cols, inside(windows, multiple)
    (begin, end), (first, last) = found.rows, found.cols
    parts: list[Work] = []
    for place in range(rows.out):
        if not begin <= place < end:
            parts += _apart(windows, made, [(place, col) for col in range(cols.out)])
            continue
        stop = found.last(place)
        if stop > first:
            parts.append(_run(windows, made, stop - first))
        parts += _apart(windows, made, [(place, col) for col in range(stop, last)])
    for col in range(cols.out):
        if not first <= col < last:
            parts += _apart(windows, made, [(place, col) for place in range(begin, end)])
    image = together({"rows of outputs": rows.out, "columns of outputs": cols.out - (last - first)}, *parts)
    return together({"calls": 1}, times(windows.batches, image))


def in_lines(windows: Windows, made: Outputs) -> Work:
    """conv_short_mve_s8.c: lines are copied for rows of outputs with padding."""
    rows, cols = windows.rows, windows.cols
    narrow = not all(cols.inside)
    bytes_ = min(cols.size, cols.reach - cols.pad) * windows.in_c
    copied = sum(narrow or not whole for whole in rows.inside)
    image = {
        "rows of outputs": rows.out,
        "rows copied": copied,
        "lines": copied * rows.kernel,
        "vectors": copied * rows.kernel * groups_of(max(bytes_, 0), VECTOR),
    }
    run = times(rows.out, _run(windows, made, cols.out, vectors=True))
    cleared = groups_of(copied_elements(windows), VECTOR) * narrow
    return together({"calls": 1, "vectors cleared": cleared}, times(windows.batches, together(image, run)))


def copied_elements(windows: Windows) -> int:
    """Elements of the lines of a row of outputs, if some are padding."""
    rows, cols = windows.rows, windows.cols
    if all(rows.inside) and all(cols.inside):
        return 0
    return rows.kernel * cols.reach * windows.in_c


def _apart(windows: Windows, made: Outputs, places: list[tuple[int, int]]) -> Iterator[Work]:
    """conv_short_apart(): windows that are copied."""
    rows, cols, channels = windows.rows, windows.cols, windows.in_c
    if places:
        yield {"rows of copies": 1}
    for begin in range(0, len(places), WINDOWS):
        some = places[begin : begin + WINDOWS]
        copied: list[Work] = []
        for row, col in some:
            first, end = cols.spans[col]
            run = max(end - first, 0) * channels
            lines = (rows.spans[row][1] - rows.spans[row][0]) * (run > 0)
            filled = rows.kernel - (lines if end - first == cols.kernel else 0)
            copied.append(
                {
                    "windows copied": 1,
                    "words filled": filled * groups_of(cols.kernel * channels, 4),
                    "rows copied": rows.kernel,
                    "lines copied": lines,
                    "words copied": lines * (run // 4),
                    "bytes copied": lines * (run % 4),
                }
            )
        yield together({"copies": 1}, *copied, _run(windows, made, len(some)))


def _run(windows: Windows, made: Outputs, count: int, vectors: bool = False) -> Work:
    """conv_short_run(): all filters at so many windows."""
    rows = windows.rows.kernel
    words = 0 if vectors else rows * groups_of(windows.cols.kernel * windows.in_c, 4)
    fours, rest = divmod(windows.out_c, 4)
    parts: list[Work] = [{"runs": 1}]
    for size, blocks in ((4, fours), (2, rest // 2), (1, rest % 2)):
        if not blocks:
            continue
        name, most = {4: "fours", 2: "twos", 1: "ones"}[size], 4 // size
        whole, left = divmod(count, most)
        more = min(left, 1) if whole else left
        walks = whole + more
        parts.append(
            times(
                blocks,
                {
                    "blocks of filters": 1,
                    "last loops": more * (size < 4),
                    name: walks,
                    f"{name} rounded twice": walks * (not made.once),
                    f"rows of {name}": walks * rows,
                    f"words of {name}": walks * words,
                },
            )
        )
    if made.narrow:
        parts.append({"limited": count, "outputs limited": count * windows.out_c})
    return together(*parts)
