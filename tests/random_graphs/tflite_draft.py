# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A random TFLite model that is being made: its tensors, scales and calls."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.random_graphs.recipe import Recipe
from tests.support.tflite_writer import Call, Value
from tinyml.ir import Array, Quant, Shape

BYTES = ("int8", "uint8")


class Draft:
    """Tensors and calls so far; NHWC."""

    def __init__(self, recipe: Recipe) -> None:
        self.dtype = {"float": "float32", "s8": "int8", "u8": "uint8", "s16": "int16"}[
            recipe.kind.split("_")[1]
        ]
        self.quantised = self.dtype != "float32"
        self.values: dict[str, Value] = {}
        self.calls: list[Call] = []
        self.input = self.tensor("x", (1, recipe.height, recipe.width, recipe.channels), 0.02)

    def tensor(self, name: str, shape: Shape, scale: float, zero: int | None = None) -> Value:
        quant = None
        if self.dtype in BYTES:
            zero = (len(name) * 7 % 40) - 20 if zero is None else zero
            zero += 128 if self.dtype == "uint8" else 0
            quant = Quant.per_tensor(float(np.float32(scale)), zero)
        elif self.dtype == "int16":
            quant = Quant.per_tensor(float(np.float32(scale / 256)), 0)
        self.values[name] = Value(name, tuple(int(e) for e in shape), self.dtype, quant)
        return self.values[name]

    def result(self, shape: Shape, scale: float, like: Value | None = None) -> Value:
        name = f"t{len(self.calls)}"
        if like is not None and like.quant is not None:
            self.values[name] = Value(name, tuple(int(e) for e in shape), self.dtype, like.quant)
            return self.values[name]
        return self.tensor(name, shape, scale)

    def constant(self, data: Array, quant: Quant | None = None) -> Value:
        value = Value.constant(f"c{len(self.values)}", data, quant)
        self.values[value.name] = value
        return value

    def ints(self, *values: int) -> Value:
        return self.constant(np.asarray(values, np.int32))

    def call(self, op_type: str, inputs: list[Value], y: Value, table: str = "", **fields: Any) -> None:
        self.calls.append(Call(op_type, [v.name for v in inputs], [y.name], table, fields))

    def scale(self, x: Value) -> float:
        """As ``tensor`` takes it."""
        assert x.quant is not None
        return x.quant.scale * (256 if self.dtype == "int16" else 1)

    def weights(self, rng: Any, shape: Shape, axis: int, channels: bool) -> tuple[Value, Array]:
        if not self.quantised:
            return self.constant(rng.normal(0, 0.3, shape).astype(np.float32)), np.ones(shape[axis])
        count = shape[axis] if channels else 1
        scales = rng.uniform(0.003, 0.01, count).astype(np.float32)
        if self.dtype == "uint8":  # the older scheme: one scale, any zero point
            quant = Quant.per_tensor(float(scales[0]), int(rng.integers(90, 160)))
            return self.constant(rng.integers(0, 256, shape).astype(np.uint8), quant), scales[:1]
        quant = Quant(tuple(float(s) for s in scales), (0,) * count, axis if channels else None)
        return self.constant(rng.integers(-127, 128, shape).astype(np.int8), quant), scales

    def sums_scale(self, rng: Any, x: Value, scales: Array, products: int) -> float:
        """For the output of a layer with weights.

        Half of them are the step of the sums times a power of two: then many sums lie halfway between two
        steps, and the last bits of the multiplier decide.
        """
        if not self.quantised:
            return 1.0
        wanted = self.scale(x) * 0.5 * products**0.5
        if rng.random() < 0.5:
            return wanted
        assert x.quant is not None
        step = float(np.float32(x.quant.scale) * scales[0]) * (256 if self.dtype == "int16" else 1)
        return step * 2.0 ** round(np.log2(wanted / step))

    def bias(self, rng: Any, x: Value, scales: Array, count: int) -> Value:
        if not self.quantised:
            return self.constant(rng.normal(0, 0.5, count).astype(np.float32))
        assert x.quant is not None
        sums = (np.float32(x.quant.scale) * scales).astype(np.float32)
        quant = Quant(tuple(float(s) for s in sums), (0,) * len(sums), 0 if len(sums) > 1 else None)
        dtype = "int32" if self.dtype in BYTES else "int64"
        return self.constant(rng.integers(-2000, 2000, count).astype(dtype), quant)

    def byte_constant(self, rng: Any, shape: Shape, scale: float, like: Value | None = None) -> Value:
        """A constant of the model's own type."""
        zero = 128 if self.dtype == "uint8" else 0
        quant = Quant.per_tensor(float(np.float32(scale)), zero + int(rng.integers(-20, 20)))
        data = (rng.integers(-128, 128, shape) + zero).astype(self.dtype)
        return self.constant(data, like.quant if like is not None else quant)


def pick(rng: Any, *choices: Any) -> Any:
    return choices[int(rng.integers(len(choices)))]
