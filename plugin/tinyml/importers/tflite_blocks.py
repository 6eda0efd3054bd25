# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Constants of a TFLite file with a scale for each block of elements.

The scales are another tensor of the subgraph, whose extents say how many blocks an axis has. Such a constant
is read as real numbers; kernels that keep it packed find the blocks in the numbers.
"""

from __future__ import annotations

from typing import Any

import flatbuffers
import numpy as np

from tinyml.base.errors import ModelError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array

BLOCKWISE = 2
"""The number of this kind of quantisation in the schema."""

FAULTY = "convert or quantise the model again"


@dataclass(frozen=True)
class Blocks:
    """Indices of the tensors with scales and zero points (None: 0), and the elements of a block."""

    scales: int
    zero_points: int | None
    size: int


def read(parameters: Any, tensors: int) -> Blocks | None:
    """The blocks of a table QuantizationParameters, if it has any; ``tensors``: of the subgraph."""
    if parameters is None or parameters.DetailsType() != BLOCKWISE:
        return None
    table = parameters.Details()
    if table is None:
        return None

    def number(slot: int) -> int:
        offset = table.Offset(4 + 2 * slot)
        return int(table.Get(flatbuffers.number_types.Int32Flags, offset + table.Pos)) if offset else 0

    scales, zeros, size = number(0), number(1), number(2)
    if not 0 <= scales < tensors or zeros >= tensors:
        raise ValueError("scales or zero points of blocks that are not a tensor")
    return Blocks(scales, zeros if zeros > 0 else None, size)


def real(name: str, stored: Array, size: int, scales: Array, zeros: Array | None) -> Array:
    """What the integers mean."""
    fits = scales.ndim == stored.ndim and all(
        count > 0 and extent % count == 0 for extent, count in zip(stored.shape, scales.shape, strict=True)
    )
    if not fits:
        raise ModelError(
            f"tensor {name!r} of shape {stored.shape} has scales of shape {scales.shape}, "
            "which do not divide it into blocks",
            FAULTY,
        )
    block = stored.shape[-1] // scales.shape[-1] if stored.ndim else 1
    if size != block:
        raise ModelError(
            f"tensor {name!r} says that a block has {size} elements; its {scales.shape[-1]} scales "
            f"for {stored.shape[-1]} elements make it {block}",
            FAULTY,
        )
    if not np.isfinite(scales).all():
        raise ModelError(f"tensor {name!r} has a scale that is not a finite number", FAULTY)
    if zeros is not None and zeros.shape != scales.shape:
        raise ModelError(
            f"tensor {name!r} has scales of shape {scales.shape} and zero points of shape {zeros.shape}",
            FAULTY,
        )
    centred = stored.astype(np.int64)
    if zeros is not None:
        centred = centred - _spread(zeros.astype(np.int64), stored.shape)
    return (centred * _spread(scales.astype(np.float64), stored.shape)).astype(np.float32)


def _spread(values: Array, shape: tuple[int, ...]) -> Array:
    for axis, extent in enumerate(shape):
        values = np.repeat(values, extent // values.shape[axis], axis=axis)
    return values
