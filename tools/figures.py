# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Draws pictures of the documentation: ``python -m tools.figures`` writes docs/figures/*.svg."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

from tools import landing_figures

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "figures"
STYLE = """<style>
text { font: 13px system-ui, sans-serif; fill: #1c2330; }
.soft { fill: #566173; font-size: 12px; }
.line { stroke: #9aa5b5; fill: none; }
.edge { stroke: #566173; fill: none; stroke-width: 1.5; }
.a { fill: #5b9ce6; } .b { fill: #5bb97a; } .c { fill: #f0a65a; } .d { fill: #a482e6; } .e { fill: #9aa5b5; }
.faint { fill-opacity: .25; }
.wave { stroke: #2f6fc4; fill: none; stroke-width: 2; }
.steps { stroke: #c2410c; fill: none; stroke-width: 2; }
.inside { fill: #10151d; }
@media (prefers-color-scheme: dark) {
text { fill: #e6eaf0; } .soft { fill: #a3aebd; } .edge { stroke: #a3aebd; } .wave { stroke: #93c5fd; }
.steps { stroke: #fb923c; }
}
</style>"""


def svg(width: int, height: int, title: str, parts: list[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img">'
    )
    return "\n".join([head, f"<title>{title}</title>", STYLE, *parts, "</svg>", ""])


def box(x: float, y: float, width: float, height: float, kind: str, label: str = "") -> str:
    rect = f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="3" class="{kind}"/>'
    middle = f'x="{x + width / 2:g}" y="{y + height / 2 + 4:g}" text-anchor="middle" class="inside"'
    return rect + (f"<text {middle}>{label}</text>" if label else "")


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    return f'<text x="{x:g}" y="{y:g}" class="{kind}" text-anchor="{anchor}">{words}</text>'


def arrow(x0: float, y0: float, x1: float, y1: float) -> str:
    back = math.atan2(y1 - y0, x1 - x0)
    wings = [(x1 - 8 * math.cos(back + d), y1 - 8 * math.sin(back + d)) for d in (-0.4, 0.4)]
    head = f"M{wings[0][0]:.1f} {wings[0][1]:.1f}L{x1:g} {y1:g}L{wings[1][0]:.1f} {wings[1][1]:.1f}"
    return f'<path d="M{x0:g} {y0:g}L{x1:g} {y1:g}{head}" class="edge"/>'


TENSORS = (
    # name, class, KiB, first step, last step, offset in the planned arena
    ("input", "e", 4, 0, 0, 0),
    ("conv 1", "a", 8, 0, 2, 4),
    ("conv 2", "b", 4, 1, 2, 0),
    ("add", "c", 8, 2, 3, 4),
    ("dense", "d", 2, 3, 4, 0),
)


def arena() -> str:
    """Five tensors, each with memory of its own, and the same five in a planned arena."""
    parts = [text(20, 24, "a buffer for each tensor: 26 KiB"), text(400, 24, "planned: 12 KiB")]
    at = 0.0
    for name, kind, size, first, last, offset in TENSORS:
        width, x = 58 * (last - first + 1), 58 * first
        parts.append(box(20 + x, 300 - 10 * (at + size), width - 2, 10 * size - 1, kind, name))
        parts.append(box(400 + x, 300 - 10 * (offset + size), width - 2, 10 * size - 1, kind, name))
        at += size
    for left in (20, 400):
        parts.append(f'<path d="M{left} 40V300H{left + 300}" class="line"/>')
        parts += [text(left + 58 * step + 29, 318, str(step), "soft", "middle") for step in range(5)]
        parts.append(text(left + 145, 338, "layer, in order of execution", "soft", "middle"))
    return svg(720, 350, "The arena: tensors share memory when their lives do not overlap", parts)


def bands() -> str:
    """Two convolutions with the whole tensor between them, and with a band of its rows."""
    parts = []
    for left, whole, title in (
        (20, True, "the whole tensor between two layers"),
        (390, False, "a band of rows"),
    ):
        parts.append(text(left, 24, title))
        for column, (kind, name) in enumerate((("a", "input"), ("b", "between"), ("c", "output"))):
            x = left + 110 * column
            shown = name != "between" or whole
            parts += [
                box(x, 44 + 16 * row, 84, 15, kind + ("" if shown or 4 <= row < 7 else " faint"))
                for row in range(10)
            ]
            parts.append(text(x + 42, 222, name, "soft", "middle"))
        row = 44 + 16 * 5.5
        parts += [arrow(left + 84, row, left + 110, row), arrow(left + 194, row, left + 220, row)]
    return svg(720, 240, "Bands: only a few rows of the tensor between two layers exist at a time", parts)


def quantisation() -> str:
    """A signal, the steps that int8 has for it, and what the difference means in decibels."""
    points = [(20 + 6 * i, 110 - 80 * math.sin(i / 14) * math.exp(-i / 90)) for i in range(101)]
    wave = "M" + "L".join(f"{x:g} {y:.1f}" for x, y in points)
    stepped = [(x, 110 - 20 * round((110 - y) / 20)) for x, y in points]
    steps = f"M{stepped[0][0]:g} {stepped[0][1]:g}" + "".join(f"H{x:g}V{y:g}" for x, y in stepped[1:])
    parts = [f'<path d="M20 {y}H620" class="line" stroke-dasharray="2 4"/>' for y in range(30, 191, 20)]
    parts += [f'<path d="{wave}" class="wave"/>', f'<path d="{steps}" class="steps"/>']
    parts += [
        text(630, 50, "real values"),
        text(630, 90, "what the integers"),
        text(630, 106, "can represent"),
    ]
    parts += ['<path d="M600 46h24" class="wave"/>', '<path d="M600 92h24" class="steps"/>']
    parts.append(
        text(20, 220, "one step is the scale; SNR compares the curve with the distance to the steps", "soft")
    )
    return svg(760, 232, "Quantisation: real values become multiples of a scale", parts)


def exactness() -> str:
    """The two ways from a model file to numbers, and where they are compared."""
    parts = [
        box(20, 90, 110, 44, "e", "model file"),
        box(220, 30, 200, 44, "a", "training framework"),
        box(220, 150, 120, 44, "b", "compiler"),
        box(390, 150, 130, 44, "b", "C on the device"),
        box(590, 90, 130, 44, "c", "equal, bit for bit"),
        arrow(130, 104, 220, 56),
        arrow(130, 120, 220, 168),
        arrow(340, 172, 390, 172),
        arrow(420, 52, 590, 100),
        arrow(520, 172, 590, 126),
        text(500, 56, "integers", "soft"),
        text(545, 172, "integers", "soft"),
    ]
    return svg(740, 220, "Exactness: the device computes what the framework computes", parts)


FIGURES: dict[str, Callable[[], str]] = {
    "arena": arena,
    "bands": bands,
    "quantisation": quantisation,
    "exactness": exactness,
    "landing": landing_figures.landing,
    "logo": landing_figures.logo,
}


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, draw in FIGURES.items():
        (FOLDER / f"{name}.svg").write_text(draw(), encoding="utf-8")


if __name__ == "__main__":
    main()
