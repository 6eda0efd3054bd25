# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A TFLite file with one operator, being drawn: tensors of any type, constants and options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tests.support.tflite_writer import Call, Part, Value, write
from tinyml.ir import Array, Quant, Shape

QUANTISED = ("int8", "uint8", "int16")
NO_TABLE = 0.04
"""The share of operators whose table of options is missing, as in files of other converters."""


class Draw:
    """What one model consists of: inputs, constants, results, and calls of operators."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.values: list[Value] = []
        self.inputs: list[Value] = []
        self.ranges: dict[str, tuple[int, int]] = {}
        self.outputs: list[Value] = []
        self.calls: list[Call] = []

    def pick(self, *choices: Any) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def shape(self, *ranks: int, most: int = 5) -> Shape:
        return tuple(int(e) for e in self.rng.integers(1, most + 1, self.pick(*ranks)))

    def quant(self, dtype: str) -> Quant | None:
        """Of a tensor: scales of some magnitudes, zero points with both ends of the range."""
        if dtype not in QUANTISED:
            return None
        scale = float(np.float32(self.pick(0.5, 1, 1.7, 4) * 0.02 / (256 if dtype == "int16" else 1)))
        if dtype == "int16":
            if self.chance(0.3):
                scale = float(2.0 ** int(self.rng.integers(-15, -9)))
            return Quant.per_tensor(scale, 0)
        info = np.iinfo(dtype)
        zero = self.pick(
            int(info.min), int(info.max), *(int(z) for z in self.rng.integers(info.min, info.max, 4))
        )
        return Quant.per_tensor(scale, zero)

    def tensor(
        self, shape: Shape, dtype: str, quant: Quant | None = None, limits: tuple[int, int] | None = None
    ) -> Value:
        """An input of the model; ``limits`` are those of its samples."""
        value = Value(f"x{len(self.values)}", tuple(shape), dtype, quant or self.quant(dtype))
        self.values.append(value)
        self.inputs.append(value)
        if limits is not None:
            self.ranges[value.name] = limits
        return value

    def constant(self, data: Array, quant: Quant | None = None) -> Value:
        value = Value.constant(f"c{len(self.values)}", np.asarray(data), quant)
        self.values.append(value)
        return value

    def ints(self, values: Sequence[int], dtype: str = "int32") -> Value:
        return self.constant(np.asarray(values, dtype))

    def operand(self, shape: Shape, dtype: str) -> Value:
        """An input, or sometimes a constant."""
        if self.chance(0.75):
            return self.tensor(shape, dtype)
        quant = self.quant(dtype)
        return self.constant(self.values_of(shape, dtype), quant)

    def values_of(self, shape: Shape, dtype: str, limits: tuple[int, int] | None = None) -> Array:
        if dtype == "float32":
            return self.rng.normal(0, 1.5, shape).astype(np.float32)
        if dtype == "bool":
            return self.rng.integers(0, 2, shape).astype(np.bool_)
        info = np.iinfo(dtype)
        low, high = limits or (int(info.min), int(info.max))
        if limits is None and info.bits >= 32:
            low, high = -1000, 1000
        return self.rng.integers(low, high + 1, shape).astype(dtype)

    def output(self, dtype: str, quant: Quant | None = None, like: Value | None = None) -> Value:
        """A result; its shape is the one that the reference computes."""
        if like is not None:
            quant = like.quant
        value = Value(f"y{len(self.values)}", (), dtype, quant or self.quant(dtype))
        self.values.append(value)
        self.outputs.append(value)
        return value

    def call(
        self,
        op_type: str,
        inputs: Sequence[Value | None],
        outputs: Sequence[Value],
        table: str = "",
        **fields: Any,
    ) -> None:
        if table and self.chance(NO_TABLE):
            table, fields = "", {}
        names = [value.name if value is not None else "" for value in inputs]
        self.calls.append(Call(op_type, names, [value.name for value in outputs], table, fields))

    def intermediates(self, values: Sequence[Value]) -> None:
        """Of the last call."""
        self.calls[-1] = replace(self.calls[-1], intermediates=[value.name for value in values])

    @property
    def activation(self) -> int:
        return int(self.pick(0, 0, 1, 2, 3))

    def file(self, shapes: Sequence[Shape] = ()) -> bytes:
        """The model; ``shapes`` are those of the outputs."""
        known = {value.name: shape for value, shape in zip(self.outputs, shapes, strict=False)}
        values = [replace(value, shape=known.get(value.name, value.shape)) for value in self.values]
        return write(Part(values, self.calls, [v.name for v in self.inputs], [v.name for v in self.outputs]))

    def samples(self, count: int) -> list[list[Array]]:
        return [
            [self.values_of(value.shape, value.dtype, self.ranges.get(value.name)) for value in self.inputs]
            for _ in range(count)
        ]
