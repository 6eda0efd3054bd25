# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What a watched model saw and decided, period by period, as one self-contained page."""

from __future__ import annotations

from collections.abc import Sequence

from tinyml.base.errors import ConfigError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.base.templates import environment
from tinyml.watch.figures import ClassFigures, Figures, ValueFigures
from tinyml.watch.limits import KINDS, Limit

WIDTH, HEIGHT = 640, 120
LEFT, TOP = 56, 12


@dataclass(frozen=True)
class Line:
    """A figure over all periods, drawn to scale."""

    title: str
    points: tuple[tuple[float, float, str], ...]  # x, y, text
    ticks: tuple[tuple[float, str], ...]  # y, text
    limit: float | None  # y
    limit_text: str

    @property
    def path(self) -> str:
        return " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in self.points)


@dataclass(frozen=True)
class Bar:
    """A bin: what was counted and what the reference has."""

    label: str
    counted: float
    expected: float | None
    scale: float

    @property
    def counted_height(self) -> float:
        return 100 * self.counted / self.scale

    @property
    def expected_height(self) -> float:
        return 100 * (self.expected or 0.0) / self.scale


def watch_page(periods: Sequence[Figures], limits: Sequence[Limit] = ()) -> str:
    """The page; an error without any period."""
    if not periods:
        raise ConfigError("there is nothing to show: no period was read")
    last = periods[-1]
    allowed = {limit.name: limit for limit in limits}
    lines = [
        line
        for name, kind in KINDS.items()
        if name != "errors" and (line := _line(name, kind.about, periods, allowed.get(name)))
    ]
    templates = environment("report", escaped=True)
    templates.filters["number"] = lambda value: f"{value:,}"
    return templates.get_template("watch.html.j2").render(
        first=periods[0],
        last=last,
        periods=periods,
        runs=sum(period.runs for period in periods),
        lines=lines,
        histograms=[(part, _bars(part)) for part in _values(last)],
        decided=last.decided,
        before=periods[0].decided if len(periods) > 1 else None,
        shares=_shares(last.decided),
        width=LEFT + WIDTH + 8,
        height=TOP + HEIGHT + 22,
        left=LEFT,
        right=LEFT + WIDTH,
        bottom=TOP + HEIGHT,
    )


def _values(figures: Figures) -> list[ValueFigures]:
    parts = (*figures.inputs, *figures.channels, *figures.outputs)
    return [part for part in parts if isinstance(part, ValueFigures) and part.shares]


def _line(name: str, about: str, periods: Sequence[Figures], limit: Limit | None) -> Line | None:
    values = [(index, KINDS[name].of(period)) for index, period in enumerate(periods)]
    known = [(index, value) for index, value in values if value is not None]
    if not known:
        return None
    highest = max([value for _, value in known] + ([limit.value] if limit else [])) or 1.0
    step = WIDTH / max(len(periods) - 1, 1)

    def y(value: float) -> float:
        return TOP + HEIGHT * (1 - value / highest)

    return Line(
        f"{name}: {about}",
        tuple((LEFT + step * i, y(value), f"period {i + 1}: {value:.4g}") for i, value in known),
        tuple((y(value), f"{value:.3g}") for value in (0.0, highest / 2, highest)),
        y(limit.value) if limit else None,
        str(limit) if limit else "",
    )


def _bars(part: ValueFigures) -> list[Bar]:
    scale = max(*part.shares, *part.expected, 1e-9)
    edges = [f"{edge:g}" for edge in part.edges]
    labels = [f"< {edges[0]}", *(f"{edge} ..." for edge in edges[:-1]), f">= {edges[-1]}"]
    expected: Sequence[float | None] = part.expected or [None] * len(part.shares)
    return [
        Bar(label, share, wanted, scale)
        for label, share, wanted in zip(labels, part.shares, expected, strict=True)
    ]


def _shares(decided: ClassFigures | None) -> list[float]:
    total = sum(decided.decisions) if decided else 0
    return [count / total for count in decided.decisions] if decided and total else []
