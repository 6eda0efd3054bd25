# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Finds layers that need more than int8 to stay within the loss that the user allows, in several ways.

Fewer layers are not always cheaper: values are converted wherever types meet, and float takes fewer
instructions than int16 on some cores. So every way that reaches the goal is kept, and its cost decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tinyml.base.errors import GoalNotReachedError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.base.progress import Progress
from tinyml.quantize.layers import FloatLayer
from tinyml.quantize.measure import Outcome
from tinyml.quantize.precision import Precision
from tinyml.settings.quantize_request import Goal

Trial = Callable[[Precision], Outcome]
"""Quantise with these layers in higher precision, and measure."""

Layers = tuple[FloatLayer, ...]


@dataclass(frozen=True)
class Way:
    """A choice of types that reaches the goal."""

    name: str
    precision: Precision
    decibels: float


def reached(goal: Goal, outcome: Outcome) -> bool:
    if goal.points is not None:
        return outcome.lost_points <= goal.points + 1e-9
    return outcome.decibels >= (goal.decibels or 0.0)


def ways(
    layers: Sequence[FloatLayer],
    widened: Sequence[FloatLayer],
    already: Precision,
    goal: Goal,
    trial: Trial,
    progress: Progress,
) -> list[Way]:
    """Choices in addition to ``already``, those with the fewest layers first; ``widened`` support int16.

    If int8 reaches the goal, it is the only one. Otherwise each layer is quantised alone, which ranks the
    layers by the noise they add.
    """
    return _Search(layers, widened, already, goal, trial, progress).ways()


class _Search:
    def __init__(
        self,
        layers: Sequence[FloatLayer],
        widened: Sequence[FloatLayer],
        already: Precision,
        goal: Goal,
        trial: Trial,
        progress: Progress,
    ) -> None:
        self.layers, self.widened, self.already = layers, widened, already
        self.goal, self.trial, self.progress = goal, trial, progress
        self.outcomes: dict[tuple[frozenset[str], frozenset[str]], Outcome] = {}

    def outcome(self, floats: Layers, int16: Layers) -> Outcome:
        key = frozenset(layer.name for layer in floats), frozenset(layer.name for layer in int16)
        if key not in self.outcomes:
            self.outcomes[key] = self.trial(self.precision(floats, int16))
        return self.outcomes[key]

    def good(self, floats: Layers, int16: Layers = ()) -> bool:
        return reached(self.goal, self.outcome(floats, int16))

    def ways(self) -> list[Way]:
        if self.good(()):
            return [self.way("int8", ())]
        taken = (*self.already.floats, *self.already.int16)
        free = tuple(layer for layer in self.layers if layer not in taken)
        ranked = self.ranked(free)
        found = []
        wide = tuple(layer for layer in ranked if layer in self.widened)
        if wide and self.good((), wide):
            fewest = self.fewest(wide, lambda some: self.good((), some))
            found.append(self.way("int16 in the fewest layers", (), fewest))
            found.append(self.way("int16 wherever it can be", (), wide))
        if not self.good(ranked):
            if found:
                return found
            raise GoalNotReachedError(
                f"the goal ({self.goal}) is not reached even with every layer in float",
                "allow more, or check the labels",
            )
        floats = self.fewest(ranked, self.good)
        found.append(self.way("float in the fewest layers", floats))
        fewer, int16 = self.narrowed(floats)
        if int16:
            found.append(self.way("float and int16 in the fewest layers", fewer, int16))
        found.append(self.way("float everywhere", ranked))
        for name, ordered in (("float in the first layers", free), ("float in the last layers", free[::-1])):
            found.append(self.way(name, self.prefix(ordered, self.good)))
        different: dict[Precision, Way] = {}
        for way in found:
            different.setdefault(way.precision, way)
        return [*different.values()]

    def way(self, name: str, floats: Layers, int16: Layers = ()) -> Way:
        return Way(name, self.precision(floats, int16), self.outcome(floats, int16).decibels)

    def precision(self, floats: Layers, int16: Layers) -> Precision:
        """In the order of the model, as in the report."""
        return Precision(
            (*self.already.floats, *(layer for layer in self.layers if layer in floats)),
            (*self.already.int16, *(layer for layer in self.layers if layer in int16)),
        )

    def ranked(self, free: Layers) -> Layers:
        """The worst first: the one that adds most noise as the only int8 layer of a float model."""
        own: list[tuple[float, int]] = []
        for index, layer in enumerate(free):
            others = tuple(other for other in self.layers if other is not layer)
            own.append((self.trial(Precision(others)).decibels, index))
            self.progress("layers one by one", index + 1, len(free))
        return tuple(free[index] for _, index in sorted(own))

    def fewest(self, ranked: Layers, good: Callable[[Layers], bool]) -> Layers:
        """The shortest sufficient prefix of the ranking, without layers that are not needed."""
        kept = self.prefix(ranked, good)
        for layer in reversed(kept):
            fewer = tuple(other for other in kept if other is not layer)
            self.progress("back to int8", len(ranked) - len(fewer), len(ranked))
            if good(fewer):
                kept = fewer
        return kept

    def prefix(self, ordered: Layers, good: Callable[[Layers], bool]) -> Layers:
        """By bisection; all of them are sufficient."""
        low, high = 0, len(ordered)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if good(ordered[:middle]) else (middle, high)
        return ordered[:high]

    def narrowed(self, floats: Layers) -> tuple[Layers, Layers]:
        """int16 instead of float where that suffices."""
        int16: Layers = ()
        for layer in (layer for layer in reversed(floats) if layer in self.widened):
            fewer = tuple(other for other in floats if other is not layer)
            if self.good(fewer, (*int16, layer)):
                floats, int16 = fewer, (*int16, layer)
        return floats, int16
