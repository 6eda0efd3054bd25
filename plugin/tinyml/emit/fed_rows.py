# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""NAME_begin() and NAME_feed_rows(): the input as it arrives. What their templates need."""

from __future__ import annotations

from collections.abc import Sequence

from tinyml.base.lazy_dataclass import dataclass
from tinyml.cores.targets import Target
from tinyml.memory.bands.arrival import Wait, arrival_offset, rows_to_arrive, waits
from tinyml.memory.plan import Plan
from tinyml.memory.select import Selected


@dataclass(frozen=True)
class RowsCode:
    """For the templates. The first of the layers that do anything is the chain."""

    step: int  # of the chain that computes rows as they arrive
    buffer: int  # offset in the arena of the rows that the chain still needs
    waits: Sequence[Wait]
    rows: int  # of the input
    row_elements: int
    row_bytes: int

    @property
    def bands(self) -> int:
        return self.waits[-1].until

    @property
    def element_bytes(self) -> int:
        return self.row_bytes // self.row_elements

    @property
    def ram_bytes(self) -> int:
        """Variables beside the arena."""
        return 16

    @property
    def watch_bytes(self) -> int:
        """More of them in a watched model."""
        return 4


def rows_code(selected: Sequence[Selected], plan: Plan, target: Target) -> RowsCode | None:
    """How rows are fed to a model; None if its input is in memory as a whole."""
    for step, chosen in enumerate(selected):
        if chosen.layer.op.by_rows:
            x = chosen.layer.input(0)
            rows = rows_to_arrive(chosen.layer)
            row = x.elements // rows
            buffer = plan.scratch[step] + arrival_offset(chosen.layer, target)
            return RowsCode(step, buffer, waits(chosen.layer), rows, row, row * x.dtype.bytes)
    return None
