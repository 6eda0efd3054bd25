# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Record what PyTorch's SGD makes of a last layer: ``python -m tests.support.record_torch_steps``.

It needs torch, which the development environment lacks. ``tests/host/test_adapt_torch.py`` compares the
simulation, and so the C, with tests/recorded/torch_steps.npz, and with torch itself where there is one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

RECORDED = Path(__file__).parents[1] / "recorded" / "torch_steps.npz"
CASES: dict[str, dict[str, float]] = {
    "plain": {"lr": 0.002},
    "momentum": {"lr": 0.002, "momentum": 0.9},
    "decay": {"lr": 0.002, "weight_decay": 0.05},
    "all": {"lr": 0.001, "momentum": 0.5, "weight_decay": 0.1},
}
STEPS, FEATURES, CLASSES, BATCH = 12, 24, 5, 3
X_SCALE, X_ZERO, W_SCALE = 0.03125, -128, 0.0078125  # powers of two: weights and inputs are exact


def layer() -> dict[str, Any]:
    """Stored integers of a layer, inputs and labels, the same for both sides."""
    random = np.random.default_rng(37)
    return {
        "weights": random.integers(-127, 128, (CLASSES, FEATURES)).astype(np.int8),
        "bias": random.integers(-4000, 4000, CLASSES).astype(np.int32),
        "x": random.integers(-128, 60, (STEPS, BATCH, FEATURES)).astype(np.int8),
        "labels": random.integers(0, CLASSES, (STEPS, BATCH)),
    }


def by_torch(settings: dict[str, float]) -> dict[str, Any]:
    """Differences of weights and biases after each step, and the gradients of the first one, in float64."""
    import torch

    given = layer()
    weights = torch.tensor(given["weights"] * W_SCALE, dtype=torch.float64)
    bias = torch.tensor(given["bias"] * X_SCALE * W_SCALE, dtype=torch.float64)
    # Weights decay towards those of the file: what is trained is the difference.
    moved = torch.zeros_like(weights, requires_grad=True)
    moved_bias = torch.zeros_like(bias, requires_grad=True)
    optimizer = torch.optim.SGD([moved, moved_bias], **settings)
    found: dict[str, Any] = {"moved": [], "moved_bias": []}
    for x, labels in zip(given["x"], given["labels"], strict=True):
        real = torch.tensor((x.astype(np.float64) - X_ZERO) * X_SCALE)
        logits = real @ (weights + moved).T + bias + moved_bias
        loss = torch.nn.functional.cross_entropy(logits, torch.tensor(labels))
        optimizer.zero_grad()
        loss.backward()
        assert moved.grad is not None
        assert moved_bias.grad is not None
        found.setdefault("gradient", moved.grad.numpy().copy())
        found.setdefault("gradient_bias", moved_bias.grad.numpy().copy())
        optimizer.step()
        found["moved"].append(moved.detach().numpy().copy())
        found["moved_bias"].append(moved_bias.detach().numpy().copy())
    return {key: np.asarray(value) for key, value in found.items()}


def main() -> None:
    found = {
        f"{case}_{key}": value
        for case, settings in CASES.items()
        for key, value in by_torch(settings).items()
    }
    np.savez_compressed(RECORDED, **found)
    print(f"{len(CASES)} cases -> {RECORDED.name}")


if __name__ == "__main__":
    main()
