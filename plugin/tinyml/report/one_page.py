# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""One page for somebody who decides: what a model takes and gives, before and after quantising."""

from __future__ import annotations

from tinyml.base.lazy_dataclass import dataclass
from tinyml.base.templates import environment
from tinyml.report.facts import Report
from tinyml.report.memory_svg import memory_svgs


@dataclass(frozen=True)
class Figure:
    """A row of the page. ``shares``: how long the bars are, up to 1, before and after."""

    what: str
    texts: tuple[str, ...]
    shares: tuple[float, ...]
    note: str = ""


def one_page(after: Report, before: Report | None = None) -> str:
    """``before``: the same model in float, or an earlier report."""
    both = (before, after) if before else (after,)
    return (
        environment("report", escaped=True)
        .get_template("one_page.html.j2")
        .render(
            report=after,
            before=before,
            names=_names(before, after),
            figures=figures(*both),
            memory=memory_svgs(after),
            verdict=_verdict(after),
        )
    )


def _names(before: Report | None, after: Report) -> tuple[str, ...]:
    if before is None:
        return (after.file,)
    kinds = tuple("int8" if _is_quantised(report) else "float" for report in (before, after))
    return kinds if len(set(kinds)) == 2 else ("before", "now")


def _is_quantised(report: Report) -> bool:
    return any(operand.scales for layer in report.layers for operand in layer.operands)


def _verdict(report: Report) -> str:
    """Whether it fits, in a sentence."""
    place = report.board or report.target
    if report.over_budget:
        return f"It does not fit on {place}: {'; '.join(report.over_budget)}."
    if report.ram_budget_bytes and report.flash_budget_bytes:
        ram, flash = (
            report.ram_bytes / report.ram_budget_bytes,
            report.flash_bytes / report.flash_budget_bytes,
        )
        return f"It fits: {_share(ram)} of the RAM and {_share(flash)} of the flash of {place}."
    return f"For {place}."


def _share(part: float) -> str:
    return f"{part:.0%}" if part >= 0.01 else "less than 1%"


def figures(*reports: Report) -> list[Figure]:
    """What every report knows, in the order of what is asked first."""
    guessed = "" if all(report.measured for report in reports) else ", estimated"
    energies = [report.energies for report in reports]
    found = (
        ("RAM", [float(report.ram_bytes) for report in reports], "{:,.0f} bytes", ""),
        (f"flash{guessed}", [float(report.flash_bytes) for report in reports], "{:,.0f} bytes", ""),
        (
            "time of a run, estimated",
            [report.milliseconds for report in reports],
            "{:,.2f} ms",
            _clock(reports),
        ),
        (f"instructions{guessed}", [_instructions(report) for report in reports], "{:,.0f}", ""),
        ("multiplications", [float(report.macs) for report in reports], "{:,.0f}", ""),
    )
    rows = []
    for what, values, form, note in found:
        known = [value for value in values if value is not None]
        if len(known) == len(values):
            largest = max(known) or 1.0
            texts = tuple(form.format(value) for value in known)
            rows.append(Figure(what, texts, tuple(value / largest for value in known), note))
    if all(energies):
        chip = energies[-1][0]
        texts = tuple(f"{one[0]} µJ" for one in energies)
        rows.append(Figure("energy of a run, estimated", texts, (), f"{chip.chip}, published figures"))
    return rows


def _clock(reports: tuple[Report, ...]) -> str:
    clock = reports[-1].mhz
    return f"at {clock:g} MHz" if clock else ""


def _instructions(report: Report) -> float | None:
    found = report.measured or report.estimated
    return None if found is None or found.instructions is None else float(found.instructions)
