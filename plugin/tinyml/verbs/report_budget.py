# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What a model may take in a report, and what to try if it takes more."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tinyml.settings.setting import COMMAND, YAML

if TYPE_CHECKING:
    from rich.console import Console

    from tinyml.cores.boards import Board
    from tinyml.pipeline import Options
    from tinyml.projects.manifest import ModelEntry
    from tinyml.report import facts

OF_REPORTS = ("ram", "flash")


def with_budgets(
    report: facts.Report, args: argparse.Namespace, board: Board | None, entry: ModelEntry | None
) -> facts.Report:
    """The budgets of --ram and --flash, or else what tinyml.yaml and the board allow."""
    allowed = {}
    for kind, given in (("ram", args.ram), ("flash", args.flash)):
        others = (entry.budget.get(kind) if entry else None, getattr(board, f"{kind}_bytes", None))
        allowed[kind] = given or min((amount for amount in others if amount), default=None)
    return replace(report, ram_budget_bytes=allowed["ram"], flash_budget_bytes=allowed["flash"])


def check_the_rest(model: Path, options: Options, entry: ModelEntry) -> None:
    """The other budgets of tinyml.yaml, of which a report has no line: the arena, instructions."""
    rest = {kind: amount for kind, amount in entry.budget.items() if kind not in OF_REPORTS}
    if not rest:
        return
    from tinyml.api.bounding import bound_of
    from tinyml.api.compiled import build
    from tinyml.api.sources import as_model
    from tinyml.report import budget
    from tinyml.report.ways_out import pricing

    compiled = build(as_model(model), options)
    budget.check_all(
        compiled.summary,
        [(kind, budget.Limit(amount, f"the budget of {entry.name}")) for kind, amount in rest.items()],
        ways=pricing(model, options, compiled.built, YAML),
        instructions=lambda: bound_of(compiled).instructions,
    )


def say_what_fits(
    report: facts.Report, model: Path, options: Options, console: Console, place: str = COMMAND
) -> None:
    """The settings with which the model keeps the budget that it exceeds, with the bytes of each."""
    from tinyml.pipeline import compile_model
    from tinyml.report.budget import UNNAMED, Limit
    from tinyml.report.ways_out import pricing

    ways = pricing(model, options, compile_model(model, options), place)
    used = {"ram": (report.ram_bytes, report.ram_budget_bytes)}
    used["flash"] = (report.flash_bytes, report.flash_budget_bytes)
    for kind, (needed, budget) in used.items():
        if budget and needed > budget:
            found = ways(kind, Limit(budget, UNNAMED))
            said = ", or ".join(found) if found else "a smaller model: no setting needs less"
            console.print(f"  try: {said}", markup=False, soft_wrap=True)


def what_fits_in_build(report: facts.Report, build: Path, console: Console) -> None:
    """The lines of tinyml.yaml that fit; for a model that CMake alone knows, where to ask."""
    from tinyml.base.errors import TinymlError
    from tinyml.projects.folder import application_of_build

    try:
        app = application_of_build(build)
        entry = next((one for one in app.manifest().models if one.name == report.model), None)
    except TinymlError:  # the application is elsewhere by now
        entry = None
    if entry is None:
        said = "tinyml report MODEL, with the file and --ram or --flash: it prices the settings that fit"
        console.print(f"  try: {said}", markup=False, soft_wrap=True)
        return
    options = entry.options(app.root, target=report.target)
    say_what_fits(report, entry.path(app.root), options, console, YAML)
