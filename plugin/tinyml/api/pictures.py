# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Pictures of results for notebooks, as SVG without any dependencies: bars, and a matrix of confusions."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

STYLE = """<style>@media (prefers-color-scheme: dark) {
.picture-words { fill: #c5cdd6; } .picture-cell { stroke: #333b45; } }</style>"""
"""Colours for dark screens; the attributes of the elements are those for light ones and for paper."""

ROW, LABEL, BAR = 22, 190, 330
CELL, MOST_CLASSES = 34, 32
FULL, GOOD, POOR = 40.0, 30.0, 20.0  # decibels: a long bar, hardly to be told from float, clearly worse


def decibel_bars(layers: Sequence[tuple[str, float]]) -> str:
    """The signal-to-noise ratio after each layer; empty without one. Red bars are below 20 dB."""
    if not layers:
        return ""
    most = max(max(value for _, value in layers), FULL)
    parts = []
    for number, (name, value) in enumerate(layers):
        y = ROW * number
        colour = "#0f766e" if value >= GOOD else "#d97706" if value >= POOR else "#c33"
        width = BAR * max(value, 0.0) / most
        parts += [
            _words(LABEL - 8, y + 15, _short(name), "end", name),
            f'<rect x="{LABEL}" y="{y + 4}" width="{width:.1f}" height="14" rx="2" fill="{colour}"/>',
            _words(LABEL + width + 6, y + 15, f"{value:.1f} dB", "start"),
        ]
    return _svg(LABEL + BAR + 80, ROW * len(layers) + 6, "Signal-to-noise ratio after each layer", parts)


def confusion_matrix(names: Sequence[str], counts: Sequence[Sequence[int]]) -> str:
    """A row for each right class, a column for each decision, darker for more; empty if too many."""
    if not 1 < len(names) <= MOST_CLASSES:
        return ""
    left, top = 110, 70
    parts = [_words(left, 14, "decided", "start"), _words(left - 8, top - 8, "right", "end")]
    for row, (name, line) in enumerate(zip(names, counts, strict=True)):
        y, total = top + CELL * row, max(sum(line), 1)
        parts.append(_words(left - 8, y + CELL / 2 + 4, _short(name, 14), "end", name))
        place = f"translate({left + CELL * row + CELL / 2 + 4:g} {top - 8}) rotate(-50)"
        parts.append(
            f'<text class="picture-words" fill="#333" transform="{place}">{escape(_short(name, 10))}</text>'
        )
        for column, count in enumerate(line):
            colour = "#0f766e" if row == column else "#c33"
            x, share = left + CELL * column, count / total
            title = f"{count} of {sum(line)}: {name} taken for {names[column]}"
            parts.append(
                f'<rect class="picture-cell" x="{x}" y="{y}" width="{CELL}" height="{CELL}" fill="{colour}" '
                f'fill-opacity="{0.85 * share:.3f}" stroke="#ddd"><title>{escape(title)}</title></rect>'
            )
            if count:
                fill = 'fill="#fff"' if share > 0.6 else 'class="picture-words" fill="#333"'
                middle = f'x="{x + CELL / 2:g}" y="{y + CELL / 2 + 4:g}" text-anchor="middle"'
                parts.append(f"<text {middle} {fill}>{count}</text>")
    size = CELL * len(names)
    return _svg(left + size + 50, top + size + 6, "Right classes and decisions", parts)


def _svg(width: float, height: float, title: str, parts: Sequence[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        'style="max-width:100%;height:auto" role="img" font-family="sans-serif" font-size="12">'
    )
    return "\n".join([head, f"<title>{escape(title)}</title>", STYLE, *parts, "</svg>"])


def _words(x: float, y: float, words: str, anchor: str, title: str = "") -> str:
    tip = f"<title>{escape(title)}</title>" if title else ""
    place = f'x="{x:g}" y="{y:g}" text-anchor="{anchor}"'
    return f'<text class="picture-words" {place} fill="#333">{tip}{escape(words)}</text>'


def _short(name: str, most: int = 26) -> str:
    """The end of a long name, which tells layers apart."""
    return name if len(name) <= most else f"…{name[1 - most :]}"
