# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What labels mean for a model's answer: classes, or values to predict."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.base.errors import ConfigError
from tinyml.ir import Array

TASKS = ("auto", "classes", "values", "raw")
"""Decide between classes, predict values, or neither: outputs are only compared with the original's."""


def choose_task(task: str, answers: Array, labels: Array | None, whole: bool) -> str:
    """``auto`` as one of the others. ``answers``: one row per sample; ``whole``: they are class numbers."""
    if task not in TASKS:
        raise ConfigError(f"unknown task {task!r}", f"one of: {', '.join(TASKS)}")
    if labels is None:
        if task != "auto":
            return task
        return "classes" if whole or answers.shape[1] > 1 else "raw"
    if task == "raw":
        return task
    refuse_missing(labels)
    if task == "values":
        return task
    if task == "classes" or _are_classes(labels, answers, whole):
        return "classes"
    if labels[0].size == 1 < answers.shape[1] and labels.dtype.kind == "f":
        flat = labels.reshape(-1)
        wrong = int(np.flatnonzero(flat % 1 != 0)[0])
        raise ConfigError(
            f"sample {wrong} has the label {flat[wrong]:g}: it is neither a class nor "
            f"{answers.shape[1]} values",
            f"whole numbers from 0 to {answers.shape[1] - 1}, names, or {answers.shape[1]} values for each",
        )
    return "values"


def refuse_missing(labels: Array) -> None:
    """NaN is what tables have where a label is missing."""
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        wrong = int(np.flatnonzero(~np.isfinite(labels).reshape(len(labels), -1).all(axis=1))[0])
        raise ConfigError(
            f"sample {wrong} has a label that is not a number", "leave out samples without a label"
        )


def _are_classes(labels: Array, answers: Array, whole: bool) -> bool:
    if labels.dtype.kind == "U" or _one_hot(labels, answers):
        return True
    if labels[0].size != 1 or not _whole(labels):
        return False
    flat = labels.reshape(-1)
    if answers.shape[1] > 1:
        return True  # one label cannot be several values; whether it is a class is checked later
    return whole or bool(flat.min() >= 0 and flat.max() < 2)


def _whole(labels: Array) -> bool:
    return labels.dtype.kind in "iub" or (labels.dtype.kind == "f" and bool((labels % 1 == 0).all()))


def _one_hot(labels: Array, answers: Array) -> bool:
    flat = labels.reshape(len(labels), -1)
    if flat.shape[1] == 1 or flat.shape != answers.shape:
        return False
    return is_one_hot(flat)


def is_one_hot(rows: Array) -> bool:
    """Whether each row is a single 1 among zeros."""
    if rows.dtype.kind not in "iubf":
        return False
    flat = rows.reshape(len(rows), -1)
    return bool(np.isin(flat, (0, 1)).all() and (flat.sum(axis=1) == 1).all())


def decisions(answers: Array, whole: bool) -> Array:
    """The class of each row: the number itself, its largest element, or whether it exceeds 0.5."""
    if whole:
        return answers[:, 0].astype(np.int64)
    if answers.shape[1] == 1:
        return (answers[:, 0] > 0.5).astype(np.int64)
    chosen: Array = answers.argmax(axis=1).astype(np.int64)
    return chosen


def class_numbers(labels: Array, answers: Array, names: Sequence[str]) -> Array:
    """Labels as numbers: names are looked up, one-hot rows become the index of the 1."""
    if _one_hot(labels, answers):
        return labels.reshape(len(labels), -1).argmax(axis=1).astype(np.int64)
    flat = labels.reshape(-1)
    if len(flat) != len(labels):
        raise ConfigError(f"a sample has {labels[0].size} labels", "one class for each sample")
    if flat.dtype.kind == "U":
        if not names:
            raise ConfigError(
                f"labels are names ({', '.join(sorted(set(flat.tolist()))[:5])}), and the model has none",
                "--classes gives the names in the order of the model's outputs: --classes yes,no",
            )
        unknown = sorted(set(flat.tolist()) - set(names))
        if unknown:
            raise ConfigError(f"no class is called {unknown[0]!r}", f"the classes are {', '.join(names)}")
        return np.asarray([names.index(label) for label in flat.tolist()], np.int64)
    if not _whole(flat):
        raise ConfigError("labels of classes must be whole numbers or names", "--task values")
    numbers: Array = flat.astype(np.int64)
    count = answers.shape[1]
    outside = np.flatnonzero((numbers < 0) | (numbers >= count))
    if count > 1 and len(outside):
        raise ConfigError(
            f"sample {outside[0]} has the label {numbers[outside[0]]}, and the model has {count} classes",
            f"labels from 0 to {count - 1}, in the order of the outputs",
        )
    return numbers


def values(labels: Array, answers: Array) -> Array:
    """Labels as the values that the model predicts."""
    if labels.dtype.kind not in "iubf":
        raise ConfigError("labels are names; values to predict are numbers", "--task classes")
    rows = labels.reshape(len(labels), -1)
    if rows.shape != answers.shape:
        raise ConfigError(
            f"a sample has {rows.shape[1]} labels; the model predicts {answers.shape[1]} values",
            "one label for each value",
        )
    return rows
