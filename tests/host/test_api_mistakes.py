# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Mistakes in calls of the Python API end in a message, as on the command line."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinyml
from tinyml.api import frameworks
from tinyml.api.data import data_file
from tinyml.api.wording import translated
from tinyml.base.errors import ConfigError
from tinyml.datasets import arrays, numpy_file
from tinyml.datasets.model_inputs import load_samples
from tinyml.reference import session

DIGITS = Path(__file__).parents[2] / "samples" / "digits"
FLOAT = DIGITS / "model_float.onnx"


@pytest.mark.parametrize(
    "calibration, message",
    [
        (None, "no calibration was given"),
        ((np.zeros((1, 1, 8, 8)) for _ in range(3)), "calibration is generator, which is not an array"),
        ([[1, 2], [3]], "calibration is list, which is not an array of numbers"),
        ({"image": {"a": 1}}, "calibration is dict, which is not an array of numbers"),
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

    monkeypatch.setattr(numpy_file, "read_numpy", refused)
    (tmp_path / "x.npz").touch()
    graph = tinyml.load(FLOAT)._graph
    with pytest.raises(ConfigError, match=r"cannot read .*x\.npz: Permission denied"):
        load_samples(tmp_path / "x.npz", graph)


def test_hints_name_parameters_not_options() -> None:
    """The same checks serve the command line, whose hints name its options."""
    pixels = np.arange(3 * 64).reshape(3, 1, 8, 8) % 17
    with pytest.raises(ConfigError, match=r"try: range=\(0, 1\) if the training divided") as refused:
        tinyml.quantize(FLOAT, pixels)
    assert "--" not in str(refused.value)
    assert translated("--shape x=1x16x8 sets it") == "shapes={'x': (1, 16, 8)} sets it"
    assert translated("--keep-float conv1, or --auto 30dB") == "keep_float='conv1', or auto='30dB'"
    assert translated("add --test") == "add test"
    assert tinyml.quantize is tinyml.quantize
    assert tinyml.quantize.__doc__


def test_arrays_have_the_names_of_inputs() -> None:
    with pytest.raises(ConfigError, match="the model has no input 'img'"):
        tinyml.run(FLOAT, {"img": np.zeros((1, 1, 8, 8), np.float32)})
    by_place = tinyml.run(FLOAT, {"in0": np.zeros((1, 1, 8, 8), np.float32)})
    by_name = tinyml.run(FLOAT, {"image": np.zeros((1, 1, 8, 8), np.float32)})
    assert list(by_place.outputs) == list(by_name.outputs)


def test_labels_outside_the_classes_are_no_regression() -> None:
    rows = np.zeros((3, 1, 8, 8), np.float32)
    with pytest.raises(ConfigError, match="sample 1 has the label 12, and the model has 10 classes"):
        tinyml.evaluate(FLOAT, rows, np.array([0, 12, 3]))


class Loader:
    """What PyTorch's DataLoader is to us: batches of inputs and labels, the last one shorter."""

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        generator = np.random.default_rng(1)
        for count in (16, 16, 5):
            yield generator.uniform(0, 1, (count, 1, 8, 8)).astype(np.float32), np.arange(count) % 10


@pytest.mark.parametrize("make", [Loader, lambda: list(Loader())], ids=["loader", "list"])
def test_batches_are_data(make: Callable[[], Any]) -> None:
    with data_file(make(), "data") as path:
        assert path is not None
        arrays_read = arrays.read_numpy(path)
    assert arrays_read["data"].shape == (37, 1, 8, 8)
    assert arrays_read["labels"].tolist()[-5:] == [0, 1, 2, 3, 4]
    assert tinyml.evaluate(FLOAT, make()).samples == 37


def test_the_innermost_cause_of_a_failed_export() -> None:
    error = RuntimeError("Failed to export the model. \x1b[96mNext steps:\x1b[0m")
    error.__cause__ = ValueError("\x1b[31mthe real reason\x1b[0m\nand more")
    assert frameworks.innermost(error) == "ValueError: the real reason"


def test_onnxruntime_that_is_there_and_does_not_load(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime.quantization", None)
    with pytest.raises(tinyml.ToolError, match="onnxruntime is installed, but cannot be imported"):
        session.require()


def test_a_session_of_the_reference() -> None:
    image = np.zeros((1, 1, 8, 8), np.float32)
    (scores,) = tinyml.reference_session(DIGITS / "model.onnx").run({"image": image}).values()
    (ours,) = tinyml.run(DIGITS / "model.onnx", image).outputs.values()
    np.testing.assert_array_equal(scores, ours)
