# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Calibration data for models that keep state: which samples are consecutive, and which to use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from tinyml.base.errors import ConfigError
from tinyml.ir import Array, Shape


def flatten(
    table: Mapping[str, Array], shapes: Mapping[str, Shape], path: Path
) -> tuple[dict[str, Array], Sequence[int]]:
    """Arrays with one row per run, and the rows at which sequences begin.

    They may have an axis before the rows, for sequences of equal length; without it all is one sequence.
    """
    steps = {name: _steps(table[name], shape) for name, shape in shapes.items()}
    if len(set(steps.values())) > 1:
        listed = ", ".join(f"{name}: {count or 'one sequence'}" for name, count in steps.items())
        raise ConfigError(f"{path} has sequences of different lengths for the inputs ({listed})")
    length = next(iter(steps.values()), 0)
    if not length:
        return dict(table), (0,)
    flat = {name: array.reshape(-1, *array.shape[2:]) for name, array in table.items()}
    return flat, range(0, len(next(iter(flat.values()))), length)


def _steps(array: Array, shape: Shape) -> int:
    """The number of runs in a sequence if there is an axis of sequences, else 0."""
    body = [size for size in shape if size != 1]

    def fits(places: Sequence[int]) -> bool:
        return [size for size in places if size != 1] == body

    if array.shape[2:] == shape and array.ndim > 2:
        return array.shape[1]
    return array.shape[1] if array.ndim > 2 and fits(array.shape[2:]) and not fits(array.shape[1:]) else 0


def pick(count: int, starts: Sequence[int], wanted: int) -> tuple[list[int], list[int]]:
    """At most ``wanted`` samples: whole sequences, evenly spread, or the start of the first one.

    Returns the samples, and at which of them a sequence begins.
    """
    ends = [*starts[1:], count]
    fitting = max(wanted * len(starts) // max(count, 1), 1)
    chosen = np.unique(np.linspace(0, len(starts) - 1, min(fitting, len(starts))).round().astype(int))
    rows: list[int] = []
    begins: list[int] = []
    for sequence in chosen.tolist():
        if len(rows) < wanted:
            begins.append(len(rows))
            rows += range(starts[sequence], ends[sequence])
    return rows[:wanted], begins
