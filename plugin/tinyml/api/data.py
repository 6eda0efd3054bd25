# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What data may be: a file or folder, or arrays in memory."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from tinyml.api.batches import as_arrays, numbers
from tinyml.base.errors import ConfigError, called, did_you_mean
from tinyml.datasets.arrays import UNREADABLE, packed, read_numpy
from tinyml.datasets.csv_file import LABELS
from tinyml.ir import Array, Graph

DataLike: TypeAlias = Any
"""A path (.npz, .npy, .csv, or a folder of images or WAV files), an array or a DataFrame of pandas with one
row per sample, arrays by input name, or batches: PyTorch's DataLoader or Dataset, a data set of tf.data, a
list of (inputs, labels). Inputs in a batch are an array, a tuple of arrays, or arrays by name."""

WIDENED = (np.dtype(np.float64), np.dtype(np.float16), np.dtype(np.uint8))
"""Types of data that modules take as float32: numpy's default, halves, and pixels."""


@contextmanager
def data_file(data: DataLike | None, stem: str) -> Iterator[Path | None]:
    """The data as a file or folder; arrays become a temporary file called ``stem``."""
    if data is None or isinstance(data, str | Path):
        yield None if data is None else Path(data)
        return
    data = as_arrays(data)
    with tempfile.TemporaryDirectory(prefix="tinyml-") as folder:
        path = Path(folder) / f"{stem}.npz"
        arrays = data if isinstance(data, Mapping) else {stem: data}
        path.write_bytes(packed({str(key): _array(value, stem) for key, value in arrays.items()}))
        with called(path, stem):
            yield path


def example_of(data: DataLike) -> Callable[[], Any]:
    """The first sample of some data, each input as an array with one row; None if it takes a reader.

    A function, because only a PyTorch module without an example asks for it.
    """

    def first() -> Any:
        found = _stored(Path(data)) if isinstance(data, str | Path) else as_arrays(data)
        arrays = found if isinstance(found, Mapping) else {"data": found}
        rows = [_array(value, str(key)) for key, value in arrays.items() if str(key) not in LABELS]
        if not rows or any(row.ndim < 2 or not len(row) for row in rows):
            return None
        return tuple(row[:1].astype(np.float32) if row.dtype in WIDENED else row[:1] for row in rows)

    return first


def _stored(path: Path) -> Mapping[str, Array]:
    """The arrays of a file; none of files that are something else."""
    check_data(path)
    if path.suffix not in (".npz", ".npy"):
        return {}
    try:
        return read_numpy(path)
    except UNREADABLE:  # which the reader of the data explains
        return {}


def _array(value: object, what: str) -> Array:
    try:
        array = numbers(value)
    except ValueError:  # lists of different lengths
        array = np.empty(0, object)
    if array.dtype == object:
        raise ConfigError(
            f"{what} is {type(value).__name__}, which is not an array of numbers",
            "a path, an array with one row per sample, or a dictionary of arrays by input name",
        )
    return array


def check_names(data: DataLike | None, graph: Graph) -> None:
    """Arrays by name must be those of inputs; ``in0``, ``in1``, … are the inputs in their order."""
    if not isinstance(data, Mapping):
        return
    known = {*graph.inputs, *(f"in{index}" for index in range(len(graph.inputs)))}
    wrong = next((str(name) for name in data if str(name) not in known), None)
    if wrong is not None:
        raise ConfigError(
            f"the model has no input {wrong!r}{did_you_mean(wrong, graph.inputs)}",
            f"its inputs: {', '.join(graph.inputs)}",
        )


def given(data: Path | None, what: str) -> Path:
    """The data, which must not be None."""
    if data is None:
        raise ConfigError(f"no {what} was given", "a path, or an array with one row per sample")
    return data


def check_data(path: Path) -> None:
    """Raise ConfigError if there is no such file or folder."""
    if not path.exists():
        raise ConfigError(f"there is no data {path}", ".npz, .npy, .csv or a folder")


@contextmanager
def test_set(data: DataLike, labels: DataLike | None) -> Iterator[tuple[Path, Path | None]]:
    """Data and labels as files. Labels can also be the name of an array in a .npz file."""
    with data_file(data, "data") as path, data_file(labels, "labels") as name:
        path = given(path, "data")
        if name is None or name.suffix or name.exists():
            yield path, name
            return
        try:
            arrays = read_numpy(path)
        except UNREADABLE:
            arrays = {}
        if name.name not in arrays:
            known = f" ({path.name} has {', '.join(arrays)})" if arrays else ""
            raise ConfigError(
                f"there are no labels {name.name!r}", f"a file, or the name of an array in the .npz{known}"
            )
        truth = arrays.pop(name.name)
        with data_file(arrays, "data") as rest, data_file(truth, "labels") as file:
            assert rest is not None
            yield rest, file
