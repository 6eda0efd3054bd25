# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Nearest class means in numpy: the same integers and float32 as runtime/adapt/prototypes.c."""

from __future__ import annotations

import numpy as np

from tinyml.adapt.errors import NONE, Full, NoRun, OutOfRange
from tinyml.adapt.plan import Prototypes
from tinyml.ir import Array

MOST_EXAMPLES = 256
NEW = -1


def _float(value: int) -> np.float32:
    return np.float32(np.array(value, np.int64).astype(np.float32))


class ClassMeans:
    """Classes, each the mean of its examples."""

    def __init__(self, part: Prototypes) -> None:
        self.part = part
        self.factory()

    def factory(self) -> None:
        """Forget all classes."""
        self.sums = np.zeros((self.part.classes, self.part.features), np.int16)
        self.counts = np.zeros(self.part.classes, np.uint16)
        self.count = 0
        self.embedding: Array | None = None
        self.fresh = False

    def run(self, embedding: Array) -> None:
        """A run of the model; what follows is about this embedding."""
        self.embedding, self.fresh = embedding.reshape(-1).astype(np.int64), True

    def learn(self, number: int) -> int:
        """Take the last run as an example of a class, or of a new one (-1); the class."""
        if not NEW <= number < self.part.classes:
            raise OutOfRange(f"class {number}", f"0 to {self.part.classes - 1}, or {NEW} for a new one")
        if number == NEW:
            free = np.flatnonzero(self.counts == 0)
            if not len(free):
                raise Full(f"all {self.part.classes} classes have examples", "forget one, or more classes")
            number = int(free[0])
        if not self.fresh or self.embedding is None:
            raise NoRun("there was no run since the last example", "run, then enroll")
        if self.counts[number] == MOST_EXAMPLES:
            self.sums[number] = self.sums[number] >> 1
            self.counts[number] = MOST_EXAMPLES // 2
        self.sums[number] = (self.sums[number] + self.embedding).astype(np.int16)
        self.counts[number] += 1
        self.count += 1
        self.fresh = False
        return number

    def forget(self, number: int) -> None:
        """Forget a class."""
        if not 0 <= number < self.part.classes or not self.counts[number]:
            raise OutOfRange(f"class {number}", "a class that has examples")
        self.sums[number], self.counts[number] = 0, 0
        self.count += 1

    def distance(self, number: int) -> np.float32:
        """From the last run to the mean of a class."""
        part, count = self.part, int(self.counts[number])
        assert self.embedding is not None
        x = self.embedding - part.zero_point
        y = self.sums[number].astype(np.int64) - count * part.zero_point
        if part.cosine:
            lengths = _float(int(x @ x)) * _float(int(y @ y)) + np.float32(1e-30)
            return np.float32(np.float32(1) - _float(int(x @ y)) / np.sqrt(lengths))
        away = x * count - y
        return np.float32(np.sqrt(_float(int(away @ away))) / np.float32(count) * np.float32(part.scale))

    def decide(self) -> tuple[int, float]:
        """The nearest class, or -2 for none of them, and its distance."""
        known = np.flatnonzero(self.counts)
        if not self.fresh or not len(known):
            raise NoRun("there was no run since the last example, or there is no class", "enroll, then run")
        distances = [self.distance(int(number)) for number in known]
        best = int(np.argmin(distances))
        least = distances[best]
        if self.part.reject > 0 and least > np.float32(self.part.reject):
            return NONE, float(least)
        return int(known[best]), float(least)
