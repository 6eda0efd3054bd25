# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The limits that a PlatformIO build checks when it has compiled a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tinyml.bounds import bound_files
from tinyml.bounds.images import machine_for
from tinyml.cost.estimate import estimate_for
from tinyml.pipeline import Compiled
from tinyml.projects.manifest import FILE_NAME
from tinyml.projects.platformio.boards import Board
from tinyml.projects.platformio.project import PREFIX, Model
from tinyml.report import budget
from tinyml.settings import interface


def estimated_flash(compiled: Compiled) -> int | None:
    """Weights, tables and code; None for a core without measured costs."""
    found = estimate_for(compiled)
    return found.flash_bytes if found else None


def most_instructions(compiled: Compiled) -> int:
    """What no run exceeds, of the model linked for an emulated machine with the same core."""
    return bound_files(compiled.files, machine_for(compiled.summary["target"])).instructions


def check_budget(
    summary: Mapping[str, Any],
    model: Model,
    board: Board,
    flash_bytes: int | None = None,
    ways: budget.Ways = budget.no_ways,
    instructions: Callable[[], int] | None = None,
) -> None:
    """The interface that the application relies on, the user's own limits, and the board's."""
    own = [(kind, budget.Limit(amount, FILE_NAME)) for kind, amount in model.budget.items()]
    interface.check(summary, model.interface)
    budget.check_all(summary, own, flash_bytes=flash_bytes, ways=ways, instructions=instructions)
    limit = model.arena_limit_bytes
    budget.check(
        summary,
        arena=[budget.Limit(limit, f"{PREFIX}arena")] if limit is not None else [],
        ram=[budget.Limit(board.ram_bytes, "the board")] if board.ram_bytes else [],
        flash=[budget.Limit(board.flash_bytes, "the board")] if board.flash_bytes else [],
        flash_bytes=flash_bytes,
        ways=ways,
    )
