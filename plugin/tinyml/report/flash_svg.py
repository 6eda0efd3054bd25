# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Flash as a picture: an area for each layer's constants and for each part of the code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import TypeAlias

from tinyml.base.lazy_dataclass import dataclass
from tinyml.report.facts import Report
from tinyml.report.palette import color

BROAD, NARROW = (1000.0, 300.0), (420.0, 300.0)
"""Width and height on a screen, and on a phone, where words of the first would be too small."""
Place: TypeAlias = tuple[float, float, float, float]


@dataclass(frozen=True)
class Part:
    """Something in flash; ``step``: the layer it belongs to."""

    name: str
    bytes: int
    fill: str
    step: int | None = None

    @property
    def kind(self) -> str:
        """What it is grouped with: the layers of one colour, or all code."""
        return self.fill


def parts_of(report: Report) -> list[Part]:
    """What takes flash, the largest first. The layers' constants, and the code if it was measured."""
    found = [
        Part(f"{layer.step} {layer.label}", layer.weights_bytes, color(layer.label), layer.step)
        for layer in report.layers
    ]
    facts = report.measured
    if facts:
        rest = facts.constants_bytes - sum(part.bytes for part in found)
        found += [
            Part("kernels", facts.kernels_bytes, "var(--code)"),
            Part("code of this model", facts.glue_bytes, "var(--code)"),
            Part("C library", facts.library_bytes, "var(--code)"),
            Part("other constants", max(rest, 0), "var(--input)"),
        ]
    return sorted((part for part in found if part.bytes), key=lambda part: -part.bytes)


def flash_svgs(report: Report) -> str:
    """The picture for a screen and the one for a phone; the style sheet shows one of them."""
    return "\n".join((flash_svg(report), flash_svg(report, NARROW))).strip()


def flash_svg(report: Report, size: tuple[float, float] = BROAD) -> str:
    """A treemap; empty if nothing is known to be in flash."""
    parts = parts_of(report)
    if not parts:
        return ""
    total = sum(part.bytes for part in parts)
    kind = "narrow" if size == NARROW else "broad"
    drawn = [
        f'<svg viewBox="0 0 {size[0]:.0f} {size[1]:.0f}" class="flash {kind}" role="group" '
        f'aria-label="Flash: {total:,} bytes in {len(parts)} parts">'
    ]
    for part, (x, y, width, height) in _grouped(parts, size):
        share = f"{part.name}: {part.bytes:,} bytes, {part.bytes / total:.1%}"
        layer = f' data-layer="{part.step}" role="button" tabindex="-1"' if part.step is not None else ""
        drawn.append(
            f'<g class="part"{layer} aria-label="{escape(share)}"><title>{escape(share)}</title>'
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
            f'style="fill:{part.fill}"/>{_label(part, x, y, width, height)}</g>'
        )
    return "\n".join([*drawn, "</svg>"])


def _grouped(parts: Sequence[Part], size: tuple[float, float]) -> Iterator[tuple[Part, Place]]:
    """The parts with their places: those of one kind lie together, the kind with most bytes first."""
    kinds: dict[str, list[Part]] = {}
    for part in parts:
        kinds.setdefault(part.kind, []).append(part)
    groups = sorted(kinds.values(), key=lambda group: -sum(part.bytes for part in group))
    places = squarified([sum(part.bytes for part in group) for group in groups], *size)
    for group, (left, top, width, height) in zip(groups, places, strict=True):
        inside = squarified([part.bytes for part in group], width, height)
        for part, (x, y, across, down) in zip(group, inside, strict=True):
            yield part, (left + x, top + y, across, down)


def _label(part: Part, x: float, y: float, width: float, height: float) -> str:
    short = str(part.step) if part.step is not None else ""
    name = part.name if width >= 7 * len(part.name) + 8 else short
    if height < 18 or not name or width < 7 * len(name) + 8:
        return ""
    text = f'<text x="{x + 6:.1f}" y="{y + 15:.1f}" class="inside">{escape(name)}</text>'
    size = f"{part.bytes:,}"
    if height > 34 and width > 7 * len(size) + 8:
        text += f'<text x="{x + 6:.1f}" y="{y + 30:.1f}" class="inside">{size}</text>'
    return text


def squarified(sizes: Sequence[float], width: float, height: float) -> Iterator[Place]:
    """Rectangles with areas in proportion to ``sizes`` (largest first), each row as square as possible."""
    scale = width * height / (sum(sizes) or 1.0)
    areas = [size * scale for size in sizes]
    x = y = 0.0
    while areas:
        side = min(width, height)
        count = 1
        while count < len(areas) and _worst(areas[: count + 1], side) <= _worst(areas[:count], side):
            count += 1
        row, areas = areas[:count], areas[count:]
        thick = sum(row) / side if side else 0.0
        at = 0.0
        for area in row:
            length = area / thick if thick else 0.0
            yield (x, y + at, thick, length) if height <= width else (x + at, y, length, thick)
            at += length
        if height <= width:
            x, width = x + thick, width - thick
        else:
            y, height = y + thick, height - thick


def _worst(row: Sequence[float], side: float) -> float:
    """The largest ratio of the sides in a row along ``side``."""
    total = sum(row)
    return max(max(side * side * area / total**2, total**2 / (side * side * area)) for area in row)
