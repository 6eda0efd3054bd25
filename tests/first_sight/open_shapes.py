# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""TFLite files whose outputs have an open shape: what the operators compute counts."""

from __future__ import annotations

import numpy as np

from tests.first_sight import Case, Refused, Right
from tests.support.tflite_writer import Call, Part, Value, write


def boxes(signature: tuple[int, ...], declared: tuple[int, ...] = (1, 1, 4)) -> bytes:
    """As a detector that was converted with an open batch: two maps of boxes, reshaped and joined."""
    values = [
        Value("a", (1, 3, 2, 8), signature=(-1, 3, 2, 8)),
        Value("b", (1, 2, 1, 8), signature=(-1, 2, 1, 8)),
        Value("a_rows", (1, 1, 4), signature=signature),
        Value("b_rows", (1, 1, 4), signature=signature),
        Value("y", declared, signature=signature),
        Value.constant("shape", np.array([1, -1, 4], np.int32)),
    ]
    calls = [
        Call("RESHAPE", ["a", "shape"], ["a_rows"]),
        Call("RESHAPE", ["b", "shape"], ["b_rows"]),
        Call("CONCATENATION", ["a_rows", "b_rows"], ["y"], "ConcatenationOptions", {"Axis": 1}),
    ]
    return write(Part(values, calls, ["a", "b"], ["y"]))


CASES: list[Case] = [
    Right("rows", lambda: boxes((1, -1, 4)), "tflite", exact=True),
    Right("all", lambda: boxes((-1, -1, 4)), "tflite", exact=True),
    Refused("closed", lambda: boxes((1, 1, 4)), ("declares", "1x1x4"), "tflite"),
]
