"""Which layers to keep in float so that no more is lost than the user allows: as few as can be found."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tinyml.errors import ConfigError
from tinyml.quantize.calibrate import Progress
from tinyml.quantize.layers import FloatLayer
from tinyml.quantize.measure import Outcome
from tinyml.quantize.request import Goal

Trial = Callable[[Sequence[FloatLayer]], Outcome]
"""Quantise all layers but these, and measure."""


def reached(goal: Goal, outcome: Outcome) -> bool:
    if goal.points is not None:
        return outcome.lost_points <= goal.points + 1e-9
    return outcome.decibels >= (goal.decibels or 0.0)


def smallest_set(
    layers: Sequence[FloatLayer], already: Sequence[FloatLayer], goal: Goal, trial: Trial, progress: Progress
) -> list[FloatLayer]:
    """Layers to keep beside those of ``already``.

    First each layer is quantised alone: the noise it makes by itself is its rank. Then the shortest
    prefix of that ranking that reaches the goal is found by halving, and last each layer of it goes
    back to int8 if the goal allows. No layer of the result can be left out.
    """
    free = [layer for layer in layers if layer not in already]
    if reached(goal, trial(already)):
        return []
    own: list[tuple[float, int]] = []
    for index, layer in enumerate(free):
        others = [other for other in layers if other is not layer]
        own.append((trial(others).decibels, index))
        progress("layers one by one", index + 1, len(free))
    ranked = [free[index] for _, index in sorted(own)]
    low, high = 0, len(ranked)
    if not reached(goal, trial([*already, *ranked])):
        raise ConfigError(
            f"the goal ({goal}) is not reached even with every layer in float",
            "allow more, or check the labels",
        )
    while high - low > 1:
        middle = (low + high) // 2
        if reached(goal, trial([*already, *ranked[:middle]])):
            high = middle
        else:
            low = middle
    kept = ranked[:high]
    for layer in list(reversed(kept)):
        fewer = [other for other in kept if other is not layer]
        progress("back to int8", len(ranked) - len(fewer), len(ranked))
        if reached(goal, trial([*already, *fewer])):
            kept = fewer
    return [layer for layer in layers if layer in kept]
