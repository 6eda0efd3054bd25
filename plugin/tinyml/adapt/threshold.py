# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What scores are usual, in numpy: the same float32 in the same order as runtime/adapt/threshold.c."""

from __future__ import annotations

import numpy as np

from tinyml.adapt.errors import InfiniteLoss, NoRun
from tinyml.adapt.plan import Threshold
from tinyml.adapt.scaling import InputScale, real
from tinyml.ir import Array

_USUAL = np.float32(1e30)


class Normal:
    """Mean and variance of the scores of normal examples."""

    def __init__(self, part: Threshold) -> None:
        self.part = part
        self.inputs = None if part.scaling is None else InputScale(part.scaling)
        self.factory()

    def factory(self) -> None:
        """Forget all examples."""
        self.mean, self.squares, self.examples = np.float32(0), np.float32(0), 0
        if self.inputs is not None:
            self.inputs.factory()
        self.score = np.float32(0)
        self.fresh = False

    @property
    def count(self) -> int:
        """Of all examples: those of the inputs, and those of the score."""
        return self.examples + (self.inputs.count if self.inputs is not None else 0)

    def run(self, output: Array, source: Array | None = None) -> None:
        """A run of the model: its output, and for an autoencoder its input."""
        with np.errstate(all="ignore"):
            found = real(output, self.part.output)
            if source is not None and self.part.input is not None:
                difference = found - real(source, self.part.input)
                squares = np.add.accumulate(difference * difference, dtype=np.float32)
                self.score = np.float32(squares[-1] / np.float32(squares.size))
            else:
                self.score = np.float32(found[0])
        self.fresh = True

    def learn(self, label: int = 0) -> int:
        """Take the last run as an example of the normal."""
        if not self.fresh:
            raise NoRun("there was no run since the last example", "run, then learn")
        if self.inputs is not None and self.inputs.learns:
            self.inputs.learn()
            self.fresh = False
            return 0
        with np.errstate(all="ignore"):
            before = self.score - self.mean
            moved = self.mean + before / np.float32(self.examples + 1)
            after = self.squares + before * (self.score - moved)
        if not (abs(self.score) < _USUAL and abs(after) < _USUAL):
            raise InfiniteLoss()
        self.mean, self.squares = np.float32(moved), np.float32(after)
        self.examples += 1
        self.fresh = False
        return 0

    def decide(self) -> tuple[int, float]:
        """1 if the last score is unusual, else 0; and its standard deviations above the mean."""
        if not self.fresh or self.examples < max(self.part.least, 2):
            raise NoRun(
                f"there was no run, or fewer than {max(self.part.least, 2)} examples of the normal",
                "learn() more of them",
            )
        with np.errstate(all="ignore"):
            deviation = np.sqrt(self.squares / np.float32(self.examples - 1))
            away = np.float32(self.score - self.mean)
            scale_free = away / deviation if deviation > 0 else 1e30 if away > 0 else 0
            away = np.float32(scale_free)
        return int(not away <= np.float32(self.part.sigmas)), float(away)
