# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Measurements kept in a JSON file, and what changed between two of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from tinyml.base import whole_files
from tinyml.base.errors import ConfigError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.bench.measure import ARENA, Row
from tinyml.harness import find_machine
from tinyml.harness.tools import cross_compiler, host_compiler

SCHEMA = 1
COSTS = ("instructions", "constants_bytes", "code_bytes", "ram_bytes", "stack_bytes")
"""Figures that must not grow unnoticed."""
_NAMED = re.compile(r"gcc.*\(|clang version")
"""The line of a compiler's answer that has its version."""


@dataclass(frozen=True)
class Record:
    """Rows, and the compiler that they were measured with."""

    compiler: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Change:
    """One figure of a row that is in both records."""

    old: Row
    new: Row
    cost: str

    @property
    def before(self) -> int:
        return int(getattr(self.old, self.cost))

    @property
    def after(self) -> int:
        return int(getattr(self.new, self.cost))

    @property
    def ratio(self) -> float:
        return self.after / self.before if self.before else (1.0 if not self.after else float("inf"))

    def __str__(self) -> str:
        row = self.new
        io = "" if row.io == ARENA else f", io {row.io}"
        return (
            f"{row.model} on {row.machine} with {row.kernels}{io}: {self.cost.replace('_', ' ')} "
            f"{self.before:,} -> {self.after:,} ({self.ratio - 1:+.1%})"
        )


def compiler_name(machines: Iterable[str]) -> str:
    """The first line of ``--version`` of the compilers for these machines."""
    boards = [find_machine(name).board for name in machines]
    found = [cross_compiler(board.toolchain) if board else host_compiler() for board in boards]
    names = (
        next((line for line in compiler.identity.splitlines() if _NAMED.search(line)), "?")
        for compiler in found
    )
    return ", ".join(dict.fromkeys(names))


def save(path: Path, record: Record) -> None:
    rows = [row.to_json() for row in record.rows]
    data = {"schema": SCHEMA, "compiler": record.compiler, "rows": rows}
    whole_files.save(path, json.dumps(data, indent=1) + "\n")


def load(path: Path) -> Record:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["schema"] != SCHEMA:
            raise ConfigError(f"{path} has schema {data['schema']}; this version reads {SCHEMA}")
        return Record(data["compiler"], tuple(Row.from_json(row) for row in data["rows"]))
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ConfigError(f"{path} is not a record of measurements", "tinyml bench ... --json FILE") from None


def compare(old: Iterable[Row], new: Iterable[Row]) -> Iterator[Change]:
    """Every figure that differs, for rows in both; a model is recognised by its name or its content."""
    before = {row.key: row for row in old}
    by_name = {(row.model, *row.key[1:]): row for row in before.values()}
    for row in new:
        counterpart = before.get(row.key) or by_name.get((row.model, *row.key[1:]))
        if counterpart is None:
            continue
        for cost in COSTS:
            change = Change(counterpart, row, cost)
            if change.before != change.after:
                yield change
