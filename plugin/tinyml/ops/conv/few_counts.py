# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""How often the loops of convolutions with few filters or channels run."""

from __future__ import annotations

from dataclasses import replace

from tinyml.ops.conv.few_lines import Lines
from tinyml.ops.framework.work import Work
from tinyml.ops.weighted.walked import Outputs, Windows, groups_of, times, together

WINDOWS = 4
VECTOR = 16
"""Bytes."""


def in_place(windows: Windows, made: Outputs) -> Work:
    """conv_few_s8.h."""
    work, positions = _walk(windows)
    return together({"calls": 1}, work, made.of(positions))


def _walk(windows: Windows) -> tuple[Work, int]:
    """All but rescaling, and for how many positions outputs are made."""
    rows, cols, channels = windows.rows, windows.cols, windows.in_c
    row = cols.kernel * channels
    begin = groups_of(cols.pad, cols.stride)
    blocks = copied = padded = lines = 0
    for first, last in rows.spans:
        room = cols.size + cols.pad - cols.kernel
        end = min(room // cols.stride + 1 if room >= 0 else 0, cols.out)
        whole = (first, last) == (0, rows.kernel)
        some = range(begin, end) if whole and end - begin >= WINDOWS else range(0)
        blocks += groups_of(len(some), WINDOWS)
        copied += cols.out - len(some)
        for col in range(cols.out):
            if col not in some:
                padded += not (whole and cols.inside[col])
                lines += (last - first) * (cols.spans[col][1] > cols.spans[col][0])
    inside, apart = windows.batches * blocks, groups_of(windows.batches * copied, WINDOWS)
    filters = (inside + apart) * windows.out_c
    outputs = windows.batches * (WINDOWS * blocks + copied)
    image = {
        "rows of outputs": rows.out,
        "windows copied": copied,
        "words filled": padded * groups_of(rows.kernel * row, 4),
        "windows filled": padded,
        "lines copied": lines,
        "bytes copied": lines * row,
    }
    walked = {
        "blocks": inside + apart,
        "filters": filters,
        "rows": filters * rows.kernel,
        "steps": filters * rows.kernel * row,
    }
    return together(walked, times(windows.batches, image)), outputs


def in_groups(windows: Windows, made: Outputs) -> Work:
    """conv_few_groups_s8.c: every group as an image of its own, without padding."""
    rows, cols, groups = windows.rows, windows.cols, windows.groups
    inner = replace(
        windows,
        rows=replace(rows, size=rows.reach, pad=0),
        cols=replace(cols, size=cols.reach, pad=0),
        batches=1,
        in_c=windows.in_c // groups,
        out_c=windows.out_c // groups,
        groups=1,
    )
    one, positions = _walk(inner)
    copied = rows.copied * cols.copied
    plane = {
        "groups": 1,
        "rows taken": rows.copied,
        "pixels taken": copied,
        "elements taken": copied * (inner.in_c - 1),
    }
    return together(
        {"calls": 1, "words cleared": groups_of(rows.reach * cols.reach * inner.in_c, 4)},
        times(windows.batches * groups, together(one, plane)),
        made.of(windows.batches * positions),
    )


def with_helium(windows: Windows, lines: Lines, lanes: int, size: int) -> Work:
    """conv_few_mve_convolve(). ``size``: bytes of an element."""
    copied = lines.copied > 0
    parts = groups_of(windows.in_c, lines.copied) if copied else 1
    groups = windows.groups // parts
    filters = windows.out_c // windows.groups
    rows, out = windows.rows.out * parts, windows.cols.out
    blocks = groups_of(out, WINDOWS)
    walks = rows * (1 + (out > WINDOWS and out % WINDOWS > 0))
    image = together(
        {
            "parts": parts,
            "rows": rows,
            "walks": walks,
            "blocks": rows * blocks,
            "groups": rows * blocks * groups,
            "filters": rows * blocks * groups * filters,
            "vectors after the first": rows
            * blocks
            * groups
            * filters
            * (groups_of(windows.elements, lanes) - 1),
        },
        times(parts, _copies(windows, lines, size)) if copied else {},
    )
    cleared = {"vectors cleared": groups_of(size * lines.total, VECTOR)}
    return together({"calls": 1}, cleared, times(windows.batches, image))


def _copies(windows: Windows, lines: Lines, size: int) -> Work:
    """conv_few_mve_lines() for all rows of outputs."""
    count, inside = windows.rows.out * windows.rows.kernel, windows.cols.copied
    taken, padding = windows.rows.taps, count - windows.rows.taps
    run, whole = size * lines.copied, lines.column == lines.copied
    if whole and lines.copied == windows.in_c:
        vectors = groups_of(inside * run, VECTOR)
        return {"lines": taken, "vectors of lines": taken * vectors, **_filled(padding, 1, vectors)}
    each = groups_of(run, VECTOR)
    found = {"lines": taken, "pixels": taken * inside, **_filled(padding, inside, inside * each)}
    return {**found, "vectors of pixels": taken * inside * each} if run > VECTOR else found


def _filled(lines: int, runs: int, vectors: int) -> Work:
    return {"lines of padding": lines, "runs of padding": lines * runs, "vectors of padding": lines * vectors}
