# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Functions and modules of JAX as models: the C computes what they compute."""

from __future__ import annotations

import importlib.util
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tinyml

IMAGE = np.random.default_rng(0).random((1, 12, 12, 1), np.float32)


@pytest.fixture
def network() -> Any:
    """A small convolutional network as a plain function of JAX."""
    jax = pytest.importorskip("jax", reason="models of JAX need it")
    if not importlib.util.find_spec("jax2onnx"):
        pytest.importorskip("tensorflow", reason="models of JAX need jax2onnx, or TensorFlow for jax2tf")
    random = np.random.default_rng(1)
    kernel = random.standard_normal((3, 3, 1, 4)).astype(np.float32)
    weights = random.standard_normal((6 * 6 * 4, 5)).astype(np.float32)

    def function(image: Any) -> Any:
        layout = ("NHWC", "HWIO", "NHWC")
        found = jax.lax.conv_general_dilated(image, kernel, (2, 2), "SAME", dimension_numbers=layout)
        return jax.nn.relu(found).reshape(image.shape[0], -1) @ weights

    return function


@pytest.mark.parametrize("jitted", [False, True], ids=["plain", "jitted"])
def test_a_function_computes_the_same_as_c(network: Any, jitted: bool) -> None:
    if jitted:
        network = sys.modules["jax"].jit(network)
    model = tinyml.load(network, IMAGE)
    assert [port.shape for port in (*model.inputs, *model.outputs)] == [(1, 12, 12, 1), (1, 5)]
    (found,) = tinyml.run(model, IMAGE).outputs.values()
    np.testing.assert_allclose(found, np.asarray(network(IMAGE)), rtol=1e-4, atol=1e-4)


def test_calibration_data_is_the_example(network: Any) -> None:
    pytest.importorskip("onnxruntime", reason="the quantiser is onnxruntime's")
    samples = np.random.default_rng(2).random((20, 12, 12, 1), np.float32)
    quantized = tinyml.quantize(network, samples)
    assert quantized.inputs[0].shape == (1, 12, 12, 1)
    assert quantized.report.decibels > 20


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def function(image: Any) -> Any:
        return image + 1

    monkeypatch.delitem(sys.modules, "jax", raising=False)
    with pytest.raises(tinyml.ConfigError, match=r"function is not a model"):
        tinyml.load(function)
    monkeypatch.setitem(sys.modules, "jax", SimpleNamespace(jit=lambda traced: traced))
    with pytest.raises(tinyml.ConfigError, match="a JAX function needs example inputs"):
        tinyml.load(function)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(tinyml.ToolError, match="a JAX function needs jax2onnx") as missing:
        tinyml.load(function, (1, 4))
    assert "pip install jax2onnx" in missing.value.hint
    with pytest.raises(tinyml.ConfigError, match="object is not a model"):
        tinyml.load(object())
