# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The digits sample matches its README: accuracy, size, and a reproducible training script."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tinyml import harness
from tinyml.pipeline import Options, compile_model

pytest.importorskip("sklearn", reason="the digits data come with scikit-learn")

SAMPLE = Path(__file__).parents[2] / "samples" / "digits"


@pytest.fixture(scope="module")
def train() -> ModuleType:
    """The sample's own training script, as a module."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(SAMPLE)
        return importlib.import_module("train")


def stated_accuracy(model: str) -> float:
    """The figure in the README's table, in percent."""
    row = re.search(rf"``{re.escape(model)}``.* ([\d.]+) %", (SAMPLE / "README.rst").read_text())
    assert row, f"the README states no accuracy for {model}"
    return float(row[1])


@pytest.mark.parametrize("model", ["model_float.onnx", "model.onnx"])
def test_accuracy_is_as_stated(train: ModuleType, model: str) -> None:
    """onnxruntime on the committed files reproduces the README's figures exactly."""
    _, held_back = train.load()
    measured = round(100 * train.accuracy(SAMPLE / model, held_back), 2)
    assert measured == stated_accuracy(model)
    assert measured >= 97


def test_int8_costs_less_than_half_a_point() -> None:
    assert stated_accuracy("model_float.onnx") - stated_accuracy("model.onnx") <= 0.5


def test_held_back_images_are_not_trained_on(train: ModuleType) -> None:
    training, held_back = train.load()
    assert (len(training.labels), len(held_back.labels)) == (1437, 360)
    seen = {image.tobytes() for image in training.images}
    assert not any(image.tobytes() in seen for image in held_back.images)


@pytest.mark.deep
def test_training_can_be_repeated(train: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Training again gives the same network.

    The last bits of a sum depend on the processor's BLAS, so another machine may land on slightly different
    weights: the accuracy must agree to within two images of 360.
    """
    monkeypatch.setattr(train, "HERE", tmp_path)
    train.main()
    _, held_back = train.load()
    for model in ("model_float.onnx", "model.onnx"):
        again = 100 * train.accuracy(tmp_path / model, held_back)
        assert abs(again - stated_accuracy(model)) < 100 * 2.5 / len(held_back.labels)


def test_model_is_int8_qdq() -> None:
    """Weights int8 per channel, biases int32, float at the edges: what onnxruntime's quantiser writes."""
    model = onnx.load(SAMPLE / "model.onnx")
    values = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    for layer, channels in (("conv1", 8), ("conv2", 16), ("dense", 10)):
        assert values[f"{layer}.weight_quantized"].dtype == "int8"
        assert values[f"{layer}.weight_scale"].shape == (channels,)
        assert values[f"{layer}.bias_quantized"].dtype == "int32"
    assert {"QuantizeLinear", "DequantizeLinear"} <= {node.op_type for node in model.graph.node}
    assert [value.type.tensor_type.elem_type for value in (*model.graph.input, *model.graph.output)] == [
        onnx.TensorProto.FLOAT,
        onnx.TensorProto.FLOAT,
    ]


def test_inputs_of_the_application_are_current() -> None:
    """``src/inputs.h`` is what its script writes from the current model."""
    script = SAMPLE / "make_inputs.py"
    plugin = SAMPLE.parents[1] / "plugin"
    done = subprocess.run(
        [sys.executable, script, "--check"],
        env={**os.environ, "PYTHONPATH": str(plugin)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("model", ["model_float.onnx", "model.onnx"])
def test_generated_c_on_all_held_back_images(train: ModuleType, model: str) -> None:
    """The C agrees with onnxruntime: the quantised model exactly, the float model up to rounding."""
    _, held_back = train.load()
    compiled = compile_model(SAMPLE / model, Options(name="digits", target="host"))
    samples = [{"image": image[np.newaxis]} for image in held_back.images]
    result = harness.run_files(
        compiled.files, "host", samples, options=harness.Options(strict=True, sanitize=True)
    )
    answers = np.concatenate([outputs["logits"] for outputs in result.outputs])
    assert round(100 * float((answers.argmax(axis=1) == held_back.labels).mean()), 2) == stated_accuracy(
        model
    )

    expected = train.logits(SAMPLE / model, held_back)
    if model == "model_float.onnx":
        np.testing.assert_allclose(answers, expected, rtol=1e-5, atol=1e-5)
        return
    assert np.array_equal(answers, expected)
