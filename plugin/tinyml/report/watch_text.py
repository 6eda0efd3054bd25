# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The figures of a watched model as lines of text, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tinyml.watch.figures import ClassFigures, Figures, ValueFigures

BLOCKS = " ▁▂▃▄▅▆▇█"


def lines_of(figures: Figures, number: int) -> Iterator[str]:
    """A period in a few lines."""
    head = f"{number}: {figures.name}: {figures.runs:,} runs"
    head += f", {figures.errors:,} errors" if figures.errors else ""
    if figures.cycles_max:
        head += f", {figures.cycles_mean:,.0f} cycles ({figures.cycles_min:,} to {figures.cycles_max:,})"
    yield head + (", full: reset it" if figures.runs >= figures.most_runs else "")
    kinds = (("input", figures.inputs), ("channel", figures.channels), ("output", figures.outputs))
    for word, parts in kinds:
        for part in parts:
            yield f"  {word} {part.name}: " + (
                _decisions(part) if isinstance(part, ClassFigures) else _values(part)
            )


def _values(part: ValueFigures) -> str:
    if not part.bins:
        return "not counted"
    found = "no reference" if part.drift is None else f"drift {part.drift:.4f}"
    return f"{found}, {100 * part.outside:.2f} % at the ends or outside  [{bars(part.shares)}]"


def _decisions(part: ClassFigures) -> str:
    found = [f"{part.switch_rate:.3f} switches a run"]
    if part.top is not None and part.margin is not None and part.entropy is not None:
        found += [f"score {part.top:.3f}", f"margin {part.margin:.3f}", f"entropy {part.entropy:.3f} bits"]
    if part.decisions:
        found.append(f"decisions {' '.join(map(str, part.decisions))}")
    return ", ".join(found)


def bars(shares: tuple[float, ...]) -> str:
    """A histogram in one line."""
    highest = max(shares, default=0.0) or 1.0
    return "".join(BLOCKS[round(8 * share / highest)] for share in shares)


def as_json(figures: Figures) -> str:
    """One line; the counters themselves are under ``raw``."""
    decided = figures.decided
    found: dict[str, Any] = {
        "name": figures.name,
        "sha256": figures.sha256,
        "version": figures.version,
        "runs": figures.runs,
        "errors": figures.errors,
        "drift": figures.drift,
        "inputs": {part.name: {"drift": part.drift, "outside": part.outside} for part in figures.inputs},
        **(
            {"channels": [{"drift": part.drift, "outside": part.outside} for part in figures.channels]}
            if figures.channels
            else {}
        ),
        "cycles": [figures.cycles_min, figures.cycles_mean, figures.cycles_max],
    }
    if decided:
        found |= {
            "score": decided.top,
            "margin": decided.margin,
            "entropy": decided.entropy,
            "switches": decided.switch_rate,
            "decisions": list(decided.decisions),
        }
    return json.dumps(found | {"raw": _plain(figures.raw)})


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value
