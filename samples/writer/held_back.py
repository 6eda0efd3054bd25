# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Bits that the models need for a character of the texts that were held back: ``python held_back.py``.

The C of the models reads every text from its beginning until the caches are full, as the application does.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from export import ROWS, TEMPERATURE
from text import held_back, numbers

import tinyml

HERE = Path(__file__).resolve().parent
MODELS = ("model.onnx", "model_float.onnx")


def bits_per_character(model: Path, lines: list[str]) -> float:
    """The mean of -log2 of the probabilities, as the model learnt them: at temperature 1."""
    texts = [numbers(["", line])[: ROWS + 1] for line in lines]
    read = np.concatenate([text[:-1] for text in texts])
    following = np.concatenate([text[1:] for text in texts])
    places = np.concatenate([np.arange(len(text) - 1) for text in texts])
    runs = {"character": read[:, None, None].astype(np.int32), "position": places[:, None].astype(np.int32)}
    written = tinyml.run(model, runs)["probabilities"].reshape(len(read), -1)
    likely = written.astype(np.float64) ** TEMPERATURE
    return float(-np.log2(likely[np.arange(len(read)), following] / likely.sum(axis=1)).mean())


def main() -> None:
    for name in MODELS:
        print(f"{name}: {bits_per_character(HERE / name, held_back()):.3f} bits per character")


if __name__ == "__main__":
    main()
