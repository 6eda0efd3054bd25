# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A report as Markdown, short enough for a comment on a merge request."""

from __future__ import annotations

from collections.abc import Sequence

from tinyml.report.changes import Changed
from tinyml.report.facts import Report


def markdown(report: Report, changed: Sequence[tuple[str, Sequence[Changed]]]) -> str:
    """Totals and budgets, and what changed if there was a report to compare with."""
    rows = [("RAM", f"{report.ram_bytes:,} bytes", _budget(report.ram_bytes, report.ram_budget_bytes))]
    rows.append(
        ("flash", f"{report.flash_bytes:,} bytes", _budget(report.flash_bytes, report.flash_budget_bytes))
    )
    facts = report.measured
    estimated = report.estimated
    if facts is None and estimated is None:
        rows[-1] = ("flash for weights", rows[-1][1], rows[-1][2])
    elif facts is None and estimated is not None:
        rows[-1] = ("estimated flash", rows[-1][1], rows[-1][2])
        if estimated.instructions is not None:
            count = f"{estimated.instructions:,} {estimated.bar}"
            rows.append(("estimated instructions", count, f"on {report.target}"))
        if estimated.cycles is not None:
            rows.append(("estimated cycles", f"{estimated.cycles:,}", ""))
    elif facts is not None:
        rows.append(("instructions", f"{facts.instructions:,}", f"on {facts.machine}"))
        if facts.cycles_estimated is not None:
            rows.append(("estimated cycles", f"{facts.cycles_estimated:,}", ""))
    if report.milliseconds is not None:
        rows.append(("estimated time", f"{report.milliseconds:,.2f} ms", f"at {report.mhz:g} MHz"))
    rows += [("estimated energy", f"{energy} uJ", f"{energy.chip}") for energy in report.energies]
    lines = [f"### {_text(report.model)} for {report.target}", "", "| | | |", "|---|---:|---|"]
    lines += [f"| {name} | {value} | {note} |" for name, value, note in rows]
    lines += ["", *(f"**Over budget:** {problem}\n" for problem in report.over_budget)]
    lines += [f"{_text(line)}\n" for line in report.accuracy]
    for name, items in changed:
        lines += _changes(items, f" since {_text(name)}" if len(changed) > 1 else "")
    return "\n".join(lines).rstrip() + "\n"


def _budget(used: int, budget: int | None) -> str:
    return f"{used / budget:.0%} of {budget:,}" if budget else ""


def _changes(changed: Sequence[Changed], since: str) -> list[str]:
    if not changed:
        return [f"Nothing changed{since}.", ""]
    lines = [f"| changed{since} | before | after | |", "|---|---:|---:|---:|"]
    for item in changed:
        cells = (item.what, item.before, item.after, item.difference)
        lines.append(f"| {' | '.join(_text(cell) for cell in cells)} |")
    return [*lines, ""]


def _text(words: str) -> str:
    """Names come from the model: a pipe would end the cell, and other characters are Markdown's."""
    return "".join(f"\\{char}" if char in r"\`*_{}[]<>()#|~" else char for char in words.replace("\n", " "))
