# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Float models made int8, on an emulated Cortex-M: as right as float, a quarter of the size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest

from tinyml import harness
from tinyml.ir import Array
from tinyml.pipeline import Compiled, Options, compile_model
from tinyml.quantize.engine import Quantized, quantize
from tinyml.quantize.measure import Noise
from tinyml.reference.session import Session
from tinyml.settings.quantize_request import Request

pytest.importorskip("onnxruntime", reason="the quantiser is onnxruntime's")
pytest.importorskip("sklearn", reason="the digits data come with scikit-learn")

from tests.support import readouts, spikes
from tests.support.interpret import interpret

DIGITS = Path(__file__).resolve().parents[2] / "samples" / "digits" / "model_float.onnx"
MACHINE = "qemu-cortex-m3"


def compiled(result: Quantized, folder: Path, machine: str = MACHINE) -> Compiled:
    onnx.save(result.model, folder / "int8.onnx")
    return compile_model(folder / "int8.onnx", Options("int8", harness.find_machine(machine).target.name))


def answers(model: Compiled, images: Array, machine: str = MACHINE) -> Array:
    (name,) = model.graph.inputs
    shape = model.graph.tensors[name].shape
    samples = [{name: image.reshape(shape)} for image in images]
    outputs = harness.run_files(model.files, machine, samples).outputs
    return np.stack([next(iter(out.values())).reshape(-1) for out in outputs])


def accuracy(found: Array, labels: Array) -> float:
    """In points."""
    return 100 * float(np.mean(found.argmax(axis=1) == labels))


def by_runtime(model: onnx.ModelProto, images: Array) -> Array:
    """What onnxruntime computes, node by node."""
    session = Session(model)
    name, output = model.graph.input[0].name, model.graph.output[0].name
    return np.concatenate([session.run({name: image[np.newaxis]})[output] for image in images])


def test_digits_on_the_device(tmp_path: Path) -> None:
    """All images that were held back: within half a point of float, and what onnxruntime gives on int8."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    images = (digits.images / 16).astype(np.float32)[:, np.newaxis]
    held_back = np.arange(len(images)) % 5 == 0
    np.save(tmp_path / "calib.npy", images[~held_back][:200])
    result = quantize(DIGITS, Request(tmp_path / "calib.npy"))
    found = answers(compiled(result, tmp_path), images[held_back])
    labels = digits.target[held_back]
    in_float = accuracy(by_runtime(onnx.load(DIGITS), images[held_back]), labels)
    assert in_float - accuracy(found, labels) <= 0.5
    off = np.abs(found - by_runtime(result.model, images[held_back]))
    assert np.mean(off < 1e-5) > 0.999  # the rest: halves that float arithmetic rounds the other way
    assert off.max() < 0.2  # one step of the logits


@pytest.mark.parametrize("make", [readouts.convolution, readouts.recurrent])
def test_one_dimension_and_recurrence(make: Callable[[], readouts.Trained], tmp_path: Path) -> None:
    """A 1-D network and a GRU are int8 throughout. Both stay as accurate."""
    trained = make()
    onnx.save(trained.model, tmp_path / "float.onnx")
    np.save(tmp_path / "calib.npy", trained.training[:128])
    result = quantize(tmp_path / "float.onnx", Request(tmp_path / "calib.npy"))
    images, labels = trained.held_back[:120], trained.labels[:120]
    model = compiled(result, tmp_path)
    dense = [layer for layer in model.graph.layers() if layer.op.kind == "Dense"]
    assert [layer.output.dtype.value for layer in dense] == ["int8"]
    plain = compile_model(
        tmp_path / "float.onnx", Options("plain", harness.find_machine(MACHINE).target.name)
    )
    assert model.summary["weights_bytes"] < 0.3 * plain.summary["weights_bytes"]
    in_float = accuracy(by_runtime(trained.model, images), labels)
    assert in_float > 90
    assert in_float - accuracy(answers(model, images), labels) <= 1.7  # two images of 120


def test_mixed_model_on_the_device(tmp_path: Path) -> None:
    """One layer kept in float among int8 ones."""
    trained = readouts.convolution()
    onnx.save(trained.model, tmp_path / "float.onnx")
    np.save(tmp_path / "calib.npy", trained.training[:64])
    request = Request(tmp_path / "calib.npy", method="minmax", keep_float=("conv",))
    result = quantize(tmp_path / "float.onnx", request)
    model = compiled(result, tmp_path)
    types = {layer.op.kind: layer.output.dtype.value for layer in model.graph.layers()}
    assert (types["Conv"], types["Dense"]) == ("float32", "int8")
    images = trained.held_back[:8]
    step = next(layer for layer in model.graph.layers() if layer.op.kind == "Dense").output.quant
    assert step is not None
    wanted = by_runtime(result.model, images)
    np.testing.assert_allclose(answers(model, images), wanted, atol=1.01 * step.scale)


@pytest.mark.parametrize("machine", harness.CORES)
def test_int16_on_the_device(machine: str, tmp_path: Path) -> None:
    """int8 and int16 layers in one model: every core computes what numpy does, and what int8 cannot."""
    path, request = spikes.write(tmp_path)
    result = quantize(path, replace(request, int16=(spikes.WEAK,)))
    model = compiled(result, tmp_path, machine)
    assert {layer.output.dtype.value for layer in model.graph.layers()} == {"int16", "int8", "float32"}
    images = spikes.inputs()[:8]
    found = answers(model, images, machine)
    (name,) = model.graph.inputs
    wanted = [interpret(model.graph, {name: image[np.newaxis]}) for image in images]
    np.testing.assert_array_equal(found, np.stack([next(iter(w.values())).reshape(-1) for w in wanted]))
    noise = Noise()
    noise.add(by_runtime(onnx.load(path), images), found)
    assert noise.decibels > 35
