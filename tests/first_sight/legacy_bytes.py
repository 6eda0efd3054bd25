# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""TFLite's older scheme, uint8 with one scale per tensor, whole models: equal to LiteRT in every bit."""

from __future__ import annotations

from tests.first_sight import Case, Right
from tests.random_graphs.recipe import recipe
from tests.random_graphs.tflite_model import tflite_model

CASES: list[Case] = [
    Right(f"model_{number}", lambda n=number: tflite_model(recipe(n, 33, ("tflite_u8",))).content, "tflite")  # type: ignore[misc]
    for number in range(6)
]
