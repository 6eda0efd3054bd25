# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The section of docs/BENCHMARKS.md about the player, from the figures of docs/PLAYER_FIGURES.md."""

from __future__ import annotations

from pathlib import Path

from tinyml.bench.peers import Figure, peers

KEYWORDS = "MLPerf Tiny keyword spotting"
TEXT = """\
## Played instead of compiled

A model can also be [data that the player runs](player.md). `python -m tools.player_figures` measures what
that costs; [](PLAYER_FIGURES.md) has all figures. On a Cortex-M4, compiled with `-Os`:

{sizes}

Before the first run, the player checks all of a pack: {opening} instructions for keyword spotting. Then a run
takes by so much more instructions than one of compiled code with the same kernels; the outputs are equal:

{runs}
"""


def section(figures: Path) -> str:
    """In Markdown; ``figures`` is the page that ``tools.player_figures`` wrote."""
    tables = _tables(figures.read_text(encoding="utf-8"))
    opening = next(row[4] for row in tables["Packs"] if row[0] == "keyword spotting")
    return TEXT.format(
        sizes="\n".join(_sizes(tables)), runs="\n".join(_runs(tables["Runs"])), opening=opening
    )


def _tables(page: str) -> dict[str, list[list[str]]]:
    """The rows of the table under each heading, without its own."""
    found: dict[str, list[list[str]]] = {}
    heading = ""
    for line in page.splitlines():
        if line.startswith("## "):
            heading = line[3:]
        elif line.startswith("|"):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            found.setdefault(heading, []).append(cells)
    return {name: rows[2:] for name, rows in found.items()}


def _sizes(tables: dict[str, list[list[str]]]) -> list[str]:
    flash = {row[0]: row[1] for row in tables["Flash and RAM"]}
    packs = {row[0]: row for row in tables["Packs"]}
    micro = _interpreter()
    return [
        f"| bytes | the player | {micro.peer} |",
        "|---|---:|---:|",
        "| code, with the kernels of all five models of MLPerf Tiny; the other, of keyword spotting | "
        f"{flash['all flash']} | {micro.code_bytes:,} |",
        f"| of which player and verifier | {flash['player and verifier']} | |",
        f"| constants of keyword spotting | {packs['keyword spotting'][2]} | {micro.constants_bytes:,} |",
        f"| RAM beside arena and state | {flash['RAM beside arena and state']} | |",
    ]


def _interpreter() -> Figure:
    """TensorFlow Lite Micro with the smallest code, for the same model."""
    known = next(sha for sha, model in peers().models.items() if model.title.startswith(KEYWORDS))
    found = [
        figure
        for figure in peers().of(known, "qemu-cortex-m4")
        if figure.code_bytes and "TFLM" in figure.peer
    ]
    return min(found, key=lambda figure: figure.code_bytes or 0)


def _runs(rows: list[list[str]]) -> list[str]:
    cores = list(dict.fromkeys(row[1] for row in rows))
    lines = [f"| model | {' | '.join(cores)} |", f"|---|{'---:|' * len(cores)}"]
    for model in dict.fromkeys(row[0] for row in rows):
        more = {row[1]: row[4] or "not played" for row in rows if row[0] == model}
        lines.append(f"| {model} | {' | '.join(more.get(core, '') for core in cores)} |")
    return lines
