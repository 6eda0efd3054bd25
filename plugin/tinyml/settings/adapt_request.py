# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The user's settings for a model that learns on the device. Imports quickly: manifests use it too."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from tinyml.base.errors import ConfigError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.settings.written import kind as kind_of
from tinyml.settings.written import refuse_unknown, start

LAST, PROTOTYPES, THRESHOLD = "last", "prototypes", "threshold"
KINDS: Final = (LAST, PROTOTYPES, THRESHOLD)
LOSSES = ("auto", "cross_entropy", "squared")
DISTANCES = ("cosine", "euclidean")

KEYS = {
    "kind": f"what learns: {', '.join(KINDS)}",
    "rate": "last: the learning rate (0: by the range of the embedding)",
    "momentum": "last: of the steps, below 1 (0); another copy of the weights in RAM",
    "decay": "last: weight decay, towards the weights of the model file (0)",
    "limit": "last: how far a weight may move, as a share of the largest of its class (0.5)",
    "batch": "last: the most examples between NAME_learn_begin() and NAME_learn_end() (1: no batches)",
    "loss": f"last: {', '.join(LOSSES)} (auto: squared for one output, else cross_entropy)",
    "holdout": "last: samples with labels; what is learnt and loses accuracy on them is not kept",
    "tolerance": "last: the share of the holdout that learning may cost, below 1 (0)",
    "classes": "prototypes: the most classes (8)",
    "distance": f"prototypes: {' or '.join(DISTANCES)} (cosine)",
    "reject": "prototypes: the distance from which on it is none of the classes (0: there is none)",
    "sigmas": "threshold: standard deviations above the mean from which on a score is unusual (4)",
    "least": "threshold: examples of the normal before it decides (16)",
    "normalize": "threshold: first examples that say what mean and scale the inputs have here (0: none)",
    "reference": "threshold: samples of the training; normalised inputs get their mean and scale (0 and 1)",
}
"""Every setting, as tinyml.yaml, CMake and platformio.ini write it."""

PATHS = ("holdout", "reference")
_OWN = {
    LAST: ("rate", "momentum", "decay", "limit", "batch", "loss", "holdout", "tolerance"),
    PROTOTYPES: ("classes", "distance", "reject"),
    THRESHOLD: ("sigmas", "least", "normalize", "reference"),
}
MOST_CLASSES, MOST_BATCH = 64, 64


@dataclass(frozen=True)
class Adapt:
    """What learns, and how."""

    kind: str
    rate: float = 0.0
    momentum: float = 0.0
    decay: float = 0.0
    limit: float = 0.5
    batch: int = 1
    loss: str = "auto"
    holdout: Path | None = None
    tolerance: float = 0.0
    classes: int = 8
    distance: str = "cosine"
    reject: float = 0.0
    sigmas: float = 4.0
    least: int = 16
    normalize: int = 0
    reference: Path | None = None

    def describe(self) -> str:
        """For the provenance comment."""
        parts = [f"adapts {self.kind}"]
        for key in _OWN[self.kind]:
            value = getattr(self, key)
            if value != getattr(Adapt, key):
                parts.append(f"{key} {value.name if isinstance(value, Path) else value}")
        return " ".join(parts)


def settings(value: object, where: str) -> dict[str, str]:
    """A mapping, or just the kind, as strings by key."""
    if isinstance(value, str):
        value = {"kind": value}
    if not isinstance(value, Mapping):
        raise ConfigError(
            f"{start(where)}'adapt' must say what learns, found {kind_of(value)}",
            f"adapt: {' or '.join(KINDS)}",
        )
    at = f"{where}: adapt" if where else "adapt"
    refuse_unknown(value, tuple(KEYS), at)
    found = {str(key): str(item) for key, item in value.items() if item is not None}
    from_settings(found, Path(), at)
    return found


def parse_items(items: Iterable[str], where: str) -> dict[str, str]:
    """``last`` and ``key=value``, as command lines and ini files write them."""
    found: dict[str, str] = {}
    for item in items:
        key, equals, text = (part.strip() for part in item.partition("="))
        found[key if equals else "kind"] = text if equals else item.strip()
    return settings(found, where)


def from_settings(given: Mapping[str, str], folder: Path, where: str = "adapt") -> Adapt:
    """The request given by settings whose paths are relative to ``folder``."""
    kind = given.get("kind", "")
    if kind not in KINDS:
        what = f"unknown kind {kind!r}" if kind else "'kind' is missing"
        raise ConfigError(f"{where}: {what}", f"one of: {', '.join(KINDS)}")
    for key in given:
        if key != "kind" and key not in _OWN[kind]:
            raise ConfigError(
                f"{where}: {kind!r} has no key {key!r}", f"one of: {', '.join(_OWN[kind])}; {KEYS[key]}"
            )

    def number(key: str, low: float, high: float) -> float:
        text = given.get(key, str(getattr(Adapt, key)))
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not low <= value <= high:
            raise ConfigError(f"{where}: {key} cannot be {text!r}", f"from {low:g} to {high:g}; {KEYS[key]}")
        return value

    def whole(key: str, high: int, low: int = 1) -> int:
        value = number(key, low, high)
        if value != int(value):
            raise ConfigError(f"{where}: {key} cannot be {given[key]!r}", f"a whole number; {KEYS[key]}")
        return int(value)

    def choice(key: str, choices: tuple[str, ...]) -> str:
        text = given.get(key, str(getattr(Adapt, key)))
        if text not in choices:
            raise ConfigError(f"{where}: {key} cannot be {text!r}", f"one of: {', '.join(choices)}")
        return text

    if "reference" in given and not number("normalize", 0, 1e6):
        raise ConfigError(f"{where}: a reference is for inputs that are normalised", "normalize: 16")
    return Adapt(
        kind,
        rate=number("rate", 0, 10),
        momentum=number("momentum", 0, 0.999),
        decay=number("decay", 0, 10),
        limit=number("limit", 0.001, 100),
        batch=whole("batch", MOST_BATCH),
        loss=choice("loss", LOSSES),
        holdout=folder / given["holdout"] if "holdout" in given else None,
        tolerance=number("tolerance", 0, 0.999),
        classes=whole("classes", MOST_CLASSES),
        distance=choice("distance", DISTANCES),
        reject=number("reject", 0, 1e6),
        sigmas=number("sigmas", 0.1, 1000),
        least=whole("least", 1_000_000),
        normalize=whole("normalize", 1_000_000, 0),
        reference=folder / given["reference"] if "reference" in given else None,
    )
