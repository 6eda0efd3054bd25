# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A scatter plot with a Pareto front, as SVG without any dependencies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from tinyml.base.lazy_dataclass import dataclass

WIDTH, HEIGHT = 640, 400
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 20, 50
TICKS = 5
LABEL, LETTER, LINE = 40, 6.2, 13  # letters of a label at most, and pixels of a letter and of a line
FAR = 1.5  # budgets beyond this many times the largest cost are left out

DARK = """<style>@media (prefers-color-scheme: dark) {
.plot-paper { fill: #14181d; } .plot-words { fill: #c5cdd6; } .plot-grid { stroke: #333b45; }
.plot-limit { stroke: #ff7b72; } .plot-front { stroke: #58a6ff; } .plot-best { fill: #58a6ff; }
.plot-other { fill: #6e7681; } }</style>"""
"""Colours for dark screens; the attributes of the elements are those for light ones and for paper."""


@dataclass(frozen=True)
class Point:
    x: float
    y: float
    title: str  # shown where the pointer rests
    best: bool  # part of the front
    label: str = ""  # written beside it, if there is room


def scatter(
    points: Sequence[Point], x_title: str, y_title: str, limit: float | None = None, joined: bool = True
) -> str:
    """``limit``: a budget on the x axis, drawn as a line if it is in sight.

    ``joined``: a line joins the front, which makes sense if both axes are all that is compared.
    """
    xs = _Axis([point.x for point in points], LEFT, WIDTH - RIGHT, limit)
    ys = _Axis([point.y for point in points], HEIGHT - BOTTOM, TOP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        f'height="{HEIGHT}" role="img" font-family="sans-serif" font-size="12">',
        f"<title>{escape(y_title)} over {escape(x_title)}</title>",
        DARK,
        f'<rect class="plot-paper" width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
    ]
    for value in xs.ticks:
        parts += [_line(xs.at(value), TOP, xs.at(value), HEIGHT - BOTTOM, "grid", "#ddd")]
        parts += [_text(xs.at(value), HEIGHT - BOTTOM + 18, _short(value), "middle")]
    for value in ys.ticks:
        parts += [_line(LEFT, ys.at(value), WIDTH - RIGHT, ys.at(value), "grid", "#ddd")]
        parts += [_text(LEFT - 8, ys.at(value) + 4, _short(value), "end")]
    parts += [_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, x_title, "middle")]
    parts += [_text(LEFT, TOP - 6, y_title, "middle")]
    if limit is not None and xs.low <= limit <= xs.high:
        x = xs.at(limit)
        parts += [_line(x, TOP, x, HEIGHT - BOTTOM, "limit", "#c33", 'stroke-dasharray="4 3"')]
        parts += [_text(x - 6, HEIGHT - BOTTOM - 8, f"budget {_short(limit)}", "end")]
    front = sorted((point for point in points if point.best), key=lambda point: point.x)
    if joined and len(front) > 1:
        path = " ".join(f"{xs.at(point.x):.1f},{ys.at(point.y):.1f}" for point in front)
        parts += [
            f'<polyline class="plot-front" points="{path}" fill="none" stroke="#06c" stroke-width="1.5"/>'
        ]
    for point in sorted(points, key=lambda point: point.best):
        kind, colour, radius = ("best", "#06c", 5) if point.best else ("other", "#999", 3.5)
        parts += [
            f'<circle class="plot-{kind}" cx="{xs.at(point.x):.1f}" cy="{ys.at(point.y):.1f}" r="{radius}" '
            f'fill="{colour}"><title>{escape(point.title)}</title></circle>'
        ]
    return "\n".join([*parts, *_labels(front, xs, ys), "</svg>", ""])


def _labels(front: Sequence[Point], xs: _Axis, ys: _Axis) -> list[str]:
    """What the best points are, from the highest down, where no label covers another one."""
    parts: list[str] = []
    taken: list[tuple[float, float, float]] = []  # left, right, baseline
    for point in sorted(front, key=lambda point: -point.y):
        words = point.label if len(point.label) <= LABEL else f"{point.label[: LABEL - 1]}…"
        width = LETTER * len(words)
        right = xs.at(point.x) + 9 + width < WIDTH
        left = xs.at(point.x) + 9 if right else xs.at(point.x) - 9 - width
        base = ys.at(point.y) + 4
        free = all(left > b or left + width < a or abs(base - y) > LINE for a, b, y in taken)
        if words and free and left > LEFT:
            taken.append((left, left + width, base))
            parts.append(_text(left if right else left + width, base, words, "start" if right else "end"))
    return parts


class _Axis:
    """From values to pixels, with a margin; ``ticks`` are round numbers."""

    def __init__(
        self, values: Sequence[float], first: float, last: float, limit: float | None = None
    ) -> None:
        low, high = min(values, default=0.0), max(values, default=1.0)
        if limit is not None and high < limit <= FAR * high:
            high = limit  # a budget that is near is in sight
        margin = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
        self.low, self.high = low - margin, high + margin
        self.first, self.last = first, last

    def at(self, value: float) -> float:
        return self.first + (value - self.low) / (self.high - self.low) * (self.last - self.first)

    @property
    def ticks(self) -> list[float]:
        rough = (self.high - self.low) / TICKS
        unit = 10.0 ** math.floor(math.log10(rough))
        step = next(factor * unit for factor in (1, 2, 5, 10) if factor * unit >= rough)
        return [step * i for i in range(math.ceil(self.low / step), math.floor(self.high / step) + 1)]


def _short(value: float) -> str:
    if abs(value) >= 1e6:
        return f"{value / 1e6:g} M"
    return f"{value / 1e3:g} k" if abs(value) >= 1e4 else f"{value:,.4g}"


def _line(x1: float, y1: float, x2: float, y2: float, kind: str, colour: str, more: str = "") -> str:
    place = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line class="plot-{kind}" {place} stroke="{colour}" {more}/>'


def _text(x: float, y: float, words: str, anchor: str) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text class="plot-words" {place} fill="#333">{escape(words)}</text>'
