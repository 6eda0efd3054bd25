# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Print what the application prints, computed in numpy by the operators: ``python expected.py``."""

from __future__ import annotations

import numpy as np
from train import HERE, READINGS

import tinyml
from tinyml.ir.interpreter import interpret


def main() -> None:
    model = tinyml.compile(HERE / "models" / "curve.onnx", target="host", operators=[HERE / "mexican_hat.py"])
    samples = [{"reading": np.array([[reading]], np.float32)} for reading in READINGS]
    for reading, values in zip(READINGS, interpret(model.built.graph, samples), strict=True):
        print(f"reading {reading:.2f}: {values['celsius'][0, 0]:.1f} degrees")
    print("custom_operator: done")


if __name__ == "__main__":
    main()
