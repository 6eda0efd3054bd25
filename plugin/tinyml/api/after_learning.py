# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What examples bring on a test set: the accuracy before and after a model has learnt them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tinyml.adapt.errors import NoRun
from tinyml.api.data import check_data
from tinyml.base.errors import ConfigError

if TYPE_CHECKING:
    from tinyml.api.compiled import CompiledModel
    from tinyml.settings.quantize_request import Request

MOST_ROUNDS = 1000


@dataclass(frozen=True)
class Learnt:
    """Accuracies on the test set, computed in numpy with the bits of a device."""

    kind: str
    examples: int
    rounds: int
    before: float | None  # None: nothing can be decided before
    accuracy: float

    def __str__(self) -> str:
        was = "" if self.before is None else f"{100 * self.before:.2f} % before, "
        often = f", {self.rounds} times each" if self.rounds > 1 else ""
        return (
            f"{was}{100 * self.accuracy:.2f} % after learning {self.examples:,} examples{often} ({self.kind})"
        )


def after_learning(compiled: CompiledModel, examples: Request, test: Request, rounds: int = 1) -> Learnt:
    """Learn the examples in their order, ``rounds`` times, and decide about the test set."""
    if not 1 <= rounds <= MOST_ROUNDS:
        raise ConfigError(f"{rounds} rounds over the examples", f"1 to {MOST_ROUNDS}")
    check_data(examples.calibration)
    adapted = compiled.adapt()
    try:
        before = adapted.accuracy_of(test)
    except NoRun:  # there is no class, or no normal, yet
        before = None
    count = 0
    for _ in range(rounds):
        count = adapted.learn_from(examples)
    return Learnt(adapted.kind, count, rounds, before, adapted.accuracy_of(test))
