# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Example inputs of PyTorch modules: the first sample of calibration data; and a note about batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinyml
from tests.support.onnx_models import model, node
from tinyml.api.data import example_of
from tinyml.verbs.cli import main

PICTURES = np.random.default_rng(4).normal(0, 1, (40, 1, 8, 8))
LABELS = np.arange(40) % 3


@pytest.mark.parametrize(
    "data",
    [
        PICTURES,
        {"x": PICTURES, "labels": LABELS},
        [(PICTURES[:20], LABELS[:20]), (PICTURES[20:], LABELS[20:])],
    ],
    ids=["array", "by name", "batches"],
)
def test_first_sample_of_arrays(data: Any) -> None:
    (found,) = example_of(data)()
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, PICTURES[:1].astype(np.float32))


def test_first_sample_of_files(tmp_path: Path) -> None:
    np.savez(tmp_path / "c.npz", a=PICTURES, b=np.arange(80).reshape(40, 2), labels=LABELS)
    np.save(tmp_path / "c.npy", PICTURES)
    (tmp_path / "c.csv").write_text("1,2\n3,4\n")
    a, b = example_of(tmp_path / "c.npz")()
    assert (a.shape, b.shape, b.dtype.kind) == ((1, 1, 8, 8), (1, 2), "i")
    assert example_of(str(tmp_path / "c.npy"))()[0].shape == (1, 1, 8, 8)
    assert example_of(tmp_path / "c.csv")() is None  # the shape is not in the file
    (tmp_path / "broken.npz").write_bytes(b"PK broken")
    assert example_of(tmp_path / "broken.npz")() is None
    with pytest.raises(tinyml.ConfigError, match="there is no data"):
        example_of(tmp_path / "missing.npz")()


def test_data_without_samples_gives_no_example() -> None:
    assert example_of(np.zeros(3))() is None
    assert example_of(np.zeros((0, 3)))() is None


def test_a_module_gets_its_example_from_the_calibration_data() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    pytest.importorskip("onnxruntime", reason="the quantiser is onnxruntime's")
    torch.manual_seed(1)
    module = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.Flatten(), torch.nn.Linear(144, 3))
    by_hand = tinyml.quantize(module, PICTURES, example=torch.zeros(1, 1, 8, 8))
    assert tinyml.quantize(module, PICTURES).content == by_hand.content
    compiled = tinyml.compile(module, calibration=PICTURES)
    assert compiled.summary["inputs"][0]["shape"] == [1, 1, 8, 8]
    loader = torch.utils.data.DataLoader([(p.astype(np.float32), 0) for p in PICTURES], batch_size=32)
    assert tinyml.compile(module, calibration=loader).arena_bytes == compiled.arena_bytes
    assert not any("batch" in note for note in compiled.notes)
    large = tinyml.compile(module, torch.zeros(32, 1, 8, 8))
    assert any("axis of 32" in note for note in large.notes)


def dense(tmp_path: Path, rows: int) -> Path:
    path = tmp_path / f"m{rows}.onnx"
    weights = np.ones((8, 4), np.float32)
    path.write_bytes(model([node("Gemm", "x w", "y")], {"x": [rows, 8]}, "y", w=weights))
    return path


def test_a_batch_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = dense(tmp_path, 32)
    words = "begins with an axis of 32. If that is a batch, each run computes 32 samples"
    assert any(words in note for note in tinyml.compile(path).notes)
    (tmp_path / "CMakeLists.txt").write_text("find_package(Zephyr)\nproject(app)\n")
    for command in (
        ["compile", str(path), "-o", str(tmp_path / "out")],
        ["add", str(path), "--app", str(tmp_path)],
    ):
        assert main(command) == 0
        assert words in capsys.readouterr().out


def test_one_sample_and_other_axes_are_no_batch(tmp_path: Path) -> None:
    assert not tinyml.compile(dense(tmp_path, 1)).notes
    path = tmp_path / "mean.onnx"
    path.write_bytes(model([node("ReduceMean", "x", "y", axes=[0])], {"x": [32, 8]}, "y", opset=13))
    assert not tinyml.compile(path).notes
