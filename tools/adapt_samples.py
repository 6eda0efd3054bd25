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
from tinyml.adapt.last import LastLayer
from tinyml.adapt.plan import Last
from tinyml.ir import Array
from tinyml.ir.interpreter import interpret
from tools.environment import ROOT
from tools.watch_figures import sample

SEEDS = (0, 1, 2, 3, 4)
EXAMPLES = 5
TEST_WINDOWS = 60
"""Of each gesture."""
LEARN_STRIDE = 8
"""Samples between two runs while it learns: an example of four seconds has 18 windows."""
COPIES = 8
"""How often each example is played: as it was recorded, then as if the hand had been a little different."""
TILT, TEMPO = 0.15, 0.15
"""Of these copies: the deviation of two angles in radians, and the range of the logarithm of the speed."""
ROUNDS = 3
"""Over all examples and copies."""


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
    once: tuple[float, ...]  # each example was learnt once, as it was recorded
    after: tuple[float, ...]
    usual_after: tuple[float, ...]  # of a usual user, with what this one has taught

    def regained(self, then: tuple[float, ...]) -> tuple[float, ...]:
        """The share of the lost accuracy that came back."""
        pairs = zip(self.usual, self.before, then, strict=True)
        return tuple((after - before) / (usual - before) for usual, before, after in pairs)


@cache
def _scripts() -> tuple[ModuleType, ModuleType]:
    return sample("gesture", "record"), sample("gesture", "train")


def _turned(axis: int, angle: float) -> Array:
    cosine, sine = np.cos(angle), np.sin(angle)
    if axis == 0:
        return np.array([[1, 0, 0], [0, cosine, -sine], [0, sine, cosine]])
    return np.array([[cosine, 0, sine], [0, 1, 0], [-sine, 0, cosine]])


def _played(samples: Array, speed: float, count: int) -> Array:
    times = np.arange(count) * speed
    times = times[times <= len(samples) - 1]
    return np.stack([np.interp(times, np.arange(len(samples)), samples[:, i]) for i in range(3)], axis=1)


def _recording(user: User, gesture: str, random: np.random.Generator) -> Array:
    """What the sensor of a user measures."""
    record = _scripts()[0]
    count = record.SECONDS * record.RATE
    longer = record.recording(gesture, int(count * user.speed) + 2, random)
    return _played(longer, user.speed, count) @ _turned(user.axis, user.turn).T


def _varied(samples: Array, random: np.random.Generator) -> Array:
    """The same movement, with the hand held a little differently, a little faster or slower."""
    roll, pitch = random.normal(0, TILT, 2)
    speed = float(np.exp(random.uniform(-TEMPO, TEMPO)))
    return _played(samples, speed, len(samples)) @ (_turned(0, roll) @ _turned(1, pitch)).T


def _windows(samples: Array, stride: int) -> Array:
    """The inputs of the model for one recording, as the front end gives them."""
    train = _scripts()[1]
    rows = features.compute(samples.astype(np.float32), **train.FRONTEND)
    starts = range(0, len(rows) - train.WINDOW + 1, stride)
    return np.stack([rows[start : start + train.WINDOW] for start in starts])[:, np.newaxis]


def _test_set(user: User, random: np.random.Generator) -> tuple[Array, Array]:
    train = _scripts()[1]
    found = []
    for gesture in train.CLASSES:
        for _ in range(TEST_WINDOWS):
            windows = _windows(_recording(user, gesture, random), 1)
            found.append(windows[random.integers(0, len(windows))])
    return np.stack(found).astype(np.float32), np.repeat(np.arange(len(train.CLASSES)), TEST_WINDOWS)


def _examples(user: User, random: np.random.Generator) -> tuple[Array, Array, Array]:
    """Windows, their labels, and which copy of its recording each one is of."""
    x, y, copies = [], [], []
    for label, gesture in enumerate(_scripts()[1].CLASSES):
        for _ in range(EXAMPLES):
            recorded = _recording(user, gesture, random)
            for copy in range(COPIES):
                windows = _windows(_varied(recorded, random) if copy else recorded, LEARN_STRIDE)
                x.append(windows)
                y += [label] * len(windows)
                copies += [copy] * len(windows)
    order = random.permutation(len(y))
    return np.concatenate(x)[order].astype(np.float32), np.array(y)[order], np.array(copies)[order]


