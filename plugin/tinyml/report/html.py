# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A report as one self-contained page: no scripts, nothing loaded from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

from tinyml.naming import short
from tinyml.report.changes import Changed
from tinyml.report.facts import LayerFacts, Report
from tinyml.report.graph_svg import graph_svg
from tinyml.report.memory_svg import memory_svg
from tinyml.templates import environment

MOST = 24
"""Number of layers in the cost table; the rest add up to little."""


def page(report: Report, changed: Sequence[Changed] | None = None) -> str:
    """``changed``: what is different from an earlier report, if there is one."""
    colors = _colors(report)
    templates = environment("report", escaped=True)
    templates.filters["number"] = lambda value: f"{value:,}"
    templates.filters["short"] = short
    templates.filters["shape"] = lambda shape: "x".join(map(str, shape)) or "scalar"
    return templates.get_template("report.html.j2").render(
        report=report,
        changed=changed,
        memory=memory_svg(report, colors),
        graph=graph_svg(report, colors),
        costs=_costs(report)[:MOST],
        more=max(len(_costs(report)) - MOST, 0),
        colors=colors,
        unit="instructions" if report.measured else "MACs",
        budgets=_budgets(report),
    )


def _colors(report: Report) -> dict[str, str]:
    """A hue for each operator, distinct from its neighbours'; the most frequent first."""
    counts: dict[str, int] = {}
    for layer in report.layers:
        counts[layer.label] = counts.get(layer.label, 0) + 1
    ordered = sorted(counts, key=lambda word: (-counts[word], word))
    return {word: f"hsl({(205 + 137 * i) % 360} 55% 58%)" for i, word in enumerate(ordered)}


def _cost(report: Report, layer: LayerFacts) -> int:
    return (layer.instructions or 0) if report.measured else layer.macs


def _costs(report: Report) -> list[tuple[LayerFacts, int, float, float]]:
    """Layers, most expensive first: cost, share of all, share of the largest."""
    total = sum(_cost(report, layer) for layer in report.layers) or 1
    largest = max((_cost(report, layer) for layer in report.layers), default=0) or 1
    rows = [(layer, _cost(report, layer)) for layer in report.layers if _cost(report, layer)]
    rows.sort(key=lambda row: (-row[1], row[0].step))
    return [(layer, cost, cost / total, cost / largest) for layer, cost in rows]


def _budgets(report: Report) -> list[tuple[str, int, int, float]]:
    pairs = (
        ("RAM", report.ram_bytes, report.ram_budget_bytes),
        ("flash", report.flash_bytes, report.flash_budget_bytes),
    )
    return [(name, used, budget, used / budget) for name, used, budget in pairs if budget]
