# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Figures from answers and labels: plain arithmetic on arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array


@dataclass(frozen=True)
class ClassScore:
    """One class: of its samples, how many were found; of those found, how many are right."""

    name: str  # of the class
    samples: int  # of this class in the test set
    recall: float | None  # None without samples of this class
    precision: float | None  # None if no sample was given this class


@dataclass(frozen=True)
class Classification:
    """Rows of ``confusion`` are correct classes, columns are decisions."""

    accuracy: float  # the share of right decisions
    classes: tuple[ClassScore, ...]  # one by one
    confusion: tuple[tuple[int, ...], ...]  # counts of samples


@dataclass(frozen=True)
class Regression:
    """Errors of predicted values; ``r2`` is None if all labels are equal."""

    mae: float  # mean absolute error
    rmse: float  # root of the mean squared error
    largest: float  # the largest error
    r2: float | None  # coefficient of determination


def classify(decisions: Array, labels: Array, names: Sequence[str] = ()) -> Classification:
    """Count decisions. Classes are numbers; ``names`` has the names of 0, 1, 2 and so on."""
    known = range(len(names)) if names else range(0)
    numbers = np.unique(np.concatenate([decisions, labels, np.asarray(known, np.int64)])).astype(np.int64)
    rows, columns = np.searchsorted(numbers, labels), np.searchsorted(numbers, decisions)
    confusion = np.zeros((len(numbers), len(numbers)), np.int64)
    np.add.at(confusion, (rows, columns), 1)
    scores = [
        ClassScore(
            names[number] if 0 <= number < len(names) else str(number),
            int(confusion[i].sum()),
            _share(confusion[i, i], confusion[i].sum()),
            _share(confusion[i, i], confusion[:, i].sum()),
        )
        for i, number in enumerate(numbers.tolist())
    ]
    return Classification(
        float(np.mean(decisions == labels)), tuple(scores), tuple(map(tuple, confusion.tolist()))
    )


def _share(part: int, whole: int) -> float | None:
    return float(part / whole) if whole else None


def regress(found: Array, wanted: Array) -> Regression:
    """Errors over all values of all samples."""
    found, wanted = found.astype(np.float64), wanted.astype(np.float64)
    error = found - wanted
    spread = float(np.square(wanted - wanted.mean(axis=0)).sum())
    return Regression(
        float(np.abs(error).mean()),
        float(np.sqrt(np.square(error).mean())),
        float(np.abs(error).max()),
        1.0 - float(np.square(error).sum()) / spread if spread > 0 else None,
    )
