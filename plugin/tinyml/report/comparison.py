# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Several reports side by side: totals, and the cost of each layer."""

from __future__ import annotations

from collections.abc import Sequence

from tinyml.base.lazy_dataclass import dataclass
from tinyml.report.changes import TOTALS, Changed, changes, identity
from tinyml.report.facts import LayerFacts, Report


@dataclass(frozen=True)
class Cell:
    text: str
    difference: str = ""  # from the first report
    better: bool = False
    percent: float = 0.0  # of the largest in its row


@dataclass(frozen=True)
class Row:
    what: str
    cells: list[Cell]


@dataclass(frozen=True)
class Comparison:
    """``names``: of the reports, the newest last."""

    names: list[str]
    unit: str  # of the layers' costs
    totals: list[Row]
    layers: list[Row]
    changes: list[tuple[str, list[Changed]]]  # since each of the earlier ones


def compare(earlier: Sequence[tuple[str, Report]], report: Report) -> Comparison | None:
    """``earlier``: reports by name, the oldest first; None if there are none."""
    if not earlier:
        return None
    everything = [old for _, old in earlier] + [report]
    names = [*(name for name, _ in earlier), "this report"]
    counted = all(one.measured for one in everything)
    found = [(what, [read(one) for one in everything]) for what, read in TOTALS]
    return Comparison(
        names,
        "instructions" if counted else "MACs",
        [Row(what, _cells(values)) for what, values in found if any(value for value in values)],
        _layers(everything, counted),
        [(name, list(changes(old, report))) for name, old in earlier],
    )


def _layers(reports: Sequence[Report], counted: bool) -> list[Row]:
    """The layers of the newest report, then those that only earlier ones have."""
    tables = [{identity(layer): layer for layer in report.layers} for report in reports]
    order = dict.fromkeys(key for table in reversed(tables) for key in table)
    rows = []
    for key in order:
        costs = [_cost(table.get(key), counted) for table in tables]
        if any(costs):
            rows.append(Row(f"{key[0]} {key[1]}", _cells(costs)))
    return rows


def _cost(layer: LayerFacts | None, counted: bool) -> int | None:
    return None if layer is None else layer.instructions if counted else layer.macs


def _cells(values: Sequence[int | None]) -> list[Cell]:
    first, largest = values[0], max((value or 0 for value in values), default=0) or 1
    cells = []
    for value in values:
        difference = ""
        if first and value is not None and value != first:
            difference = f"{value / first - 1:+.1%}"
        cells.append(
            Cell(
                "" if value is None else f"{value:,}",
                difference,
                value is not None and first is not None and value < first,
                round(100 * (value or 0) / largest, 1),
            )
        )
    return cells
