# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Loops as data: where generated C has loops inside one another, the player has extents and steps."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from tinyml.base import c
from tinyml.ops.framework.kernel import Sheet
from tinyml.ops.framework.play_sheet import NotPlayableError

LOOPS = 4  # TINYML_PLAY_LOOPS
SMALLEST_RUN_BYTES = 16  # below, calling memmove costs more than a loop
SMALLEST_ROW_BYTES = 6  # the same for rows at one distance, which the player copies without a call
MOST_CALLS = 64  # for a nest of more loops


def merged(shape: Sequence[int], *strides: Sequence[int]) -> tuple[list[int], list[list[int]]]:
    """Extents, and the strides of each operand; loops that every operand walks contiguously become one."""
    extents: list[int] = []
    kept: list[list[int]] = [[] for _ in strides]
    for axis, extent in enumerate(shape):
        if extent == 1:
            continue
        if extents and all(own[-1] == given[axis] * extent for own, given in zip(kept, strides, strict=True)):
            extents[-1] *= extent
            for own, given in zip(kept, strides, strict=True):
                own[-1] = given[axis]
        else:
            extents.append(extent)
            for own, given in zip(kept, strides, strict=True):
                own.append(given[axis])
    return extents, kept


def array(name: str, values: Sequence[object], missing: object) -> dict[str, object]:
    """Members of an array with an entry for each loop, the innermost one last."""
    if len(values) > LOOPS:
        raise NotPlayableError(f"it has {len(values)} loops inside one another, the player at most {LOOPS}")
    padded = [missing] * (LOOPS - len(values)) + list(values)
    return {f".{name}.{i}": value for i, value in enumerate(padded)}


def play_copies(
    sheet: Sheet,
    shape: Sequence[int],
    x: c.Walk,
    y: c.Walk,
    source: str,
    target: str,
    any_order: bool = False,
) -> None:
    """Note the calls that copy elements along two walks over ``shape``.

    With ``any_order``, source and target do not overlap: the longest loop becomes the innermost one.
    """
    unit = sheet.layer.output.dtype.bytes
    if math.prod(shape) == 0:
        return
    axes, run = len(shape), 1
    while axes and (shape[axes - 1] == 1 or x.strides[axes - 1] == y.strides[axes - 1] == run):
        axes -= 1
        run *= shape[axes]
    extents, (x_steps, y_steps) = merged(shape[:axes], x.strides[:axes], y.strides[:axes])
    least = SMALLEST_ROW_BYTES if len(extents) <= 1 else SMALLEST_RUN_BYTES
    if run * unit < least and run != math.prod(shape):
        run = 1
        extents, (x_steps, y_steps) = merged(shape, x.strides, y.strides)
    if any_order and extents and run == 1:
        order = sorted(range(len(extents)), key=lambda axis: extents[axis] == max(extents))
        extents, x_steps, y_steps = ([values[i] for i in order] for values in (extents, x_steps, y_steps))
    outer = len(extents) - LOOPS
    if outer <= 0:
        _copies(sheet, extents, (x_steps, y_steps), (x.offset, y.offset), run, (source, target))
        return
    if math.prod(extents[:outer]) > MOST_CALLS:
        raise NotPlayableError(f"it has {len(extents)} loops inside one another, the player at most {LOOPS}")
    for place in itertools.product(*(range(extent) for extent in extents[:outer])):
        starts = [
            walk.offset + sum(i * step for i, step in zip(place, steps, strict=False))
            for walk, steps in ((x, x_steps), (y, y_steps))
        ]
        inner = x_steps[outer:], y_steps[outer:]
        _copies(sheet, extents[outer:], inner, (starts[0], starts[1]), run, (source, target))


def _copies(
    sheet: Sheet,
    extents: Sequence[int],
    steps: tuple[Sequence[int], Sequence[int]],
    starts: tuple[int, int],
    run: int,
    operands: tuple[str, str],
) -> None:
    unit = sheet.layer.output.dtype.bytes
    if len(extents) <= 1 and (run > 1 or not extents) and min([0, *steps[0], *steps[1]]) == 0:
        members: dict[str, object] = {
            ".rows": extents[0] if extents else 1,
            ".bytes": run * unit,
            ".from_step": steps[0][0] * unit if extents else 0,
            ".to_step": steps[1][0] * unit if extents else 0,
        }
        places = (sheet.element(name, start, 0) for name, start in zip(operands, starts, strict=True))
        sheet.note("tinyml_play_copy", members, *places)
        return
    members = {
        **array("extents", extents, 1),
        **array("from_steps", [step * unit for step in steps[0]], 0),
        **array("to_steps", [step * unit for step in steps[1]], 0),
        ".from_start": starts[0] * unit,
        ".to_start": starts[1] * unit,
        ".bytes": run * unit,
        ".unit": unit if unit in (1, 2, 4) and run == 1 else 1,
    }
    sheet.note("tinyml_play_move", members, *operands)


def play_fill(sheet: Sheet, shape: Sequence[int], y: c.Walk, target: str, value: bytes) -> None:
    """Note the calls that write one value to every element of a walk over ``shape``."""
    if math.prod(shape) == 0:
        return
    unit = len(value)
    if unit > 4:
        raise NotPlayableError(f"its elements have {unit} bytes, the player fills those of at most 4")
    extents, (steps,) = merged(shape, y.strides)
    members = {
        **array("extents", extents, 1),
        **array("steps", [step * unit for step in steps], 0),
        ".start": y.offset * unit,
        ".bytes": unit,
        ".value": int.from_bytes(value, "little"),
    }
    sheet.note("tinyml_play_fill_loops", members, target)


def nests(shape: Sequence[int], axes: Sequence[int]) -> dict[str, object]:
    """Members of loops over the axes that stay, whose output is contiguous, and inside them over ``axes``."""
    strides = c.contiguous(shape)
    stays = [axis for axis in range(len(shape)) if axis not in axes]
    kept = [shape[axis] for axis in stays]
    outer, (steps, _) = merged(kept, [strides[axis] for axis in stays], c.contiguous(kept))
    inner, (inner_steps,) = merged([shape[axis] for axis in axes], [strides[axis] for axis in axes])
    return {
        **array("extents", outer, 1),
        **array("steps", steps, 0),
        **array("inner_extents", inner, 1),
        **array("inner_steps", inner_steps, 0),
    }


def played_rows(shape: Sequence[int], axis: int) -> dict[str, object]:
    """Members of rows along an axis, whose elements are ``step`` apart."""
    columns = math.prod(shape[axis + 1 :])
    return {
        ".rows": math.prod(shape[:axis]),
        ".columns": columns,
        ".row_step": columns * shape[axis],
        ".depth": shape[axis],
        ".step": columns,
    }
