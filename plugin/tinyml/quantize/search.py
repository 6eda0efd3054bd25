# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Finds the fewest layers that need more than int8 to stay within the loss that the user allows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tinyml.base.errors import ConfigError
from tinyml.base.progress import Progress
from tinyml.quantize.layers import FloatLayer
from tinyml.quantize.measure import Outcome
from tinyml.quantize.precision import Precision
from tinyml.settings.quantize_request import Goal

Trial = Callable[[Precision], Outcome]
"""Quantise with these layers in higher precision, and measure."""

Layers = tuple[FloatLayer, ...]


def reached(goal: Goal, outcome: Outcome) -> bool:
    if goal.points is not None:
        return outcome.lost_points <= goal.points + 1e-9
    return outcome.decibels >= (goal.decibels or 0.0)


def smallest_set(
    layers: Sequence[FloatLayer],
    widened: Sequence[FloatLayer],
    already: Precision,
    goal: Goal,
    trial: Trial,
    progress: Progress,
) -> Precision:
    """Layers in higher precision, in addition to ``already``; ``widened`` are those that support int16.

    First each layer is quantised alone, which ranks the layers by the noise they add. If int16 everywhere
    reaches the goal, no layer needs float. Otherwise layers stay in float, or int16 where that suffices.
    """

    def good(floats: Layers, int16: Layers) -> bool:
        return reached(goal, trial(Precision((*already.floats, *floats), (*already.int16, *int16))))

    if good((), ()):
        return already
    taken = (*already.floats, *already.int16)
    ranked = _ranked([layer for layer in layers if layer not in taken], layers, trial, progress)
    wide = tuple(layer for layer in ranked if layer in widened)
    if wide and good((), wide):
        int16 = _fewest(wide, lambda some: good((), some), progress)
        return _in_order(layers, already, (), int16)
    if not good(ranked, ()):
        raise ConfigError(
            f"the goal ({goal}) is not reached even with every layer in float",
            "allow more, or check the labels",
        )
    floats, int16 = _fewest(ranked, lambda some: good(some, ()), progress), ()
    for layer in (layer for layer in reversed(floats) if layer in widened):
        fewer = tuple(other for other in floats if other is not layer)
        if good(fewer, (*int16, layer)):
            floats, int16 = fewer, (*int16, layer)
    return _in_order(layers, already, floats, int16)


def _ranked(
    free: Sequence[FloatLayer], layers: Sequence[FloatLayer], trial: Trial, progress: Progress
) -> Layers:
    """The worst first: the one that adds most noise as the only int8 layer of a float model."""
    own: list[tuple[float, int]] = []
    for index, layer in enumerate(free):
        others = tuple(other for other in layers if other is not layer)
        own.append((trial(Precision(others)).decibels, index))
        progress("layers one by one", index + 1, len(free))
    return tuple(free[index] for _, index in sorted(own))


def _fewest(ranked: Layers, good: Callable[[Layers], bool], progress: Progress) -> Layers:
    """The shortest sufficient prefix of the ranking, by bisection, without layers that are not needed."""
    low, high = 0, len(ranked)
    while high - low > 1:
        middle = (low + high) // 2
        if good(ranked[:middle]):
            high = middle
        else:
            low = middle
    kept = ranked[:high]
    for layer in reversed(kept):
        fewer = tuple(other for other in kept if other is not layer)
        progress("back to int8", len(ranked) - len(fewer), len(ranked))
        if good(fewer):
            kept = fewer
    return kept


def _in_order(layers: Sequence[FloatLayer], already: Precision, floats: Layers, int16: Layers) -> Precision:
    """In the order of the model, as in the report."""
    return Precision(
        (*already.floats, *(layer for layer in layers if layer in floats)),
        (*already.int16, *(layer for layer in layers if layer in int16)),
    )
