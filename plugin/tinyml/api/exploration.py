# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The result of exploring a model: points, which of them are best, and which lines select them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

from tinyml.api import pareto
from tinyml.api.choices import Memory
from tinyml.api.printed_tables import table
from tinyml.base.lazy_dataclass import dataclass
from tinyml.cost import cycles as cycle_models
from tinyml.settings.optimize import BALANCED
from tinyml.settings.quantize_request import Request

HEAD = ("", "RAM", "flash", "instructions", "cycles", "ms", "quality", "fits", "tinyml.yaml")

ALLOWED_LOSS = 1.0
"""Points of accuracy (without labels: per cent of decisions) that a suggested model may lose."""

QUANTIZED = ("int8", "int16", "mixed", "int4")


@dataclass(frozen=True)
class Board:
    """What a model is built for. What is not known is None."""

    name: str  # of the board, or of the core
    target: str
    ram_bytes: int | None = None
    flash_bytes: int | None = None
    mhz: float | None = None


@dataclass(frozen=True)
class Point:
    """One way to build a model, and what it costs."""

    optimize: str  # the setting
    kernels: str  # the setting
    weights: str  # flash or ram
    precision: str  # float, int8, int16, mixed or int4; empty for the model as it is
    ram_bytes: int = 0  # arena, state, and weights if they are there
    flash_bytes: int = 0  # weights, tables and code
    weights_bytes: int = 0  # constants
    instructions: int | None = None  # of one run
    cycles: int | None = None  # of one run, estimated
    quality: str = ""  # what quantising it lost
    decibels: float | None = None  # signal-to-noise ratio of the outputs, if it was quantised
    accuracy: float | None = None  # share of right decisions on the calibration data, if that has labels
    lost_points: float = 0.0  # of accuracy; without labels, per cent of decisions that changed
    fits: bool = True  # whether the board has the memory, if there is a board
    best: bool = False  # no other point of the same precision is better in one respect and no worse in others
    same_as: str = ""  # the settings of an earlier point with the same costs
    quantize: Request | None = field(default=None, repr=False)  # the settings of `quantize:`
    instructions_error: float | None = None  # of an estimate, as a part of it; 0 if they were counted

    @property
    def instructions_text(self) -> str:
        """With the error bar, if they are estimated."""
        if self.instructions is None:
            return ""
        error = self.instructions_error
        bar = " ± ?" if error is None else f" ± {error:.0%}" if error else ""
        return f"{self.instructions:,}{bar}"

    @property
    def settings(self) -> str:
        """The lines of tinyml.yaml that select it, as one line; empty for the default."""
        parts = [f"optimize: {self.optimize}"] if self.optimize != BALANCED.name else []
        parts += [f"kernels: {self.kernels}"] if self.kernels != "auto" else []
        parts += [f"weights: {self.weights}"] if self.weights != "flash" else []
        if self.precision in QUANTIZED and self.quantize is not None:
            names = ", ".join(f'"{name}"' for name in self.quantize.int16)
            more = f", int16: [{names}]" if self.quantize.int16 else ""
            more += f", weights: {self.quantize.weights}" if self.quantize.weights != "int8" else ""
            parts.append(f"quantize: {{calibration: {self.quantize.calibration.name}{more}}}")
        return ", ".join(parts)

    @property
    def yaml(self) -> str:
        """What to write under the model in tinyml.yaml, one setting per line."""
        given = replace(self, quantize=None).settings
        lines = given.split(", ") if given else []
        if self.precision in QUANTIZED and self.quantize is not None:
            lines.append(self.settings[self.settings.index("quantize: ") :])
        return "\n".join(f"    {line}" for line in lines)

    @property
    def quality_text(self) -> str:
        """Decibels and accuracy, or per cent of decisions as in float."""
        parts = [f"{self.decibels:.1f} dB"] if self.decibels is not None else []
        if self.accuracy is not None:
            parts.append(f"{100 * self.accuracy:.2f} %")
        elif self.decibels is not None:
            parts.append(f"{100 - self.lost_points:.1f} % as float")
        return ", ".join(parts)

    def costs(self) -> tuple[float, ...]:
        """RAM, flash, and cycles or instructions; infinite where they are not known."""
        time = self.cycles if self.cycles is not None else self.instructions
        return (self.ram_bytes, self.flash_bytes, math.inf if time is None else time)

    def with_weights_in_ram(self) -> Point:
        """As estimated: without wait states RAM is not faster, so that only a measurement can favour it."""
        return replace(self, weights="ram", ram_bytes=self.ram_bytes + self.weights_bytes)

    def as_json(self) -> dict[str, Any]:
        """Plain data, for files."""
        return {
            "optimize": self.optimize,
            "kernels": self.kernels,
            "weights": self.weights,
            "precision": self.precision,
            "ram_bytes": self.ram_bytes,
            "flash_bytes": self.flash_bytes,
            "instructions": self.instructions,
            "instructions_error": self.instructions_error,
            "cycles": self.cycles,
            "quality": self.quality,
            "decibels": self.decibels,
            "accuracy": self.accuracy,
            "lost_points": self.lost_points,
            "fits": self.fits,
            "best": self.best,
            "same_as": self.same_as,
            "tinyml_yaml": self.settings,
        }


