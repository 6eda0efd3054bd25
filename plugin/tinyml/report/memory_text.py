# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The memory plan as a picture for a terminal: time across, addresses up, a letter for each tensor."""

from __future__ import annotations

from string import ascii_letters

from rich.text import Text

from tinyml.report.facts import Report

ROWS = 12
MOST_COLUMNS = 72
STYLES = ("cyan", "green", "yellow", "magenta", "blue", "red")
SCRATCH = "·"


def memory_picture(report: Report, columns: int = MOST_COLUMNS) -> list[Text]:
    """Lines from the highest address down. A cell shows what occupies the middle of its bytes."""
    steps = len(report.layers) + 1
    width = max(1, min(columns, MOST_COLUMNS) // steps)
    across = min(steps * width, columns)
    lines = []
    for row in reversed(range(ROWS)):
        address = (row + 0.5) * report.arena_bytes / ROWS
        label = f"{(row + 1) * report.arena_bytes // ROWS:>9,} " if row in (ROWS - 1, 0) else " " * 10
        line = Text(label if row else f"{0:>9,} ", style="dim")
        for column in range(across):
            step = column * steps // across
            line.append(*_cell(report, address, step))
        lines.append(line)
    peak = (report.peak_step * across + across // 2) // steps
    last = f"{'layer':>9} 0{'^ peak':>{max(peak + 5, 6)}}" if peak else f"{'layer':>9} 0^ peak"
    lines.append(Text(last, style="dim"))
    return lines


def _cell(report: Report, address: float, step: int) -> tuple[str, str]:
    """What is shown at an address in a step, and how."""
    for number, tensor in reversed(list(enumerate(report.tensors))):  # the newest, where they overlap
        inside = tensor.offset <= address < tensor.offset + tensor.bytes
        if inside and tensor.first <= step <= tensor.last:
            letter = ascii_letters[number % len(ascii_letters)]
            return letter, f"reverse {STYLES[number % len(STYLES)]}"
    if step < len(report.layers):
        layer = report.layers[step]
        start = layer.scratch_offset
        if start is not None and start <= address < start + layer.scratch_bytes:
            return SCRATCH, "dim reverse"
    return " ", ""
