# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The figures of each layer, as the columns of a table and as the facts of one layer."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tinyml.base.lazy_dataclass import dataclass
from tinyml.base.naming import shape_text, short
from tinyml.cost.cycles import milliseconds
from tinyml.report.facts import LayerFacts, Report


@dataclass(frozen=True)
class Column:
    """``read`` gives None where a layer has no such figure."""

    title: str
    read: Callable[[LayerFacts], float | str | None]
    number: bool = True
    code: bool = False  # in the font of code
    bar: bool = False  # with a bar for its share of the largest
    form: str = ",.0f"


@dataclass(frozen=True)
class Cell:
    text: str
    value: float | str  # what the column is sorted by
    title: str = ""
    percent: float | None = None


def columns(report: Report) -> list[Column]:
    """Those for which there are figures in this report."""
    found = [
        Column("#", lambda layer: layer.step),
        Column("layer", lambda layer: f"{layer.label} {shape_text(layer.shape)}", number=False),
        Column("name in the model", lambda layer: layer.name, number=False, code=True),
        Column(
            "kernel", lambda layer: "shares memory" if layer.free else layer.kernel, number=False, code=True
        ),
        *_costs(report),
        Column("weights", lambda layer: layer.weights_bytes),
        Column("scratch", lambda layer: layer.scratch_bytes),
        Column("live", lambda layer: layer.live_bytes),
    ]
    if any(layer.snr_db is not None for layer in report.layers):
        found.append(Column("SNR in dB", lambda layer: layer.snr_db, bar=True, form=",.1f"))
    return found


def _costs(report: Report) -> Iterator[Column]:
    """Work and time; the best figure there is has the bar."""
    counted = any(layer.instructions for layer in report.layers)
    on_hardware = any(layer.cycles for layer in report.layers)
    estimated = any(layer.cycles_estimated for layer in report.layers)
    yield Column("MACs", lambda layer: layer.macs, bar=not (counted or on_hardware))
    if counted:
        yield Column("instructions", lambda layer: layer.instructions, bar=not on_hardware)
    if on_hardware:
        yield Column("cycles", lambda layer: layer.cycles, bar=True)
    if estimated:
        yield Column("est. cycles", lambda layer: layer.cycles_estimated)
    if report.mhz and (on_hardware or estimated):
        yield Column("ms", lambda layer: _milliseconds(report, layer), form=",.3f")


def _milliseconds(report: Report, layer: LayerFacts) -> float | None:
    cycles = layer.cycles if layer.cycles is not None else layer.cycles_estimated
    return None if cycles is None or report.mhz is None else milliseconds(cycles, report.mhz)


def rows(report: Report) -> list[tuple[LayerFacts, list[tuple[Column, Cell]]]]:
    """All layers in the order of execution."""
    shown = columns(report)
    largest = {
        column.title: max((_number(column, layer) for layer in report.layers), default=0.0) or 1.0
        for column in shown
        if column.bar
    }
    return [
        (layer, [(column, _cell(column, layer, largest.get(column.title))) for column in shown])
        for layer in report.layers
    ]


def _number(column: Column, layer: LayerFacts) -> float:
    value = column.read(layer)
    return float(value) if isinstance(value, int | float) else 0.0


def _cell(column: Column, layer: LayerFacts, largest: float | None) -> Cell:
    value = column.read(layer)
    if value is None:
        return Cell("", "")
    if isinstance(value, str):
        return Cell(short(value), value, value if short(value) != value else "")
    percent = None if largest is None or not value else round(max(100 * value / largest, 0.0), 1)
    return Cell(format(value, column.form) if value or column.title == "#" else "", value, percent=percent)


def details(report: Report) -> list[tuple[LayerFacts, list[tuple[str, str]]]]:
    """For each layer, its figures with their names and units."""
    units = {"weights": " bytes", "scratch": " bytes", "live": " bytes", "ms": f" at {report.mhz or 0:g} MHz"}
    figures = [column for column in columns(report) if column.number and column.title != "#"]
    found = []
    for layer in report.layers:
        facts = [("kernel", f"{layer.kernel} ({layer.library})")]
        said = {name: value for name, value in layer.attributes.items() if value not in ("False", "None")}
        facts += [(name.replace("_", " "), value) for name, value in said.items()]
        for column in figures:
            value = column.read(layer)
            if value:
                facts.append((column.title, f"{format(value, column.form)}{units.get(column.title, '')}"))
        found.append((layer, facts))
    return found
