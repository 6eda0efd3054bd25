# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Limits for the figures of a period: what a test in CI, or a person, wants to be told about."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping

from tinyml.base.errors import ConfigError, did_you_mean
from tinyml.base.lazy_dataclass import dataclass
from tinyml.watch.figures import Figures


@dataclass(frozen=True)
class Kind:
    """A figure that can have a limit."""

    about: str
    at_least: bool  # the limit is the smallest allowed value
    of: Callable[[Figures], float | None]


def _decided(name: str) -> Callable[[Figures], float | None]:
    return lambda figures: getattr(figures.decided, name) if figures.decided else None


KINDS: Mapping[str, Kind] = {
    "drift": Kind("drift of any input or channel, 0 to 1", False, lambda figures: figures.drift),
    "outside": Kind(
        "share of elements at the ends of the range or outside it",
        False,
        lambda figures: max((part.outside for part in figures.inputs), default=None),
    ),
    "score": Kind("mean score of the decisions", True, _decided("top")),
    "margin": Kind("mean margin between the first two scores", True, _decided("margin")),
    "entropy": Kind("mean entropy, in bits", False, _decided("entropy")),
    "switches": Kind("switches between classes, per run", False, _decided("switch_rate")),
    "errors": Kind("runs that failed", False, lambda figures: float(figures.errors)),
}


@dataclass(frozen=True)
class Limit:
    """A figure and its smallest or largest allowed value."""

    name: str
    value: float

    def __str__(self) -> str:
        return f"{self.name} {'at least' if KINDS[self.name].at_least else 'at most'} {self.value:g}"


def parse_limits(texts: Iterable[str]) -> tuple[Limit, ...]:
    """``drift=0.05``."""
    found = []
    for text in texts:
        name, equals, number = (part.strip() for part in text.partition("="))
        if name not in KINDS:
            raise ConfigError(
                f"there is no figure {name!r} to limit{did_you_mean(name, KINDS)}",
                ", ".join(f"{key} ({kind.about})" for key, kind in KINDS.items()),
            )
        try:
            value = float(number)
        except ValueError:
            value = math.nan
        if not equals or not math.isfinite(value):
            raise ConfigError(f"{text!r} is not a limit", f"{name}=0.05")
        found.append(Limit(name, value))
    return tuple(found)


def broken(limits: Iterable[Limit], figures: Figures) -> Iterator[str]:
    """What is wrong with a period, in words. A figure that there is not is wrong, too."""
    for limit in limits:
        kind = KINDS[limit.name]
        value = kind.of(figures)
        if value is None:
            why = (
                "nothing was counted" if not figures.runs else "the model has no reference or no such figure"
            )
            yield f"{limit.name} is not known: {why}"
        elif value < limit.value if kind.at_least else value > limit.value:
            yield f"{limit.name} is {value:.4g}, allowed is {limit}"
