# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Data of training frameworks as arrays: loaders of batches, sets of single samples, tables of pandas."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from tinyml.base.errors import ConfigError, TinymlError
from tinyml.datasets.csv_file import LABELS
from tinyml.ir import Array

FORM = "inputs, or (inputs, labels); inputs are an array, a tuple of arrays, or arrays by name"
BUFFERS = bytes | bytearray | memoryview
ENDLESS = -1
"""What tf.data says about the length of a data set that repeats itself."""


def as_arrays(data: Any) -> Any:
    """Arrays by name of a loader, a data set or a table; anything else as it is."""
    try:
        if hasattr(data, "columns") and hasattr(data, "drop"):
            return _of_table(data)
        found = _batches_of(data)
        return data if found is None else _joined(found)
    except TinymlError:
        raise
    except Exception as error:  # of a loader's own code
        raise _failed(data, error) from error


def _failed(data: Any, error: Exception) -> ConfigError:
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return ConfigError(
        f"reading the data ({type(data).__name__}) failed: {what}",
        "iterate over it in Python without tinyml, and mend it there",
    )


def _of_table(table: Any) -> Any:
    """A DataFrame of pandas: a column called like one of labels holds the labels, as in a .csv file."""
    named = [name for name in table.columns if str(name).strip().lower() in LABELS]
    if not named:
        return table
    return {"data": table.drop(columns=named[0]), "labels": table[named[0]]}


def _batches_of(data: Any) -> Iterable[Any] | None:
    """The batches or samples of PyTorch's DataLoader and Dataset, of tf.data, and of a list of pairs."""
    if isinstance(data, list):
        pairs = bool(data) and all(isinstance(one, tuple) and len(one) == 2 for one in data)
        return data if pairs else None
    if hasattr(data, "__array__") or isinstance(data, BUFFERS | str | tuple | Iterator | Mapping):
        return None
    if callable(cardinality := getattr(data, "cardinality", None)) and int(cardinality()) == ENDLESS:
        raise ConfigError("the data set repeats without end", "dataset.take(16): 16 batches of it")
    if hasattr(data, "__iter__"):
        batches: Iterable[Any] = data
        return batches
    if hasattr(data, "__getitem__") and hasattr(data, "__len__"):
        return (data[index] for index in range(len(data)))
    return None


def _joined(batches: Iterable[Any]) -> dict[str, Array]:
    """The rows of all batches. Labels are kept if they are one number for each row."""
    inputs: dict[str, list[Array]] = {}
    labels: list[Array] = []
    for batch in batches:
        try:
            given, truth = _parts(batch)
        except ValueError as error:  # lists of different lengths
            raise ConfigError(f"a batch of the data is not arrays of numbers: {error}", FORM) from None
        if inputs and given.keys() != inputs.keys():
            raise ConfigError(
                f"the batches of the data have different inputs: {_named(inputs)}, then {_named(given)}", FORM
            )
        single = truth is not None and truth.ndim == 0  # a sample, not a batch
        for name, rows in given.items():
            if rows.ndim == 0 and not single:
                message = f"an element of the data is {rows.item()!r}, not a batch of rows"
                raise ConfigError(message, "an array with one row per sample")
            inputs.setdefault(name, []).append(rows[np.newaxis] if single else rows)
        if truth is not None:
            labels.append(_classes(truth))
    if not inputs:
        raise ConfigError("the data has no batches", "an array with one row per sample")
    try:
        found = {name: np.concatenate(rows) for name, rows in inputs.items()}
    except ValueError as error:
        raise ConfigError(f"the batches of the data do not fit together: {error}", FORM) from None
    truth = np.concatenate(labels) if labels else np.empty(0)
    return {**found, "labels": truth} if labels and len(truth) == len(next(iter(found.values()))) else found


def _named(inputs: Mapping[str, Any]) -> str:
    return ", ".join(inputs) or "none"


def _classes(truth: Array) -> Array:
    """One label per row; the place of the one in one-hot rows."""
    if truth.ndim == 2 and truth.shape[1] > 1 and np.isin(truth, (0, 1)).all() and (truth.sum(1) == 1).all():
        return truth.argmax(1)
    return truth.reshape(-1)


def _parts(batch: Any) -> tuple[dict[str, Array], Array | None]:
    """The inputs of a batch by name, and its labels."""
    if not isinstance(batch, tuple | list):
        return _inputs(batch), None
    if len(batch) == 1:
        return _inputs(batch[0]), None
    if len(batch) == 2:
        return _inputs(batch[0]), numbers(batch[1])
    raise ConfigError(f"a batch of the data has {len(batch)} parts", FORM)


def _inputs(given: Any) -> dict[str, Array]:
    if isinstance(given, Mapping):
        return {str(name): numbers(rows) for name, rows in given.items()}
    if isinstance(given, tuple | list) and given and all(hasattr(one, "shape") for one in given):
        return {f"in{index}": numbers(rows) for index, rows in enumerate(given)}
    return {"data": numbers(given)}


def numbers(value: Any) -> Array:
    """An array; a tensor of PyTorch may still belong to a training, and a column of texts is one of names."""
    try:
        array = np.asarray(value.detach().cpu() if hasattr(value, "detach") else value)
    except ValueError:  # lists of different lengths, which the caller explains
        raise
    except Exception as error:  # of a tensor on another device, for example
        raise _failed(value, error) from error
    if array.dtype == object and array.size and all(isinstance(one, str) for one in array.flat):
        return array.astype(str)
    return array
