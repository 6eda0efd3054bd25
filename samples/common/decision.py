# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What <tinyml/decision.h> decides from the scores of consecutive runs: to choose thresholds in training."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

FULL = 32768  # a score of 1


@dataclass(frozen=True)
class Decided:
    run: int
    class_index: int
    percent: int  # the average, rounded down


def decide(
    scores: npt.NDArray[Any],
    average: int,
    on: float,
    off: float,
    hold_off: int = 0,
    ignored: Collection[int] = (),
) -> list[Decided]:
    """The decisions for scores (runs, classes); before the first run, all scores are 0."""
    counted = np.clip(np.trunc(scores.astype(np.float32) * FULL), -FULL, FULL - 1).astype(int)
    history = np.concatenate([np.zeros((average - 1, scores.shape[1]), int), counted])
    high, low = (int(limit * FULL) * average for limit in (on, off))
    active, waiting, found = -1, 0, []
    for run in range(len(counted)):
        sums = history[run : run + average].sum(axis=0)
        waiting = max(waiting - 1, 0)
        if active >= 0 and sums[active] < low:
            active = -1
        best = max((i for i in range(len(sums)) if i not in ignored), key=lambda i: sums[i])
        if best != active and waiting == 0 and sums[best] >= high:
            active, waiting = best, hold_off + 1
            found.append(Decided(run, best, int(sums[best]) // average * 100 // FULL))
    return found
