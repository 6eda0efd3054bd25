# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What the values of a tensor were when the model was made: a histogram of 256 cells.

A cell is a step of int8. For a tensor with 8 bits the cells are its stored integers; for others the steps
divide the range of the data, and the first and the last cell have what lies outside.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping

import numpy as np

from tinyml.base.errors import ModelError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Tensor

KEY = "tinyml.watch"
"""Of an ONNX model's metadata: references by the name of the input or output."""

CELLS = 256
LOWEST, HIGHEST = -128, 127


@dataclass(frozen=True)
class Grid:
    """Cells of equal width: real = scale * (cell - zero_point)."""

    scale: float
    zero_point: int

    def cells(self, values: Array) -> Array:
        """The cell of each real value."""
        steps = np.rint(np.asarray(values, np.float64) / self.scale) + self.zero_point
        return np.clip(np.nan_to_num(steps), LOWEST, HIGHEST).astype(np.int64)


@dataclass(frozen=True)
class Reference:
    """How many values were in each cell."""

    grid: Grid
    counts: tuple[int, ...]


def grid_of(tensor: Tensor) -> Grid | None:
    """The steps of a tensor with 8 bits; None for others."""
    quant = tensor.quant
    if tensor.dtype not in (DType.INT8, DType.UINT8) or (quant is not None and quant.per_channel):
        return None
    shift = 128 if tensor.dtype is DType.UINT8 else 0
    return Grid(quant.scale, quant.zero_point - shift) if quant is not None else Grid(1.0, -shift)


def data_grid(values: Array) -> Grid:
    """Cells for the range of the data, and one on each side for what lies outside."""
    finite = values[np.isfinite(values)] if values.dtype.kind == "f" else values
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    scale = (high - low) / (CELLS - 4) or max(abs(low), 1.0) / CELLS
    return Grid(scale, LOWEST + 1 - math.floor(low / scale))


def counted(values: Array, grid: Grid | None = None) -> Reference:
    """The histogram of real values."""
    grid = grid or data_grid(values)
    found = np.bincount(grid.cells(values.reshape(-1)) - LOWEST, minlength=CELLS)
    return Reference(grid, tuple(map(int, found)))


def of_stored(samples: Iterable[Array], tensor: Tensor) -> Reference:
    """The histogram of values as the tensor stores them."""
    values = np.concatenate([np.asarray(sample).reshape(-1) for sample in samples])
    quant = tensor.quant if tensor.quant is not None and not tensor.quant.per_channel else None
    if quant is not None and tensor.dtype.is_integer:
        return counted((values.astype(np.float64) - quant.zero_point) * quant.scale, grid_of(tensor))
    return counted(values.astype(np.float64), grid_of(tensor))


def to_text(references: Mapping[str, Reference]) -> str:
    """For the metadata of a model file; runs of empty cells are left out at both ends."""
    return json.dumps(
        {
            name: {"scale": r.grid.scale, "zero_point": r.grid.zero_point, "counts": _packed(r.counts)}
            for name, r in references.items()
        },
        separators=(",", ":"),
    )


def from_text(text: str) -> dict[str, Reference]:
    """What ``to_text`` wrote."""
    try:
        found = {
            str(name): Reference(
                Grid(float(entry["scale"]), int(entry["zero_point"])), _unpacked(entry["counts"])
            )
            for name, entry in json.loads(text).items()
        }
    except (ValueError, TypeError, KeyError, AttributeError):
        raise _broken() from None
    for reference in found.values():
        if not (np.isfinite(reference.grid.scale) and reference.grid.scale > 0):
            raise _broken()
    return found


def _broken() -> ModelError:
    return ModelError(
        f"the model's metadata {KEY!r} cannot be read", "quantise the model again, or use --watch-data"
    )


def _packed(counts: tuple[int, ...]) -> list[int]:
    """The first cell that is not empty, then the counts up to the last one that is not."""
    used = [cell for cell, count in enumerate(counts) if count]
    return [used[0], *counts[used[0] : used[-1] + 1]] if used else [0]


def _unpacked(numbers: list[int]) -> tuple[int, ...]:
    first, *counts = (int(number) for number in numbers)
    if first < 0 or first + len(counts) > CELLS or min(counts, default=0) < 0:
        raise ValueError("not a histogram")
    return (*([0] * first), *counts, *([0] * (CELLS - first - len(counts))))
