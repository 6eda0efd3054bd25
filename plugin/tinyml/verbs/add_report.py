# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What `add` prints about the model that it added."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tinyml.base import naming
from tinyml.base.errors import BudgetError
from tinyml.projects import edit, files, folder, manifest
from tinyml.settings.request_forms import INSTRUCTIONS
from tinyml.settings.setting import YAML
from tinyml.verbs.base import print_notes

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from tinyml.pipeline import Compiled, Options


def report(
    console: Console,
    app: folder.Application,
    entry: manifest.ModelEntry,
    compiled: Compiled,
    copied: bool,
) -> None:
    from rich.table import Table

    from tinyml.cost.hints import hints

    summary = compiled.summary

    if copied:
        console.print(
            f"copied to {entry.file} (the original is outside the application's repository)", markup=False
        )
    console.print(f"added {entry.name} ({entry.file}) to {app.manifest_path}", markup=False, soft_wrap=True)
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_row("arena", f"{summary['arena_bytes']:,} bytes of RAM")
    if summary.get("state_bytes"):
        table.add_row("state", f"{summary['state_bytes']:,} bytes of RAM, kept between runs")
    table.add_row("weights", f"{summary['weights_bytes']:,} bytes of flash")
    for kind in ("inputs", "outputs"):
        for tensor in summary[kind]:
            shape = naming.shape_text(tensor["shape"])
            table.add_row(
                kind[:-1], f"{tensor['name']}: {shape} {tensor['dtype']}, {tensor['bytes']:,} bytes"
            )
    console.print(table, markup=False)
    print_notes(console, (*compiled.graph.notes, *hints(compiled)))
    if floats := sum(chosen.in_float for chosen in compiled.selected):
        off = edit.is_off(files.read_text(app.prj_conf_path), "CONFIG_FPU")
        advice = (
            "prj.conf has CONFIG_FPU off: remove that line; with an FPU they take about a tenth of the time"
            if off
            else "CONFIG_TINYML enables the FPU (CONFIG_FPU) where the core has one"
        )
        console.print(
            f"{floats} of {len(compiled.selected)} layers compute in float. {advice}",
            markup=False,
            soft_wrap=True,
        )
    if summary["libm"]:
        from tinyml.ops.framework.maths import FULL_LIBC

        console.print(
            f"{entry.name} computes {', '.join(summary['libm'])} in double: it needs {FULL_LIBC} in prj.conf",
            markup=False,
            soft_wrap=True,
        )
    if compiled.quantization:
        loss = compiled.quantization
        for line in (f"{loss.kind}: {loss.headline()}", *loss.advice()):
            console.print(line, markup=False, soft_wrap=True)
    console.print(
        f"Sizes are for {summary['target']}. Next: #include <{entry.name}.h>, then run west build.",
        markup=False,
    )


def say_what_is_left(console: Console, app: folder.Application, replaced: manifest.ModelEntry) -> None:
    """The file of the model that was replaced, if nothing uses it any more.

    It stays: nobody but the user knows whether it is kept for another purpose.
    """
    old = replaced.path(app.root)
    used = {entry.path(app.root).resolve() for entry in app.manifest().models}
    if old.is_file() and old.resolve() not in used:
        console.print(f"no model uses {replaced.file} any more", markup=False, soft_wrap=True)


def warn_of_budget(
    console: Console, entry: manifest.ModelEntry, compiled: Compiled, model: Path, options: Options
) -> None:
    """The build refuses a model above its budget; say so before it does.

    Instructions are bounded from machine code, which only the build has.
    """
    from tinyml.cost.estimate import estimate_for
    from tinyml.report import budget
    from tinyml.report.ways_out import pricing

    limits = [
        (kind, budget.Limit(amount, f"the budget of {entry.name}"))
        for kind, amount in entry.budget.items()
        if kind != INSTRUCTIONS
    ]
    if not limits:
        return
    estimate = estimate_for(compiled)
    try:
        budget.check_all(
            compiled.summary,
            limits,
            flash_bytes=None if estimate is None else estimate.flash_bytes,
            ways=pricing(model, options, compiled, YAML),
        )
    except BudgetError as error:
        console.print(f"warning: the build will fail: {error.message}", markup=False, soft_wrap=True)
        console.print(f"  try: {error.hint}", markup=False, soft_wrap=True)
