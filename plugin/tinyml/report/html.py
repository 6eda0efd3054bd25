# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A report as one self-contained page: nothing is loaded from elsewhere, and it can be read without scripts.

Each section is a template in ``templates/page``, with its style and scripts beside it. Python computes and
draws everything; the scripts only select, sort, search, move and zoom.
"""

from __future__ import annotations

from collections.abc import Sequence

from tinyml.base.naming import shape_text, short
from tinyml.base.templates import environment
from tinyml.report.comparison import compare
from tinyml.report.facts import Report
from tinyml.report.flash_svg import flash_svgs
from tinyml.report.graph_svg import graph_svg
from tinyml.report.layer_table import columns, details, rows
from tinyml.report.memory_svg import memory_svgs
from tinyml.report.palette import color


def page(report: Report, earlier: Sequence[tuple[str, Report]] = (), boxes: str = "") -> str:
    """``earlier``: reports to compare with, by name, the oldest first; ``boxes``: what a detector found."""
    templates = environment("report", escaped=True)
    templates.filters["number"] = lambda value: f"{value:,}"
    templates.filters["short"] = short
    templates.filters["shape"] = shape_text
    templates.filters["span"] = _span
    return templates.get_template("report.html.j2").render(
        report=report,
        compared=compare(earlier, report),
        memory=memory_svgs(report),
        flash=flash_svgs(report),
        graph=graph_svg(report),
        columns=columns(report),
        rows=rows(report),
        details=details(report),
        colors={layer.label: color(layer.label) for layer in report.layers},
        budgets=_budgets(report),
        boxes=boxes,
    )


def _span(values: Sequence[float], form: str) -> str:
    """One value, or the smallest and the largest."""
    return " to ".join(form % value for value in dict.fromkeys(values))


def _budgets(report: Report) -> list[tuple[str, int, int, float]]:
    pairs = (
        ("RAM", report.ram_bytes, report.ram_budget_bytes),
        ("flash", report.flash_bytes, report.flash_budget_bytes),
    )
    return [(name, used, budget, used / budget) for name, used, budget in pairs if budget]
