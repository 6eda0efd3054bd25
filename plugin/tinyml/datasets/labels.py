# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Labels of samples: from a file of their own, as classes or as the file has them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tinyml.base.errors import ConfigError
from tinyml.datasets import csv_file, numpy_file
from tinyml.ir import Array


def read(path: Path) -> Array:
    """Class numbers: .npy, .npz (its only array, or "labels"), .csv or text with one number per line."""
    if path.suffix.lower() in (".npy", ".npz"):
        arrays = numpy_file.read(path)
        found = arrays.get("labels", next(iter(arrays.values())) if len(arrays) == 1 else None)
        if found is None:
            raise ConfigError(
                f"{path} has several arrays ({', '.join(arrays)})", "call the right one 'labels'"
            )
        return found
    return csv_file.column(path)


def classes(labels: Array, count: int, path: Path) -> Array:
    flat = labels
    if labels.ndim == 2 and labels.shape[0] == count and labels.shape[1] > 1:
        flat = labels.argmax(axis=1)  # one-hot
    flat = as_found(flat.reshape(-1), count, path)
    if flat.dtype.kind not in "iufb" or not np.array_equal(flat, flat.astype(np.int64)):
        raise ConfigError(f"{path}: labels must be whole numbers", csv_file.CLASSES)
    return flat.astype(np.int64)


def as_found(labels: Array, count: int, path: Path) -> Array:
    """Labels of any kind, one for each sample; those of sequences follow one another."""
    if labels.ndim > 1 and len(labels) != count and labels.shape[0] * labels.shape[1] == count:
        labels = labels.reshape(count, *labels.shape[2:])
    if labels.ndim == 0 or len(labels) != count:
        found = len(labels) if labels.ndim else 1
        raise ConfigError(f"{path} has {found} labels for {count} samples", "one for each sample")
    return labels
