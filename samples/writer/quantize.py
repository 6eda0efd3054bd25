# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Turn ``model_float.onnx`` into ``model.onnx``: weights, activations and caches of bytes.

    python quantize.py

Ranges come from paragraphs that the model has learnt from, each read from its beginning until the caches are
full. The last softmax stays float: in steps of 1/256, it would give most characters the probability 0.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from export import ROWS
from language_model import Array
from text import learnt, numbers

import tinyml

HERE = Path(__file__).resolve().parent
TEXTS = 5  # more do not help: the ranges of these hold for the others
LAST = "probabilities_2"  # the softmax, by its name in the report of `tinyml quantize`


def runs(texts: list[Array]) -> dict[str, Array]:
    """What each run reads, text by text: (texts, runs, and the shape of the input)."""
    character = np.stack([text[:ROWS] for text in texts]).astype(np.int32)
    position = np.broadcast_to(np.arange(ROWS, dtype=np.int32), character.shape)
    return {"character": character[:, :, None, None], "position": position[:, :, None]}


def calibration() -> dict[str, Array]:
    """Texts from all parts of what was learnt, as long as the caches; each starts as the application does."""
    texts = [numbers(["", line]) for line in learnt()]
    texts = [text for text in texts if len(text) >= ROWS]
    return runs(texts[:: len(texts) // TEXTS][:TEXTS])


def quantize(source: Path, result: Path) -> None:
    data = calibration()
    count = data["position"].size
    made = tinyml.quantize(source, data, method="minmax", keep_float=[LAST], samples=count)
    made.save(result)
    print(f"{result.name}: {result.stat().st_size} bytes; {made.report.headline()}")


if __name__ == "__main__":
    quantize(HERE / "model_float.onnx", HERE / "model.onnx")
