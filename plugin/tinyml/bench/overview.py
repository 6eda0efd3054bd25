# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The comparison in short: one row per model, our figures next to those of the best known peer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tinyml.bench.measure import Row
from tinyml.bench.peers import Figure, peers

PEER = "TFLM + CMSIS-NN"
MACHINES = ("qemu-cortex-m4", "qemu-cortex-m55")
KERNELS = "auto"
HEADINGS = ("instructions", "flash", "RAM")


def overview(rows: Iterable[Row]) -> str:
    """A Markdown table: our figures, each followed by how many times as much the peer needs."""
    ours = {(row.sha256, row.machine): row for row in rows if row.kernels == KERNELS}
    columns = [f"{core(machine)}: {heading}" for machine in MACHINES for heading in HEADINGS]
    lines = [f"| | {' | '.join(columns)} |", f"|---|{'---:|' * len(columns)}"]
    for model in peers().models.values():
        cells = [
            cell
            for machine in MACHINES
            for cell in _cells(ours.get((model.sha256, machine)), peers().of(model.sha256, machine))
        ]
        if any(cells):
            lines.append(f"| {model.title} | {' | '.join(cells)} |")
    return "\n".join(lines)


def core(machine: str) -> str:
    return machine.removeprefix("qemu-").replace("cortex-m", "Cortex-M")


def _cells(row: Row | None, figures: Sequence[Figure]) -> list[str]:
    theirs = next((figure for figure in figures if figure.peer == PEER), None)
    if row is None or theirs is None:
        return [""] * len(HEADINGS)
    flash = _sum(theirs.constants_bytes, theirs.code_bytes)
    return [
        _compared(row.instructions, theirs.instructions),
        _compared(row.constants_bytes + row.code_bytes, flash),
        _compared(row.ram_bytes, theirs.ram_bytes),
    ]


def _sum(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b


def _compared(ours: int, theirs: int | None) -> str:
    return f"{ours:,}" if theirs is None else f"{ours:,} ({theirs / ours:.1f}x)"
