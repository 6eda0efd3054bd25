# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Train the language model on the prose of Python's language reference, and write ``model_float.onnx``
and ``model.onnx``, its int8 form.

    python train.py [FOLDER]

In numpy, with Adam; the last third of the steps computes with the weights that four bits stand for, so
that the model learns to live with them. Every tenth paragraph is held back; it gives the loss.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from export import write
from language_model import LENGTH, Array, Weights, first_weights, loss, rounded
from quantize import quantize
from text import CHARACTERS, held_back, learnt, numbers
from threadpoolctl import threadpool_limits  # comes with scikit-learn

HERE = Path(__file__).resolve().parent
STEPS, SAMPLES = 3000, 24
FLOAT_STEPS = STEPS * 2 // 3  # before weights have four bits
RATE = 3e-3
SEED = 39


def batch(text: Array, random: np.random.Generator) -> tuple[Array, Array]:
    starts = random.integers(0, len(text) - LENGTH, SAMPLES)
    places = starts[:, None] + np.arange(LENGTH)
    return text[places], text[places + 1]


def held_back_loss(weights: Weights, text: Array) -> float:
    """The loss of the text, a stretch at a time."""
    count = (len(text) - 1) // LENGTH
    places = np.arange(count)[:, None] * LENGTH + np.arange(LENGTH)
    return loss(weights, text[places], text[places + 1], learning=False)[0]


def train(text: Array, test: Array) -> Weights:
    random = np.random.default_rng(SEED)
    weights = first_weights(len(CHARACTERS), random)
    means, squares = ({name: np.zeros_like(value) for name, value in weights.items()} for _ in range(2))
    for step in range(STEPS):
        used = weights if step < FLOAT_STEPS else rounded(weights)
        value, gradients = loss(used, *batch(text, random))
        norm = np.sqrt(sum(float(np.sum(g * g)) for g in gradients.values()))
        clip = min(1.0, 1.0 / norm)
        rate = RATE * min(1.0, (step + 1) / 100) * (0.02 + 0.98 * 0.5 * (1 + np.cos(np.pi * step / STEPS)))
        for name, gradient in gradients.items():
            gradient = gradient * clip
            means[name] = 0.9 * means[name] + 0.1 * gradient
            squares[name] = 0.99 * squares[name] + 0.01 * gradient * gradient
            mean, square = means[name] / (1 - 0.9 ** (step + 1)), squares[name] / (1 - 0.99 ** (step + 1))
            change = mean / (np.sqrt(square) + 1e-8)
            if weights[name].ndim == 2:
                change = change + 0.05 * weights[name]
            weights[name] = (weights[name] - rate * change).astype(np.float32)
        if step % 100 == 99:
            print(
                f"step {step + 1}: loss {value:.3f}, held back {held_back_loss(used, test):.3f}", flush=True
            )
    return weights


def main() -> None:
    text, test = numbers(learnt()), numbers(held_back())
    print(f"{len(text)} characters to learn from, {len(test)} held back; {len(CHARACTERS)} different ones")
    with threadpool_limits(1):  # so that nothing but the seed decides the result
        weights = train(text, test)
    print(f"with four bits: held back {held_back_loss(rounded(weights), test):.3f} nats per character")
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    write(weights, folder / "model_float.onnx")
    quantize(folder / "model_float.onnx", folder / "model.onnx")


if __name__ == "__main__":
    main()