@dataclass(frozen=True, repr=False)
class Exploration:
    """All points of a model on a board."""

    model: str  # its prefix in C
    place: Board  # board or core, with its memory
    points: tuple[Point, ...]  # all of them
    failures: Mapping[str, str]  # why a point cannot be built, by its settings
    how: str  # estimated, counted on a machine, or measured on a board

    def sorted_out(self) -> Exploration:
        """With what fits the board, what equals an earlier point, and what is best, worked out."""
        seen: dict[tuple[object, ...], str] = {}
        points = []
        for point in self.points:
            first = seen.setdefault((point.precision, point.costs()), point.settings or "the default")
            own = point.settings or "the default"
            points.append(replace(point, fits=self._fits(point), same_as="" if first == own else first))
        rivals = [point for point in points if not point.same_as]
        return replace(self, points=tuple(replace(point, best=_is_best(point, rivals)) for point in points))

    def _fits(self, point: Point) -> bool:
        ram, flash = self.place.ram_bytes, self.place.flash_bytes
        return (ram is None or point.ram_bytes <= ram) and (flash is None or point.flash_bytes <= flash)

    @property
    def front(self) -> tuple[Point, ...]:
        """The best points: those to choose from, fastest first."""
        found = [point for point in self.points if point.best]
        return tuple(sorted(found, key=lambda point: (point.precision, point.costs()[2], point.costs())))

    @property
    def best_settings(self) -> frozenset[str]:
        """The settings of the best points."""
        return frozenset(point.settings for point in self.front)

    @property
    def suggested(self) -> Point | None:
        """Of the best points that fit, that with the smallest product of RAM, flash and cycles.

        A quantised model that loses more than a point is suggested only if nothing better fits.
        """
        fitting = [point for point in self.front if point.fits]
        kept = [point for point in fitting if point.lost_points <= ALLOWED_LOSS] or fitting
        return min(kept, key=lambda point: math.prod(max(cost, 1) for cost in point.costs()), default=None)

    def milliseconds(self, point: Point) -> float | None:
        """One run of a point at the clock of the board; None where it is not known.

        :param point: one of ``points``
        """
        if point.cycles is None or self.place.mhz is None:
            return None
        return cycle_models.milliseconds(point.cycles, self.place.mhz)

    def rows(self) -> list[tuple[str, ...]]:
        """The front as text, by the columns of HEAD."""
        return [
            (
                point.precision,
                f"{point.ram_bytes:,}",
                f"{point.flash_bytes:,}",
                point.instructions_text,
                "" if point.cycles is None else f"{point.cycles:,}",
                "" if (time := self.milliseconds(point)) is None else f"{time:.2f}",
                point.quality_text,
                "yes" if point.fits else "no",
                ("* " if point is self.suggested else "") + (point.settings or "(the default)"),
            )
            for point in self.front
        ]

    def as_json(self) -> dict[str, Any]:
        """Plain data, for files."""
        suggested = self.suggested
        return {
            "model": self.model,
            "board": self.place.name,
            "target": self.place.target,
            "ram_bytes": self.place.ram_bytes,
            "flash_bytes": self.place.flash_bytes,
            "mhz": self.place.mhz,
            "how": self.how,
            "suggested": suggested.settings if suggested else None,
            "points": [point.as_json() for point in self.points],
            "failures": dict(self.failures),
        }

    def plot(self, against: Memory = "ram") -> str:
        """Cycles over RAM, or over flash, as SVG.

        :param against: the memory
        """
        points = [
            pareto.Point(
                point.ram_bytes if against == "ram" else point.flash_bytes,
                point.costs()[2],
                f"{point.precision} {point.settings or 'the default'}".strip(),
                point.best,
            )
            for point in self.points
            if not point.same_as and math.isfinite(point.costs()[2])
        ]
        limit = self.place.ram_bytes if against == "ram" else self.place.flash_bytes
        timed = any(point.cycles is not None for point in self.points)
        title = f"bytes of {'RAM' if against == 'ram' else 'flash'}"
        # A point can be on the front for its flash although RAM and cycles are no better: no line joins them.
        return pareto.scatter(points, title, "cycles" if timed else "instructions", limit, joined=False)

    def __repr__(self) -> str:
        words = f"{len(self.points)} points on {self.place.name}, {len(self.front)} of them best"
        chosen = self.suggested
        line = (
            f"; suggested: {chosen.settings or 'the default'}, {chosen.ram_bytes:,} bytes of RAM"
            if chosen
            else ""
        )
        return f"<Exploration of {self.model}: {words}{line}>"

    def _repr_html_(self) -> str:
        return self.plot() + table(self.rows(), HEAD)


def _is_best(point: Point, rivals: list[Point]) -> bool:
    if point.same_as:
        return False
    costs = point.costs()
    return not any(
        other.precision == point.precision
        and other.costs() != costs
        and all(a <= b for a, b in zip(other.costs(), costs, strict=True))
        for other in rivals
    )
