# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""NAME_begin() and NAME_feed_rows(): the input as it arrives. What their templates need."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from tinyml.base import c
from tinyml.base.lazy_dataclass import dataclass
from tinyml.base.naming import shape_text
from tinyml.cores.targets import Target
from tinyml.ir import Graph
from tinyml.ir.row_order import RowOrder
from tinyml.memory.bands.arrival import Wait, arrival_offset, rows_to_arrive, waits
from tinyml.memory.bands.row_arrangement import row_order
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
    order: RowOrder | None  # in which the elements arrive, if it is not that of the model file

    @property
    def comment(self) -> list[c.Code]:
        """What a row is, for the header."""
        text = "The input arrives in rows: their number, and the elements of one."
        if self.order is None:
            return c.code([f"/** {text} */"])
        file, here = shape_text(self.order.file_shape), shape_text(self.order.shape)
        axes = ", ".join(map(str, self.order.axes))
        text += (
            f" The model file has the input as {file}. It arrives as {here}, with these axes in the order "
            f"{axes}, so that each row is complete before the next one begins."
        )
        lines = textwrap.wrap(text, c.COLUMNS, initial_indent=" * ", subsequent_indent=" * ")
        return c.code(["/**", *lines, " */"])

    @property
    def summary(self) -> dict[str, Any]:
        """For the summary in JSON."""
        order = self.order.summary if self.order else {}
        return {"count": self.rows, "row_bytes": self.row_bytes, **order}

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


def rows_code(graph: Graph, selected: Sequence[Selected], plan: Plan, target: Target) -> RowsCode | None:
    """How rows are fed to a model; None if its input is in memory as a whole."""
    for step, chosen in enumerate(selected):
        if chosen.layer.op.by_rows:
            x = chosen.layer.input(0)
            rows = rows_to_arrive(chosen.layer)
            row = x.elements // rows
            buffer = plan.scratch[step] + arrival_offset(chosen.layer, target)
            return RowsCode(
                step, buffer, waits(chosen.layer), rows, row, row * x.dtype.bytes, row_order(graph)
            )
    return None
