# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A report on the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from tinyml.base.naming import shape_text
from tinyml.report.changes import Changed
from tinyml.report.facts import Estimated, Image, Report

NARROW = 110
"""Terminals with fewer columns get a shorter table."""


def show(report: Report, console: Console) -> None:
    """Layers, totals, what the passes saved."""
    console.print(f"[bold]{report.model}[/bold] for {report.target}, kernels {report.kernels}")
    if report.board:
        console.print(report.board, markup=False, soft_wrap=True)
    show_layers(report, console)
    console.print()
    _totals(report, console)
    if len(report.stages) > 1:
        console.print()
        _stages(report, console)
    for line in report.accuracy:
        console.print(line, markup=False, soft_wrap=True)
    for note in report.notes:
        console.print(f"note: {note}", markup=False, soft_wrap=True)
    for problem in report.over_budget:
        console.print(f"over budget: {problem}", style="bold red")


def show_layers(report: Report, console: Console) -> None:
    """One line per layer, with instructions or cycles if they were counted."""
    unit = report.cost_unit
    narrow = console.width < NARROW
    costs = [(layer.cycles if unit == "cycles" else layer.instructions) or 0 for layer in report.layers]
    total = sum(costs) or 1
    titles = ["#", "layer", "kernel", "MACs", "weights", "live"]
    estimated = report.measured is not None and report.measured.cycles_estimated is not None
    if unit:
        titles = [*titles[:3], unit, "share"] if narrow else [*titles, unit, "share", "per MAC"]
        titles += ["est. cycles"] if estimated else []
    rows = []
    for layer, count in zip(report.layers, costs, strict=True):
        kernel = layer.kernel if narrow else f"{layer.kernel} ({layer.library})"
        cells = [
            str(layer.step),
            f"{layer.label} {shape_text(layer.shape)}",
            "shares memory" if layer.free else kernel,
            f"{layer.macs:,}" if layer.macs else "",
            f"{layer.weights_bytes:,}" if layer.weights_bytes else "",
            f"{layer.live_bytes:,}",
        ]
        if unit:
            share = [f"{count:,}" if count else "", f"{count / total:.1%}" if count else ""]
            rate = f"{count / layer.macs:.2f}" if count and layer.macs else ""
            cells = [*cells[:3], *share] if narrow else [*cells, *share, rate]
            if estimated:
                cells.append(f"{layer.cycles_estimated:,}" if layer.cycles_estimated else "")
        rows.append(cells)
    table = Table(box=None, padding=(0, 2, 0, 0))
    for title, width in zip(titles, _widths([titles, *rows], console.width), strict=True):
        names = title in ("layer", "kernel")
        table.add_column(
            title, justify="left" if names or title == "#" else "right", no_wrap=True, width=width
        )
    for layer, cells in zip(report.layers, rows, strict=True):
        style = "bold" if layer.step == report.peak_step else "dim" if layer.free else None
        table.add_row(*cells, style=style)
    console.print(table)


