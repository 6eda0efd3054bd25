# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Measurements, ours and those of peers, as rows of text for the terminal and for Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tinyml.base.lazy_dataclass import dataclass
from tinyml.bench.measure import ARENA, Row
from tinyml.bench.peers import Figure, peers
from tinyml.cost.cycles import milliseconds

COLUMNS = (
    "kernels",
    "instructions",
    "per MAC",
    "est. cycles",
    "constants",
    "code",
    "of which kernels",
    "glue",
    "C library",
    "RAM",
    "of which arena",
    "stack",
)


@dataclass(frozen=True)
class Line:
    """One line of a table; ``ours`` or a peer's."""

    cells: tuple[str, ...]
    ours: bool


@dataclass(frozen=True)
class Group:
    """All lines about one model on one machine."""

    title: str
    machine: str
    lines: tuple[Line, ...]


def groups(rows: Iterable[Row], mhz: float | None = None) -> Iterator[Group]:
    """Rows of one model and machine together, peers below ours with the ratio to our best.

    With a clock rate, estimated cycles are shown as a time, too.
    """
    sorted_rows: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        sorted_rows.setdefault((row.sha256, row.machine), []).append(row)
    for (sha256, machine), members in sorted_rows.items():
        known = peers().models.get(sha256)
        title = f"{known.title}: {members[0].model}" if known else members[0].model
        figures = peers().of(sha256, machine)
        lines = [Line(_ours(row, mhz), True) for row in members]
        lines += [Line(_theirs(figure, members), False) for figure in figures]
        yield Group(title, machine, tuple(lines))


def _ours(row: Row, mhz: float | None) -> tuple[str, ...]:
    name = row.kernels if row.optimize == "-O2" else f"{row.kernels} {row.optimize}"
    name += "" if row.io == ARENA else f", io {row.io}"
    return (
        name,
        f"{row.instructions:,}",
        f"{row.instructions / row.macs:.2f}" if row.macs else "",
        estimated(row.cycles, mhz),
        f"{row.constants_bytes:,}",
        f"{row.code_bytes:,}",
        f"{row.kernels_bytes:,}",
        f"{row.glue_bytes:,}",
        f"{row.library_bytes:,}",
        f"{row.ram_bytes:,}",
        f"{row.arena_bytes:,}",
        f"{row.stack_bytes:,}",
    )


def _theirs(figure: Figure, ours: Sequence[Row]) -> tuple[str, ...]:
    best = min(row.instructions for row in ours)
    name = f"{figure.peer} ({figure.note})" if figure.note else figure.peer
    sizes = [figure.constants_bytes, figure.code_bytes, None, None, None, figure.ram_bytes]
    cells = [f"{size:,}" if size is not None else "" for size in sizes]
    count = f"{figure.instructions:,} ({figure.instructions / best:.2f}x)"
    return (name, count, "", "", *cells, "", "")


def estimated(cycles: int | None, mhz: float | None) -> str:
    """Cycles, and the time they take."""
    if cycles is None or mhz is None:
        return f"{cycles:,}" if cycles is not None else ""
    return f"{cycles:,} ({milliseconds(cycles, mhz):,.2f} ms)"


def markdown(found: Sequence[Group]) -> str:
    """Tables by model and machine."""
    parts = []
    for title in dict.fromkeys(group.title for group in found):
        parts.append(f"## {title}\n")
        parts.append(f"| machine | {' | '.join(COLUMNS)} |\n|---|---|{'---:|' * (len(COLUMNS) - 1)}")
        for group in found:
            if group.title == title:
                machine = group.machine.removeprefix("qemu-")
                parts += [f"| {machine} | {' | '.join(line.cells)} |" for line in group.lines]
        parts.append("")
    return "\n".join(parts)
