# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Gradients and steps of a last layer against PyTorch's, within 1e-6."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support import record_torch_steps as torch_steps
from tests.support.record_torch_steps import BATCH, CASES, CLASSES, RECORDED, STEPS, W_SCALE, X_SCALE, X_ZERO
from tinyml.adapt.last import LastLayer
from tinyml.adapt.plan import CROSS_ENTROPY, Last

NEAR = 1e-6


def part(settings: dict[str, float]) -> Last:
    """The layer as the compiler plans it, without limits."""
    given = torch_steps.layer()
    rate = settings["lr"]
    weights = given["weights"]
    ones = np.ones(CLASSES)
    return Last(
        "x",
        "y",
        weights,
        (given["bias"] - X_ZERO * weights.astype(np.int64).sum(axis=1)).astype(np.int32),
        np.full(CLASSES, 1 << 30, np.int64),
        np.full(CLASSES, -8, np.int64),
        X_ZERO,
        0,
        -128,
        127,
        False,
        ones * W_SCALE,
        (ones * X_SCALE * W_SCALE).astype(np.float32),
        (ones * rate * X_SCALE / W_SCALE).astype(np.float32),
        (ones * rate / (X_SCALE * W_SCALE)).astype(np.float32),
        (ones * 1e9).astype(np.float32),
        (ones * 1e9).astype(np.float32),
        rate,
        rate * settings.get("weight_decay", 0.0),
        settings.get("momentum", 0.0),
        BATCH,
        CROSS_ENTROPY,
        True,
    )


def steps(settings: dict[str, float]) -> tuple[Any, Any]:
    """Differences of weights and biases after each step, in real numbers."""
    given, layer = torch_steps.layer(), LastLayer(part(settings))
    weights, biases = [], []
    for rows, labels in zip(given["x"], given["labels"], strict=True):
        layer.begin()
        for row, label in zip(rows, labels, strict=True):
            layer.run(row)
            layer.learn(int(label))
        layer.end()
        weights.append(layer.values[CLASSES:].reshape(CLASSES, -1).astype(np.float64) * W_SCALE)
        biases.append(layer.values[:CLASSES].astype(np.float64) * X_SCALE * W_SCALE)
    return np.asarray(weights), np.asarray(biases)


def compare(settings: dict[str, float], expected: dict[str, Any]) -> None:
    weights, biases = steps(settings)
    assert weights.shape == expected["moved"].shape
    assert len(weights) == STEPS
    assert np.abs(expected["moved"]).max() > 0.005  # far more than the tolerance
    assert np.abs(weights - expected["moved"]).max() < NEAR
    assert np.abs(biases - expected["moved_bias"]).max() < NEAR
    # The first step is the gradient itself: nothing has decayed, nothing has speed.
    rate = settings["lr"]
    assert np.abs(-weights[0] - rate * expected["gradient"]).max() < NEAR * rate
    assert np.abs(-biases[0] - rate * expected["gradient_bias"]).max() < NEAR * rate


@pytest.mark.parametrize("case", CASES)
def test_recorded_steps(case: str) -> None:
    with np.load(RECORDED) as recorded:
        expected = {
            key: recorded[f"{case}_{key}"] for key in ("moved", "moved_bias", "gradient", "gradient_bias")
        }
    compare(CASES[case], expected)


@pytest.mark.parametrize("case", CASES)
def test_steps_of_torch_itself(case: str) -> None:
    pytest.importorskip("torch", reason="torch is not installed; test_recorded_steps has what it computed")
    compare(CASES[case], torch_steps.by_torch(CASES[case]))
