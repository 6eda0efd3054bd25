# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Labels of examples as what a model learns from: classes, or the targets of a regression."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tinyml.adapt.errors import NONE
from tinyml.adapt.last import LastLayer
from tinyml.adapt.plan import SQUARED
from tinyml.adapt.prototypes import NEW, ClassMeans
from tinyml.adapt.stored import Learner
from tinyml.base.errors import ConfigError
from tinyml.compare.accuracy import truth
from tinyml.ir import Array


def folder_names(data: Path, labels: Array | None) -> tuple[str, ...]:
    """Subfolders are classes in alphabetical order, unless the user says otherwise."""
    if labels is None or labels.dtype.kind != "U" or not data.is_dir():
        return ()
    return tuple(sorted({path.name for path in data.iterdir() if path.is_dir() and path.name[0] != "."}))


def is_regression(learner: Learner) -> bool:
    """Whether it learns targets."""
    return isinstance(learner, LastLayer) and learner.part.loss == SQUARED


def as_truth(labels: Array, learner: Learner, names: Sequence[str], *, learns: bool) -> Array:
    """Whole numbers of classes, or rows of targets; ConfigError if labels are neither.

    One-hot rows, columns and names are taken, as by ``evaluate``. Prototypes have a number for a new class
    when the model learns, and one for none of them when it decides.
    """
    truth.refuse_missing(labels)
    if is_regression(learner):
        assert isinstance(learner, LastLayer)
        return truth.values(labels, np.empty((len(labels), learner.part.classes)))
    if isinstance(learner, LastLayer):
        return _numbers(labels, learner.part.classes, 0, names)
    if isinstance(learner, ClassMeans):
        return _numbers(labels, learner.part.classes, NEW if learns else NONE, names)
    return np.zeros(len(labels), np.int64) if learns else _numbers(labels, 2, 0, names)


def for_device(labels: Array, targets: int) -> Array:
    """What a device learns: rows of ``targets`` values, or classes, whose number only the device knows."""
    truth.refuse_missing(labels)
    if targets:
        return truth.values(labels, np.empty((len(labels), targets))).astype(np.float32)
    if labels.dtype.kind == "U":
        raise ConfigError("labels are names, and a device knows classes by their numbers", "whole numbers")
    return _numbers(labels, 1 << 31, -(1 << 31), ())


def _numbers(labels: Array, classes: int, least: int, names: Sequence[str]) -> Array:
    if labels.dtype.kind == "U":
        return truth.class_numbers(labels, np.empty((len(labels), classes)), names)
    flat = labels.reshape(len(labels), -1)
    if flat.shape[1] > 1:
        if not truth.is_one_hot(flat):
            raise ConfigError(
                f"a sample has {flat.shape[1]} labels", "one class for each sample, or one-hot rows"
            )
        flat = flat.argmax(axis=1)[:, np.newaxis]
    wrong = np.flatnonzero((flat[:, 0] % 1 != 0) | (flat[:, 0] < least) | (flat[:, 0] >= classes))
    if len(wrong):
        also = {NEW: f", or {NEW} for a new one", NONE: f", or {NONE} for none of them"}.get(least, "")
        raise ConfigError(
            f"sample {wrong[0]} has the label {flat[wrong[0], 0]:g}, which is no class",
            f"whole numbers from 0 to {classes - 1}{also}",
        )
    return flat[:, 0].astype(np.int64)