class _Frozen:
    """The layers before the last, which never change: embeddings are computed once."""

    def __init__(self) -> None:
        file = ROOT / "samples" / "gesture" / "model.onnx"
        compiled = tinyml.compile(file, target="host", adapt="last", name="gesture")
        assert compiled.built.adapt is not None
        self.graph, self.part = compiled.built.graph, compiled.built.adapt.last

    def embeddings(self, x: Array) -> Array:
        samples = [{self.graph.inputs[0]: row[np.newaxis]} for row in x]
        return np.stack([run[self.part.tensor].reshape(-1) for run in interpret(self.graph, samples)])


def _learnt(part: Last, embeddings: Array, labels: Array, rounds: int) -> LastLayer:
    layer = LastLayer(part)
    for _ in range(rounds):
        for embedding, label in zip(embeddings, labels, strict=True):
            layer.run(embedding)
            layer.learn(int(label))
    return layer


def _gain(user: User, frozen: _Frozen, seed: int, usual: tuple[Array, Array]) -> tuple[float, ...]:
    """Accuracy before, after each example once, after all copies and rounds; then of a usual user."""
    random = np.random.default_rng(seed)
    x, y = _test_set(user, random)
    test = frozen.embeddings(x)
    examples, labels, copies = _examples(user, random)
    seen, as_recorded = frozen.embeddings(examples), copies == 0
    once = _learnt(frozen.part, seen[as_recorded], labels[as_recorded], 1)
    after = _learnt(frozen.part, seen, labels, ROUNDS)
    right = [layer.right(test, y) / len(y) for layer in (LastLayer(frozen.part), once, after)]
    return (*right, after.right(*usual) / len(usual[1]))


def gesture_gains() -> list[Gain]:
    """What each user gains; the simulation learns what a device learns, in every bit."""
    frozen = _Frozen()
    tests = []
    for seed in SEEDS:
        x, y = _test_set(USUAL, np.random.default_rng(seed))
        tests.append((frozen.embeddings(x), y))
    usual = tuple(LastLayer(frozen.part).right(x, y) / len(y) for x, y in tests)
    found = []
    for user in USERS:
        gains = [_gain(user, frozen, seed, test) for seed, test in zip(SEEDS, tests, strict=True)]
        before, once, after, usual_after = (tuple(column) for column in zip(*gains, strict=True))
        found.append(Gain(user, usual, before, once, after, usual_after))
    return found


OWN_TESTS = 4
"""Recordings of each gesture, of three seconds."""


def own_gesture(examples: int) -> tuple[list[float], list[float]]:
    """The share of runs that are right in the sample gesture_own, of the new gesture and of the others."""
    record = sample("gesture_own", "record")
    compiled, known = record.compiled(), record.known()
    classes = _scripts()[1].CLASSES
    new, trained = [], []
    for seed in SEEDS:
        random = np.random.default_rng(seed)
        adapted = compiled.adapt()
        adapted.restore(known)
        for _ in range(examples):
            windows = record.windows(record.own(record.LENGTH, random))
            adapted.learn(windows, np.full(len(windows), len(classes)))
        right: list[list[bool]] = [[], []]
        for _ in range(OWN_TESTS):
            found = adapted.predict(record.windows(record.own(record.LENGTH, random)))
            right[0] += [int(number) == len(classes) for number in found]
            for label, gesture in enumerate(classes):
                samples = _scripts()[0].recording(gesture, record.LENGTH, random)
                right[1] += [int(number) == label for number in adapted.predict(record.windows(samples))]
        new.append(float(np.mean(right[0])))
        trained.append(float(np.mean(right[1])))
    return new, trained
