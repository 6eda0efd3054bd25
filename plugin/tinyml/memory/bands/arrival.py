# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Arrival: the model's input as the application feeds it, some rows at a time (``io: rows``).

It is the first link of the chain that reads the input. Its "output" are the rows that the next band needs, in
the first buffer of the chain; the generated ``NAME_feed_rows()`` puts them there. In a 1-D network, a row is
one step of the sequence with all of its channels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from tinyml.base.lazy_dataclass import dataclass
from tinyml.cores.targets import Target
from tinyml.ir import Array, Layer, Op, Tensor, TensorType, given
from tinyml.ir.hook_types import RowWindow
from tinyml.memory.bands.band_kernel import BANDS_OF_ROWS
from tinyml.memory.bands.banded import Banded
from tinyml.ops.framework.kernel import Kernel, Sheet, register_kernels
from tinyml.ops.shared.operands import present


@dataclass(frozen=True)
class Arrival(Op):
    """x, row by row."""

    operands = (present(1),)
    movement: ClassVar[bool] = True

    @property
    def by_rows(self) -> bool:
        return True

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        return (given(inputs, 0).type,)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        return (given(inputs, 0),)

    def row_window(self, layer: Layer, axis: int) -> RowWindow:
        return RowWindow.row_by_row(layer.output.shape[axis])


class ArrivalOfRows(Kernel[Arrival]):
    """The copy that ``NAME_feed_rows()`` makes; a band finds the rows in place."""

    name = "rows as they arrive"
    in_bands = True

    def emit(self, layer: Layer[Arrival], sheet: Sheet) -> None:
        raise NotImplementedError("an arrival is part of a chain")


register_kernels(Arrival, ArrivalOfRows())


@dataclass(frozen=True)
class Wait:
    """Bands that wait for equally many rows: those before ``until`` that an earlier entry does not name."""

    until: int
    kept_rows: int  # in the buffer already
    full_rows: int  # with those that have to arrive


def waits(layer: Layer) -> list[Wait]:
    """How many rows the bands of a chain that starts with an arrival wait for."""
    assert isinstance(layer.op, Banded)
    bands = layer.op.bands(layer)
    assert bands is not None
    found: list[Wait] = []
    for number, band in enumerate(bands.bands):
        stage = band.stages[0]
        wait = Wait(number + 1, stage.into, stage.into + stage.rows)
        if found and (found[-1].kept_rows, found[-1].full_rows) == (wait.kept_rows, wait.full_rows):
            found.pop()
        found.append(wait)
    return found


def rows_to_arrive(layer: Layer) -> int:
    """The number of rows of the input; of columns, if that is what the bands of the chain consist of."""
    assert isinstance(layer.op, Banded)
    return layer.input(0).shape[layer.op.axis]


def arrival_offset(layer: Layer[Any], target: Target) -> int:
    """Where the rows arrive, in the scratch memory of such a chain."""
    return BANDS_OF_ROWS.arrival_offset(layer, target)
