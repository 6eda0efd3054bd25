# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The hand-written model of the harness tests. See ``toy.c`` for what its modes do."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tinyml.ir import Array

BUS_FAULT = -1
DIVISION_BY_ZERO = -2
STACK_OVERFLOW = -3
UNDEFINED_INSTRUCTION = -4
ENDLESS_LOOP = -5
FAILURE = -6
DEEP_STACK = -7
OUT_OF_BOUNDS = -8
OVERFLOW = -9

OFFSETS = np.array([[100, 200], [300, 400]], np.int16)


def write(folder: Path, target: str, cmsis_nn: Sequence[str] = ()) -> Path:
    """The model as if it had been compiled into ``folder`` for ``target``."""
    here = Path(__file__).parent
    for name in ("toy.c", "toy.h"):
        shutil.copy(here / name, folder / name)
    summary = {
        "name": "toy",
        "target": target,
        "inputs": [
            {"name": "x", "shape": [2, 2], "dtype": "int16"},
            {"name": "mode", "shape": [1], "dtype": "int32"},
        ],
        "outputs": [
            {"name": "y", "shape": [2, 2], "dtype": "int16"},
            {"name": "runs", "shape": [1], "dtype": "int32"},
        ],
        "sources": {"runtime": [], "cmsis-nn": list(cmsis_nn)},
    }
    (folder / "toy.json").write_text(json.dumps(summary))
    return folder


def sample(mode: int = 0, x: Sequence[int] = (1, -2, 3, -4)) -> dict[str, Array]:
    """One set of inputs."""
    return {"x": np.array(x, np.int16).reshape(2, 2), "mode": np.array([mode], np.int32)}
