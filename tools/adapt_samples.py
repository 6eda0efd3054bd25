# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Users of the gesture sample that it was not trained for, and what five examples of each gesture bring."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from types import ModuleType

import numpy as np

import tinyml
from tinyml import features
from tinyml.ir import Array
from tools.environment import ROOT
from tools.watch_figures import sample

SEEDS = (0, 1, 2, 3, 4)
EXAMPLES = 5
TEST_WINDOWS = 60
"""Of each gesture."""
LEARN_STRIDE = 4
"""Samples between two runs while it learns: an example of four seconds has 35 windows."""


@dataclass(frozen=True)
class User:
    """How a hand and its sensor differ from those of the training."""

    words: str
    axis: int = 0
    turn: float = 0.0  # of the sensor, in radians
    speed: float = 1.0


USUAL = User("as in training")
USERS = (
    User("sensor turned by 29° (x), 1.5 times as fast", 0, 0.5, 1.5),
    User("sensor turned by 34° (x), 1.3 times as fast", 0, 0.6, 1.3),
    User("sensor turned by 34° (x)", 0, 0.6, 1.0),
    User("sensor turned by 34° (y), 1.3 times as fast", 1, 0.6, 1.3),
)


@dataclass(frozen=True)
class Gain:
    """Accuracy before and after learning, a pair for each seed, and what a usual user has."""

    user: User
    usual: tuple[float, ...]
    before: tuple[float, ...]
    after: tuple[float, ...]

    @property
    def regained(self) -> tuple[float, ...]:
        """The share of the lost accuracy that came back."""
        pairs = zip(self.usual, self.before, self.after, strict=True)
        return tuple((after - before) / (usual - before) for usual, before, after in pairs)


@cache
def _scripts() -> tuple[ModuleType, ModuleType]:
    return sample("gesture", "record"), sample("gesture", "train")


def _turned(user: User) -> Array:
    cosine, sine = np.cos(user.turn), np.sin(user.turn)
    if user.axis == 0:
        return np.array([[1, 0, 0], [0, cosine, -sine], [0, sine, cosine]])
    return np.array([[cosine, 0, sine], [0, 1, 0], [-sine, 0, cosine]])


def _windows(user: User, gesture: str, random: np.random.Generator) -> Array:
    """The rows of one recording, as the front end gives them."""
    record, train = _scripts()
    count = record.SECONDS * record.RATE
    longer = record.recording(gesture, int(count * user.speed) + 2, random)
    times = np.arange(count) * user.speed
    seen = np.stack([np.interp(times, np.arange(len(longer)), longer[:, i]) for i in range(3)], axis=1)
    return features.compute((seen @ _turned(user).T).astype(np.float32), **train.FRONTEND)


def _test_set(user: User, random: np.random.Generator) -> tuple[Array, Array]:
    train = _scripts()[1]
    found = []
    for gesture in train.CLASSES:
        for _ in range(TEST_WINDOWS):
            rows = _windows(user, gesture, random)
            start = random.integers(0, len(rows) - train.WINDOW + 1)
            found.append(rows[start : start + train.WINDOW][np.newaxis])
    return np.stack(found).astype(np.float32), np.repeat(np.arange(len(train.CLASSES)), TEST_WINDOWS)


def _examples(user: User, random: np.random.Generator) -> tuple[Array, Array]:
    train = _scripts()[1]
    x, y = [], []
    for label, gesture in enumerate(train.CLASSES):
        for _ in range(EXAMPLES):
            rows = _windows(user, gesture, random)
            for start in range(0, len(rows) - train.WINDOW + 1, LEARN_STRIDE):
                x.append(rows[start : start + train.WINDOW][np.newaxis])
                y.append(label)
    order = random.permutation(len(y))
    return np.stack(x)[order].astype(np.float32), np.array(y)[order]


def gesture_gains() -> list[Gain]:
    """What each user gains; the simulation learns what a device learns, in every bit."""
    compiled = tinyml.compile(
        ROOT / "samples" / "gesture" / "model.onnx", target="host", adapt="last", name="gesture"
    )
    found = []
    usual = tuple(compiled.adapt().accuracy(*_test_set(USUAL, np.random.default_rng(seed))) for seed in SEEDS)
    for user in USERS:
        before, after = [], []
        for seed in SEEDS:
            random = np.random.default_rng(seed)
            test = _test_set(user, random)
            adapted = compiled.adapt()
            before.append(adapted.accuracy(*test))
            adapted.learn(*_examples(user, random))
            after.append(adapted.accuracy(*test))
        found.append(Gain(user, usual, tuple(before), tuple(after)))
    return found
