# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Bars for the page of benchmarks on the site, drawn from the same record as its tables."""

from __future__ import annotations

from pathlib import Path

from tinyml.bench.measure import Row
from tinyml.bench.overview import MACHINES, core
from tinyml.bench.peers import peers
from tinyml.bench.record import load
from tinyml.bench.silicon import HEADING
from tools.landing_figures import ROOT, bars, rect, svg, text

CYCLES = HEADING.splitlines()[0]
OURS = "this project, estimate"
NAMES, LONGEST, LINE = 350, 290, 17


def with_bars(page: str, figures: Path) -> str:
    """The page with a picture before the tables that it draws; the pictures go into ``figures``."""
    pictures = []
    for machine in MACHINES:
        (figures / f"bars_{machine}.svg").write_text(bars(machine), encoding="utf-8")
        said = f"Instructions, flash and RAM on a {core(machine)}, beside TensorFlow Lite Micro"
        pictures.append(f"![{said}](figures/bars_{machine}.svg)\n")
    page = page.replace(CYCLES, "\n".join([*pictures, CYCLES]), 1)
    rows = load(ROOT / "benchmarks" / "record.json").rows
    for target in dict.fromkeys(entry.core for entry in peers().silicon):
        heading = f"### {core(target)}\n"
        picture = cycles(target, rows)
        if not picture or heading not in page:
            continue
        (figures / f"cycles_{target}.svg").write_text(picture, encoding="utf-8")
        said = f"Million cycles of an inference on a {core(target)}"
        page = page.replace(heading, f"{heading}\n![{said}](figures/cycles_{target}.svg)\n", 1)
    return page


def cycles(target: str, rows: tuple[Row, ...] | list[Row]) -> str:
    """Our estimate above what others published, for each model that any of them has."""
    published = [entry for entry in peers().silicon if entry.core == target]
    estimates = {
        row.sha256: row.cycles
        for row in rows
        if (row.machine, row.kernels) == (f"qemu-{target}", "auto") and row.cycles is not None
    }
    parts: list[str] = []
    y = 0.0
    for model in peers().models.values():
        values = [(OURS, estimates.get(model.sha256), "ours")]
        values += [
            (f"{entry.name}, {entry.chip}", entry.cycles.get(model.key), "theirs") for entry in published
        ]
        shown = [(name, value, kind) for name, value, kind in values if value is not None]
        if len(shown) < 2 or shown[0][2] != "ours":
            continue
        most = max(value for _, value, _ in shown)
        parts.append(text(0, y + 18, model.title.replace("MLPerf Tiny ", "")))
        y += 26
        for name, value, kind in shown:
            width = LONGEST * value / most
            parts.append(text(NAMES - 8, y + 10, name, "soft", "end"))
            parts.append(rect(NAMES, y, width, 12, kind, 2))
            parts.append(text(NAMES + width + 6, y + 10, f"{value / 1e6:.2f}", "soft"))
            y += LINE
        y += 8
    if not parts:
        return ""
    return svg(700, int(y + 4), f"Million cycles of an inference on a {core(target)}", parts)
