# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Fit a wavelet network to the curve of a temperature sensor: ``python train.py`` writes models/curve.onnx.

A thermistor's resistance falls steeply and not in a straight line with temperature. The network takes the
reading of an ADC, from 0 to 1, and gives degrees Celsius: a sum of Mexican hats, the operator of this sample.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = Path(__file__).resolve().parent
HATS = 16
WIDTH = 0.1
READINGS = np.array([0.08, 0.2, 0.35, 0.5, 0.65, 0.8, 0.92], np.float32)


def temperature(reading: np.ndarray) -> np.ndarray:
    """The truth: a 10 kOhm thermistor with beta = 3950 in a divider with 10 kOhm."""
    ratio = reading / (1 - reading)  # of its resistance to that at 25 degrees
    return 1 / (1 / 298.15 + np.log(ratio) / 3950) - 273.15


def hats(reading: np.ndarray, centres: np.ndarray) -> np.ndarray:
    t = (reading[:, np.newaxis] - centres) / WIDTH
    return (1 - t * t) * np.exp(-t * t / 2)


def main() -> None:
    readings = np.linspace(0.05, 0.95, 400)
    centres = np.linspace(-0.1, 1.1, HATS)
    features = np.column_stack([hats(readings, centres), np.ones_like(readings)])
    # A little damping keeps the weights small, and with them the rounding errors of float32.
    damped = features.T @ features + 1e-6 * np.eye(HATS + 1)
    weights = np.linalg.solve(damped, features.T @ temperature(readings))
    tables = {
        "ones": np.ones((1, HATS), np.float32),
        "centres": -centres.astype(np.float32),
        "weights": weights[:-1, np.newaxis].astype(np.float32),
        "offset": weights[-1:].astype(np.float32),
    }
    graph = helper.make_graph(
        [
            helper.make_node("Gemm", ["reading", "ones", "centres"], ["shifted"], "shift"),
            helper.make_node("MexicanHat", ["shifted"], ["hats"], "hats", domain="com.example", width=WIDTH),
            helper.make_node("Gemm", ["hats", "weights", "offset"], ["celsius"], "sum"),
        ],
        "curve",
        [helper.make_tensor_value_info("reading", TensorProto.FLOAT, [1, 1])],
        [helper.make_tensor_value_info("celsius", TensorProto.FLOAT, [1, 1])],
        [numpy_helper.from_array(table, name) for name, table in tables.items()],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.example", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9, producer_name="train.py")
    onnx.save(model, HERE / "models" / "curve.onnx")
    errors = np.abs(features @ weights - temperature(readings))
    print(f"{HATS} wavelets, at most {errors.max():.1f} degrees off, {errors.mean():.2f} on average")


if __name__ == "__main__":
    main()