def _widths(rows: Sequence[Sequence[str]], most: int) -> list[int]:
    """Widths of the columns: a narrow terminal cuts names (columns 1 and 2), never numbers."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    missing = sum(widths) + 2 * len(widths) - most
    for i, least in ((2, 32), (1, 24), (2, 12), (1, 12)):
        taken = min(max(missing, 0), max(widths[i] - least, 0))
        widths[i] -= taken
        missing -= taken
    return widths


def estimate(report: Report) -> str:
    """Cycles of a run and what that figure is worth, or why there is none."""
    facts = report.measured
    assert facts is not None
    if facts.cycles_estimated is None:
        return f"cycles: {facts.cycles_note}"
    time = f", {report.milliseconds:,.2f} ms at {report.mhz:g} MHz" if report.milliseconds else ""
    return f"{facts.cycles_estimated:,} cycles{time} ({facts.cycles_note})"


def _totals(report: Report, console: Console) -> None:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column()
    table.add_column(justify="right")
    table.add_column()
    bound = report.arena_lower_bound_bytes
    where = f"at layer {report.peak_step}"
    note = f"the minimum ({where})" if bound == report.arena_bytes else f"bound {bound:,} ({where})"
    table.add_row("arena", f"{report.arena_bytes:,}", f"bytes of RAM, {note}")
    if report.state_bytes:
        table.add_row("state", f"{report.state_bytes:,}", "bytes of RAM, kept between runs")
    facts = report.measured
    if facts is None:
        table.add_row("weights", f"{report.weights_bytes:,}", "bytes of flash")
        if report.estimated and report.image is None:
            _estimated(report, report.estimated, table)
    else:
        table.add_row("variables", f"{facts.other_ram_bytes:,}", "bytes of other RAM")
        table.add_row("stack", f"{facts.stack_bytes:,}", "bytes in this run")
        if facts.stack_bound_bytes is not None:
            table.add_row(
                "stack bound", f"{facts.stack_bound_bytes:,}", "bytes in any run; interrupts not included"
            )
        table.add_row("constants", f"{facts.constants_bytes:,}", "bytes of flash: weights, tables")
        table.add_row("kernels", f"{facts.kernels_bytes:,}", "bytes of flash")
        table.add_row("glue", f"{facts.glue_bytes:,}", "bytes of flash: code of this model")
        table.add_row("C library", f"{facts.library_bytes:,}", "bytes of flash")
        table.add_row("instructions", f"{facts.instructions:,}", f"per run on {facts.machine}")
        if facts.most_instructions is not None:
            table.add_row(
                "at most", f"{facts.most_instructions:,}", "instructions in any run: see tinyml bound"
            )
        if facts.cycles_estimated is not None:
            table.add_row("est. cycles", f"{facts.cycles_estimated:,}", facts.cycles_note)
        if report.milliseconds is not None:
            table.add_row("est. time", f"{report.milliseconds:,.2f}", f"ms per run at {report.mhz:g} MHz")
    if report.image is not None:
        _image(report.image, table)
    for energy in report.energies:
        table.add_row("est. energy", str(energy), energy.unit())
    table.add_row("work", f"{report.macs:,}", "multiply-accumulates per run")
    for name, used, budget in (
        ("RAM", report.ram_bytes, report.ram_budget_bytes),
        ("flash", report.flash_bytes, report.flash_budget_bytes),
    ):
        if budget:
            table.add_row(f"{name} budget", f"{budget:,}", f"bytes, {used / budget:.0%} used")
    console.print(table)


def _image(facts: Image, table: Table) -> None:
    """What the linked image has."""
    table.add_row(facts.file, f"{facts.flash_bytes:,}", "bytes of flash for this model, of this:")
    table.add_row("  constants", f"{facts.constants_bytes:,}", "weights and tables")
    table.add_row("  code", f"{facts.code_bytes:,}", "of this model")
    table.add_row("  kernels", f"{facts.kernels_bytes:,}", "of all models in the image")
    table.add_row("  module", f"{facts.glue_bytes:,}", "claims, registry, shell")
    table.add_row("", f"{facts.ram_bytes:,}", "bytes of RAM for all models")
    whole = f"bytes of flash and {facts.image_ram_bytes:,} bytes of RAM in all"
    table.add_row("image", f"{facts.image_flash_bytes:,}", whole)


def _estimated(report: Report, facts: Estimated, table: Table) -> None:
    """What is known without building anything."""
    table.add_row("est. code", f"{facts.code_bytes:,}", "bytes of flash")
    others = facts.constants_bytes - report.weights_bytes
    table.add_row("est. tables", f"{others:,}", "bytes of flash: descriptions of layers and tensors")
    if facts.instructions is not None:
        table.add_row("est. instructions", f"{facts.instructions:,} {facts.bar}", f"per run; {facts.note}")
    else:
        table.add_row("", "", facts.note)
    if facts.cycles is not None:
        table.add_row("est. cycles", f"{facts.cycles:,}", "per run, for memory without wait states")
    if report.milliseconds is not None:
        table.add_row("est. time", f"{report.milliseconds:,.2f}", f"ms per run at {report.mhz:g} MHz")


def _stages(report: Report, console: Console) -> None:
    table = Table("what the passes did", box=None, padding=(0, 2, 0, 0))
    for title in ("layers", "MACs", "constants"):
        table.add_column(title, justify="right")
    for stage in report.stages:
        table.add_row(
            stage.name.replace("_", " "), f"{stage.layers:,}", f"{stage.macs:,}", f"{stage.constants_bytes:,}"
        )
    console.print(table)


def show_changes(changed: Sequence[Changed], console: Console, since: str = "") -> None:
    """What is different from another report; ``since``: its name, if there are several."""
    since = f" since {since}" if since else ""
    if not changed:
        console.print(f"nothing changed{since}", markup=False)
        return
    table = Table(f"changed{since}", box=None, padding=(0, 2, 0, 0))
    for title in ("before", "after", ""):
        table.add_column(title, justify="right")
    for item in changed:
        style = "green" if item.better else "red" if item.better is False else None
        table.add_row(item.what, item.before, item.after, item.difference, style=style)
    console.print(table)
