# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Mistakes in calls of the Python API end in a message, as on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinyml
from tinyml import arrays
from tinyml.api.data import data_file
from tinyml.errors import ConfigError

DIGITS = Path(__file__).parents[2] / "samples" / "digits"
FLOAT = DIGITS / "model_float.onnx"


@pytest.mark.parametrize(
    "calibration, message",
    [
        (None, "no calibration was given"),
        ((np.zeros((1, 1, 8, 8)) for _ in range(3)), "calibration is generator, which is no array"),
        ([[1, 2], [3]], "calibration is list, which is no array of numbers"),
        ({"image": {"a": 1}}, "calibration is dict, which is no array of numbers"),
    ],
    ids=["none", "generator", "ragged", "nested"],
)
def test_calibration_that_is_no_data(calibration: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        tinyml.quantize(FLOAT, calibration)


def test_no_test_set() -> None:
    with pytest.raises(ConfigError, match="no data was given"):
        tinyml.evaluate(DIGITS / "model.onnx", None)


def test_an_input_may_be_called_file() -> None:
    """`numpy.savez` has an argument of that name."""
    with data_file({"file": np.ones(3)}, "calibration") as path:
        assert path is not None
        assert list(arrays.read_numpy(path)) == ["file"]


def test_shapes_as_on_the_command_line() -> None:
    assert tinyml.load(FLOAT, shapes={"image": "1x1x8x8"}).inputs[0].shape == (1, 1, 8, 8)  # type: ignore[dict-item]
    with pytest.raises(ConfigError, match="'1xx8' is not a shape for 'image'"):
        tinyml.load(FLOAT, shapes={"image": "1xx8"})  # type: ignore[dict-item]
    with pytest.raises(ConfigError, match="shapes is list, not a dictionary"):
        tinyml.load(FLOAT, shapes=[1, 8])  # type: ignore[arg-type]


def test_a_single_file_with_operators() -> None:
    with pytest.raises(tinyml.TinymlError, match=r"cannot read the operators in mine\.py"):
        tinyml.compile(FLOAT, operators="mine.py")


def test_an_input_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: Path) -> Any:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(arrays, "read_numpy", refused)
    graph = tinyml.load(FLOAT)._graph
    with pytest.raises(ConfigError, match=r"cannot read .*x\.npz: Permission denied"):
        arrays.load_samples(tmp_path / "x.npz", graph)
