# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The section of docs/BENCHMARKS.md about learning on the device, from the figures of docs/adapt.md."""

from __future__ import annotations

from pathlib import Path

CORE = "cortex-m4"
TEXT = """\
## Learning on the device

What MLPerf Tiny's keyword spotting (64 features, 12 classes) takes in addition on a Cortex-M4 if it
[learns](adapt.md), counted in the same way as the other figures by `python -m tools.adapt_figures --only
costs`. A test (`tests/standalone/test_adapt.py`) holds the limits in brackets.
[Other cores](adapt.md#what-it-costs) are in the guide.

| | RAM | flash | instructions of an example | share of a run | instructions that a run takes longer |
|---|---:|---:|---:|---:|---:|
{rows}
"""
LIMITS = {"last": ("3,400", "1,500", "2 %"), "prototypes": ("1,700", "1,000", "")}
"""RAM, flash, and the share of a run."""


def section(figures: Path) -> str:
    """In Markdown; ``figures`` is the page that ``tools.adapt_figures`` wrote."""
    table = figures.read_text(encoding="utf-8").split("<!-- costs -->")[1].split("<!-- /costs -->")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.strip().splitlines()[2:]]
    lines = []
    for kind, core, ram, flash, example, share, longer in rows:
        if core == CORE:
            most = LIMITS[kind.strip("`")]
            limited = [
                f"{figure} ({limit})" if limit else figure
                for figure, limit in zip((ram, flash, share), most, strict=True)
            ]
            lines.append(f"| {kind} | {limited[0]} | {limited[1]} | {example} | {limited[2]} | {longer} |")
    return TEXT.format(rows="\n".join(lines))
