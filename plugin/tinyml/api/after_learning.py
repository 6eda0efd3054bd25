# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What examples bring on a test set: the accuracy before and after a model has learnt them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tinyml.adapt.errors import Full, NoRun
from tinyml.api.adapting import NoLabels
from tinyml.api.data import check_data
from tinyml.base.errors import ConfigError
from tinyml.base.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from tinyml.api.adapting import Adapted
    from tinyml.api.compiled import CompiledModel
    from tinyml.settings.quantize_request import Request

MOST_ROUNDS = 1000


@dataclass(frozen=True)
class Learnt:
    """Figures of the test set, computed in numpy with the bits of a device."""

    kind: str  # what learns
    examples: int  # that were learnt
    rounds: int  # how often each was learnt
    before: float | None  # None: nothing can be decided before
    accuracy: float | None  # None: of a regression
    error: float | None = None  # the mean absolute error of a regression; ``before`` is one, too

    def __str__(self) -> str:
        what, figure = ("accuracy", _percent) if self.error is None else ("mean absolute error", _number)
        now = self.accuracy if self.error is None else self.error
        assert now is not None
        was = "" if self.before is None else f"{figure(self.before)} before, "
        often = f", {self.rounds} times each" if self.rounds > 1 else ""
        return f"{what} {was}{figure(now)} after learning {self.examples:,} examples{often} ({self.kind})"


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"


def _number(value: float) -> str:
    return f"{value:.6g}"


@dataclass(frozen=True)
class Wording:
    """How a door calls what can be given: Python's arguments, or options."""

    learn: str
    learn_labels: str
    rounds: str
    labels: str
    adapt: str
    classes: str


PYTHON = Wording(
    "learn=",
    "learn_labels=",
    "rounds=",
    "labels=",
    'tinyml.compile(..., adapt="last"), or "prototypes"',
    'adapt={"kind": "prototypes", "classes": 12}',
)
COMMAND = Wording(
    "--learn DATA",
    "--learn-labels FILE",
    "--rounds N",
    "--labels FILE",
    "--adapt last, or --adapt prototypes",
    "--adapt prototypes --adapt classes=12",
)


def check_learning(
    compiled: CompiledModel, learns: bool, labelled: bool, rounds: int | None, words: Wording
) -> None:
    """Complain about what cannot be, before anything runs."""
    if not learns and (labelled or rounds not in (None, 1)):
        extra = words.learn_labels if labelled else words.rounds
        raise ConfigError(f"{extra.split()[0]} says how to learn, and there are no examples", words.learn)
    if rounds is not None and not 1 <= rounds <= MOST_ROUNDS:
        raise ConfigError(f"{rounds} rounds over the examples", f"{words.rounds}: 1 to {MOST_ROUNDS}")
    if learns and compiled.built.adapt is None:
        raise ConfigError(f"{compiled.name} was not compiled to learn", words.adapt)


def after_learning(
    compiled: CompiledModel,
    examples: Request,
    test: Request,
    rounds: int | None = None,
    names: Sequence[str] = (),
    words: Wording = PYTHON,
) -> Learnt:
    """Learn the examples in their order, ``rounds`` times, and judge by the test set."""
    rounds = 1 if rounds is None else rounds
    check_learning(compiled, True, False, rounds, words)
    check_data(examples.calibration)
    adapted = compiled.adapt()
    before = _judged(adapted, test, names, words)
    count = 0
    for _ in range(rounds):
        count = _taught(adapted, examples, names, words)
    after = _judged(adapted, test, names, words)
    if after is None:
        raise ConfigError(
            f"the model has learnt from {count} examples and cannot decide yet",
            f"more examples in {words.learn}; a threshold has its least, which is 16 unless adapt says other",
        )
    error = after if adapted.is_regression else None
    return Learnt(adapted.kind, count, rounds, before, None if adapted.is_regression else after, error)


def _taught(adapted: Adapted, examples: Request, names: Sequence[str], words: Wording) -> int:
    where = words.learn.split()[0].rstrip("=")
    try:
        return adapted.learn_from(examples, names=names)
    except NoLabels as error:
        raise ConfigError(f"{where}: {error.message}", words.learn_labels) from None
    except Full as error:
        raise ConfigError(f"{where}: {error.message}", words.classes) from None
    except ConfigError as error:
        raise ConfigError(f"{where}: {error.message}", error.hint) from None


def _judged(adapted: Adapted, test: Request, names: Sequence[str], words: Wording) -> float | None:
    """Accuracy, or the mean absolute error of a regression; None: there is no class, or no normal, yet."""
    try:
        return adapted.error_of(test) if adapted.is_regression else adapted.accuracy_of(test, names)
    except NoRun:
        return None
    except NoLabels as error:
        raise ConfigError(error.message, words.labels) from None
