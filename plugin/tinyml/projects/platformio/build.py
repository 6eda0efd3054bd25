# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What a PlatformIO build compiles, what it depends on, and the limits it checks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
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

RUNTIME = Path(__file__).parents[2] / "runtime"


def external_files(model: Path) -> list[Path]:
    """External data files of an ONNX model, so that a build depends on them too.

    Found in the raw bytes (key 1 "location", value 2, as protobuf writes the pair): this runs in every
    build, and parsing would mean importing onnx only to find that nothing has changed.
    """
    if model.suffix.lower() != ".onnx":
        return []
    content = model.read_bytes()
    names = set()
    for pair in re.finditer(rb"\x0a\x08location\x12([\x80-\xff]*)([\x00-\x7f])", content):
        digits = (*pair[1], *pair[2])  # of the length, with base 128, the lowest first
        length = sum((digit & 0x7F) << 7 * place for place, digit in enumerate(digits))
        names.add(content[pair.end() : pair.end() + length].decode(errors="replace"))
    return [model.parent / name for name in sorted(names)]


def operator_files(model: Model) -> list[Path]:
    """Files with operators, and all C beside them: what they use of it is known only later."""
    beside = [path for file in model.options.operators for path in sorted(file.parent.glob("*.[ch]"))]
    return [*model.options.operators, *dict.fromkeys(beside)]


def read_files(model: Model) -> list[Path]:
    """The files beside a model's own that decide what is generated."""
    calibration = model.options.quantize.files if model.options.quantize else []
    return [*external_files(model.path), *calibration, *operator_files(model)]


def generated_files(name: str) -> tuple[str, ...]:
    """The files that compiling a model writes, the C file first."""
    return (f"{name}.c", f"{name}.h", f"{name}_weights.h", f"{name}.json")


def remove_stale(folder: Path, names: Iterable[str]) -> None:
    """Delete generated files and objects of models that are no longer in the project."""
    current = {stem for name in names for stem in (name, f"{name}_weights")}
    for path in folder.glob("*"):
        if path.is_file() and path.name.split(".")[0] not in current:
            path.unlink()


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
