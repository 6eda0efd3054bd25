# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The sample's model, compiled, on every machine: real digits, the same numbers everywhere."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tinyml import harness
from tinyml.ir import Array
from tinyml.pipeline import Compiled, Options, compile_model
from tinyml.reference.session import Session
from tinyml.setup.workspace import find_cmsis_nn

MODEL = Path(__file__).resolve().parents[2] / "samples" / "digits" / "model.onnx"


@cache
def digits() -> Array:
    """The last images of the data set, as many as take no time, in the shape of the model's input."""
    from sklearn.datasets import load_digits

    images = load_digits().images[-16:] / 16
    return images.astype(np.float32).reshape(-1, 1, 1, 8, 8)


def compiled_for(machine: str, kernels: str) -> Compiled:
    target = harness.find_machine(machine).target.name
    return compile_model(MODEL, Options(name="digits", target=target, kernels=kernels))


def run(compiled: Compiled, machine: str, options: harness.Options) -> harness.Result:
    (name,) = compiled.graph.inputs
    return harness.run_files(compiled.files, machine, [{name: image} for image in digits()], options=options)


def stacked(result: harness.Result) -> Array:
    return np.concatenate([array for out in result.outputs for array in out.values()])


@cache
def on_host() -> Array:
    options = harness.Options(strict=True, sanitize=True)
    return stacked(run(compiled_for("host", "portable"), "host", options))


def test_host_agrees_with_onnxruntime() -> None:
    session = Session(MODEL)
    expected = np.concatenate([session.run({"image": image})["logits"] for image in digits()])
    np.testing.assert_array_equal(on_host(), expected)


@pytest.mark.parametrize("kernels", ["portable", "cmsis-nn"])
@pytest.mark.parametrize("machine", harness.CORES)
def test_same_numbers_on_every_machine(machine: str, kernels: str) -> None:
    if kernels == "cmsis-nn" and find_cmsis_nn() is None:
        pytest.skip("no CMSIS-NN here (TINYML_CMSIS_NN, or a west workspace)")
    compiled = compiled_for(machine, kernels)
    result = run(compiled, machine, harness.Options(strict=True))
    np.testing.assert_array_equal(stacked(result), on_host())
    assert result.footprint is not None
    convolutions = [chosen for chosen in compiled.selected if chosen.layer.op.kind == "Conv"]
    assert {chosen.kernel.library.value for chosen in convolutions} == {kernels}
    if kernels == "portable":
        assert result.footprint.part("cmsis-nn").text == 0
    assert result.stack_bytes is not None
    assert result.stack_bytes < 1024
