# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Data sets and loaders of training frameworks, and tables of pandas, as data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tinyml
from tinyml.api.batches import as_arrays, numbers
from tinyml.api.data import data_file

ROWS = np.arange(24, dtype=np.float32).reshape(6, 4)
TRUTH = np.array([0, 2, 1, 1, 0, 2])
VIEWED: Any = ROWS  # the stubs of numpy do not know that arrays are buffers


class Loader:
    """Batches of any form, like PyTorch's DataLoader and tf.data."""

    def __init__(self, *batches: Any) -> None:
        self.batches = batches

    def __iter__(self) -> Iterator[Any]:
        return iter(self.batches)


class Samples:
    """Single samples by index, like a Dataset of PyTorch."""

    def __len__(self) -> int:
        return len(ROWS)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        return ROWS[index], int(TRUTH[index])


class Endless(Loader):
    def cardinality(self) -> int:
        return -1


class Training:
    """A tensor of PyTorch that belongs to a training: numpy must not touch it."""

    def detach(self) -> Training:
        return self

    def cpu(self) -> Any:
        return ROWS


def halves(*arrays: Any) -> list[tuple[Any, ...]]:
    return [tuple(array[:4] for array in arrays), tuple(array[4:] for array in arrays)]


@pytest.mark.parametrize(
    "data",
    [
        Loader(*halves(ROWS, TRUTH)),
        Loader(*halves(ROWS, TRUTH.reshape(-1, 1))),
        Loader(*halves(ROWS, np.eye(3)[TRUTH])),
        halves(ROWS, TRUTH),
        Samples(),
        Loader(*(Samples()[index] for index in range(6))),
    ],
    ids=["pairs", "columns", "one-hot", "list", "samples", "unbatched"],
)
def test_rows_and_labels(data: Any) -> None:
    found = as_arrays(data)
    assert np.array_equal(found["data"], ROWS)
    assert np.array_equal(found["labels"], TRUTH)


def test_several_inputs() -> None:
    pairs = Loader(((ROWS[:4], TRUTH[:4]), TRUTH[:4]), ((ROWS[4:], TRUTH[4:]), TRUTH[4:]))
    assert {name: len(rows) for name, rows in as_arrays(pairs).items()} == {"in0": 6, "in1": 6, "labels": 6}
    named = Loader({"a": ROWS[:4], "b": TRUTH[:4]}, {"a": ROWS[4:], "b": TRUTH[4:]})
    assert {name: len(rows) for name, rows in as_arrays(named).items()} == {"a": 6, "b": 6}


def test_inputs_alone() -> None:
    for data in (Loader([ROWS[:4]], [ROWS[4:]]), Loader(ROWS[:4], ROWS[4:])):
        assert [*as_arrays(data)] == ["data"]
    reconstructed = as_arrays(Loader(*halves(ROWS, ROWS)))  # an autoencoder's targets are no labels
    assert [*reconstructed] == ["data"]


def test_what_is_no_batch_stays() -> None:
    for data in ([1.0, 2.0], ROWS, {"a": ROWS}, "file.npz", (ROWS, ROWS)):
        assert as_arrays(data) is data


def test_mistakes() -> None:
    with pytest.raises(tinyml.ConfigError, match=r"repeats without end\n.*take\(16\)"):
        as_arrays(Endless())
    with pytest.raises(tinyml.ConfigError, match="has 3 parts"):
        as_arrays(Loader(*halves(ROWS, ROWS, TRUTH)))
    with pytest.raises(tinyml.ConfigError, match="do not fit together"):
        as_arrays(Loader(ROWS, ROWS[:, :3]))
    with pytest.raises(tinyml.ConfigError, match="no batches"):
        as_arrays(Loader())
    ragged = [[1.0, 2.0], [3.0]]
    for batch in ((ragged, TRUTH[:2]), (ROWS[:2], ragged)):
        with pytest.raises(tinyml.ConfigError, match=r"is not arrays of numbers: .*inhomogeneous"):
            as_arrays(Loader(batch))
    others: tuple[Any, ...] = ({"b": ROWS}, ROWS, {})
    for other in others:  # the rows of one of them would be lost
        with pytest.raises(tinyml.ConfigError, match=r"different inputs: a, then (b|data|none)"):
            as_arrays(Loader({"a": ROWS}, other))


class Failing:
    """A loader whose file is missing, like one whose worker dies."""

    def __iter__(self) -> Iterator[Any]:
        yield ROWS
        raise FileNotFoundError("no such picture")


class Missing(Samples):
    def __getitem__(self, index: int) -> tuple[Any, int]:
        raise KeyError(index)


class Elsewhere:
    def __array__(self, *arguments: Any, **options: Any) -> Any:
        raise TypeError("can't convert a tensor of another device")


@pytest.mark.parametrize(
    "data,said",
    [
        (Failing(), r"\(Failing\) failed: FileNotFoundError: no such picture"),
        (Missing(), r"\(Missing\) failed: KeyError: 0"),
        (Loader(Elsewhere()), r"\(Elsewhere\) failed: TypeError: can't convert"),
        (Elsewhere(), r"\(Elsewhere\) failed: TypeError: can't convert"),
    ],
    ids=["loader", "samples", "batch", "array"],
)
def test_data_whose_own_code_fails(data: Any, said: str) -> None:
    with (
        pytest.raises(tinyml.ConfigError, match=f"reading the data {said}") as found,
        data_file(data, "data"),
    ):
        pass
    assert found.value.__cause__ is not None, "the place of the mistake is in the user's code"


def test_buffers_are_arrays() -> None:
    for data in (memoryview(VIEWED), bytearray(b"12"), memoryview(b"12")):
        assert as_arrays(data) is data
    with data_file(memoryview(VIEWED), "data") as path:
        assert path is not None
        assert np.array_equal(np.load(path)["data"], ROWS)
    with pytest.raises(tinyml.ConfigError, match="an element of the data is 0, not a batch of rows"):
        as_arrays(range(3))


def test_tensors_and_names() -> None:
    assert np.array_equal(numbers(Training()), ROWS)
    assert numbers(np.array(["no", "yes"], object)).dtype.kind == "U"


def test_a_table_of_pandas() -> None:
    pandas = pytest.importorskip("pandas", reason="tables are pandas's")
    table = pandas.DataFrame(ROWS, columns=list("abcd"))
    assert as_arrays(table) is table
    found = as_arrays(table.assign(Label=TRUTH))
    assert np.array_equal(np.asarray(found["data"]), ROWS)
    assert np.array_equal(np.asarray(found["labels"]), TRUTH)


def test_an_evaluation_prints_its_figures() -> None:
    evaluation = tinyml.Evaluation("kws", "host", 6, "classes")
    assert repr(evaluation) == "<Evaluation of kws on host: 6 samples>"
