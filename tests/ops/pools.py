# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Pools: windows with strides, dilations, padding, ceil mode and any number of spatial axes."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import helper

from tests.support.cases import Case, Const, onnx_case, onnx_nodes_case
from tests.support.data import real, whole

X1, X2, X3 = real(2, 3, 9), real(2, 3, 8, 7), real(1, 2, 5, 6, 4)
WINDOWS: dict[str, dict[str, Any]] = {
    "plain": {"kernel_shape": [3, 2]},
    "strided": {"kernel_shape": [3, 3], "strides": [2, 3], "pads": [1, 0, 1, 2]},
    "dilated": {"kernel_shape": [2, 3], "dilations": [2, 2], "pads": [0, 1, 1, 0]},
    "same_upper": {"kernel_shape": [3, 2], "strides": [2, 2], "auto_pad": "SAME_UPPER"},
    "same_lower": {"kernel_shape": [2, 4], "strides": [1, 2], "auto_pad": "SAME_LOWER"},
    "ceil": {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1},
    "ceil_padded": {"kernel_shape": [2, 3], "strides": [3, 2], "pads": [1, 1, 0, 1], "ceil_mode": 1},
}

CASES: list[Case] = [
    *(
        onnx_case(f"{op}_{name}", op, [X2], **window)
        for op in ("MaxPool", "AveragePool", "LpPool")
        for name, window in WINDOWS.items()
        # onnxruntime forgets the dilations of LpPool and the rule for the last window of its ceil mode
        if op != "LpPool" or name in ("plain", "strided", "same_upper")
    ),
    *(
        onnx_case(f"average_padding_counts_{name}", "AveragePool", [X2], count_include_pad=1, **WINDOWS[name])
        for name in ("strided", "dilated", "ceil_padded")
    ),
    *(
        onnx_case(f"{op}_1d", op, [X1], kernel_shape=[4], strides=[2], pads=[1, 2])
        for op in ("MaxPool", "AveragePool", "LpPool")
    ),
    *(
        onnx_case(f"{op}_3d", op, [X3], kernel_shape=[2, 3, 2], strides=[2, 1, 1], pads=[1, 0, 0, 0, 1, 1])
        for op in ("MaxPool", "AveragePool")
    ),
    *(onnx_case(f"{op}_whole", op, [X2]) for op in ("GlobalMaxPool", "GlobalAveragePool")),
    onnx_case(
        "max_bytes", "MaxPool", [whole(1, 2, 6, 6, dtype="int8")], kernel_shape=[3, 3], pads=[1, 1, 1, 1]
    ),
    onnx_case("lp_three", "LpPool", [X2], kernel_shape=[2, 2], p=3),
    onnx_case("lp_one", "LpPool", [X2], kernel_shape=[2, 2], p=1),
    onnx_case(
        "max_places", "MaxPool", [X2], outputs=2, kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 1]
    ),
    onnx_case("max_places_columns", "MaxPool", [X2], outputs=2, kernel_shape=[3, 2], storage_order=1),
    onnx_case("max_places_1d", "MaxPool", [X1], outputs=2, kernel_shape=[2], strides=[2]),
    onnx_nodes_case(
        "max_places_in_a_border",
        [
            helper.make_node("Conv", ["x", "w"], ["h"]),
            helper.make_node("Relu", ["h"], ["r"]),
            helper.make_node("Pad", ["r", "widths"], ["p"]),
            helper.make_node("MaxPool", ["p"], ["m", "places"], kernel_shape=[2, 2], strides=[2, 2]),
            helper.make_node("Clip", ["m", "low", "high"], ["y"]),
        ],
        {
            "x": X2,
            "w": Const(real(2, 3, 1, 1, seed=1)),
            "widths": Const(np.array([0, 0, 1, 1, 0, 0, 1, 1])),
            "low": Const(np.float32(0.1)),
            "high": Const(np.float32(0.5)),
        },
        ["y", "places"],
    ),
    onnx_case(
        "unpool",
        "MaxUnpool",
        [real(1, 1, 2, 2), np.array([[[[1, 3], [9, 15]]]], np.int64)],
        kernel_shape=[2, 2],
        strides=[2, 2],
    ),
]
