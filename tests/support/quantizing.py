# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Shared by tests of quantising: the digits, and an int8 model as compiled C."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import numpy as np
import onnx

from tinyml import harness
from tinyml.ir import Array
from tinyml.pipeline import Compiled
from tinyml.quantize.engine import Quantized

SAMPLE = Path(__file__).parents[2] / "samples" / "digits"
FLOAT = SAMPLE / "model_float.onnx"
GUIDE = (Path(__file__).parents[2] / "docs" / "quantize.md").read_text(encoding="utf-8")


def snippet(name: str) -> str:
    """The code in the guide after the mark ``<!-- tested: name -->``."""
    found = re.search(rf"<!-- tested: {name} -->\n```\w+\n(.*?)```", GUIDE, re.DOTALL)
    assert found, f"the guide has no tested code called {name}"
    return found[1]


@cache
def digits() -> tuple[Array, Array, Array]:
    """Images as the model takes them, labels, and which are held back (never used to calibrate)."""
    from sklearn.datasets import load_digits

    data = load_digits()
    images = (data.images / 16).astype(np.float32)[:, np.newaxis]
    return images, data.target, np.arange(len(images)) % 5 == 0


def write_calibration(folder: Path) -> Path:
    """Some of the images that are not held back, with their labels."""
    images, labels, held_back = digits()
    path = folder / "calib.npz"
    np.savez(path, image=images[~held_back][:200], labels=labels[~held_back][:200])
    return path


def saved(result: Quantized, folder: Path) -> Path:
    onnx.save(result.model, folder / "int8.onnx")
    return folder / "int8.onnx"


def kinds(compiled: Compiled) -> list[tuple[str, str]]:
    return [(layer.op.kind, layer.output.dtype.value) for layer in compiled.graph.layers()]


def run_host(compiled: Compiled, images: Array) -> Array:
    (name,) = compiled.graph.inputs
    samples = [{name: image[np.newaxis]} for image in images]
    result = harness.run_files(compiled.files, "host", samples)
    return np.concatenate([next(iter(out.values())).reshape(1, -1) for out in result.outputs])
