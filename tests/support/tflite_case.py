# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A TFLite file with one operator, and its inputs; helpers to describe many of them briefly."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.support.tflite_writer import Call, Part, Value, write
from tinyml.ir import Array, Quant

Q = Quant.per_tensor
A, B, Y = Q(0.05, 3), Q(0.031, -7), Q(0.09, 11)
INT16 = Q(0.0005, 0)
PROBABILITY, UNIT, INT16_UNIT = Q(1 / 256, -128), Q(1 / 128, 0), Q(1 / 32768, 0)
IMAGE = (2, 3, 4, 5)


@dataclass(frozen=True)
class TfliteCase:
    name: str
    content: bytes
    samples: Sequence[Sequence[Array]]  # consecutive runs: state is kept


Source = Callable[[np.random.Generator, Value], Array]


def anything(rng: np.random.Generator, value: Value) -> Array:
    """The whole range of small integers; real numbers of ordinary size."""
    dtype = np.dtype(value.dtype)
    if dtype.kind in "iu" and dtype.itemsize <= 2:
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max + 1, value.shape).astype(dtype)
    if dtype.kind == "i":
        return rng.integers(-50, 50, value.shape).astype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, value.shape).astype(dtype)
    return rng.normal(0, 2, value.shape).astype(dtype)


def every_byte(rng: np.random.Generator, value: Value) -> Array:
    info = np.iinfo(value.dtype)
    return np.arange(info.min, info.max + 1).astype(value.dtype)


def positive(rng: np.random.Generator, value: Value) -> Array:
    return np.asarray(np.abs(rng.normal(0, 2, value.shape)) + 0.1, np.float32)


class Cases:
    """Collects cases; each has a random generator of its own, so that they do not depend on each other."""

    def __init__(self) -> None:
        self.found: list[TfliteCase] = []

    def add(
        self,
        name: str,
        op_type: str,
        inputs: Sequence[Value | None],
        outputs: Sequence[Value],
        table: str = "",
        source: Source = anything,
        runs: int = 1,
        **fields: Any,
    ) -> None:
        name = f"{op_type} {name}"
        rng = np.random.default_rng(zlib.crc32(name.encode()))
        known = [v for v in inputs if v is not None]
        names = [v.name for v in known if v.data is None and not v.variable]
        call = Call(op_type, [v.name if v else "" for v in inputs], [v.name for v in outputs], table, fields)
        part = Part([*known, *outputs], [call], names, [v.name for v in outputs])
        by_name = {v.name: v for v in known}
        samples = [[source(rng, by_name[n]) for n in names] for _ in range(runs)]
        self.found.append(TfliteCase(name, write(part), samples))


def i8(name: str, shape: tuple[int, ...], quant: Quant = A) -> Value:
    return Value(name, shape, "int8", quant)


def i16(name: str, shape: tuple[int, ...], quant: Quant = INT16) -> Value:
    return Value(name, shape, "int16", quant)


def f32(name: str, shape: tuple[int, ...]) -> Value:
    return Value(name, shape, "float32")


def ints(name: str, *values: int, shape: tuple[int, ...] | None = None) -> Value:
    array = np.asarray(values, np.int32)
    return Value.constant(name, array if shape is None else array.reshape(shape))


def weights(name: str, shape: tuple[int, ...], quant: Quant) -> Value:
    rng = np.random.default_rng(zlib.crc32(f"{name}{shape}".encode()))
    return Value.constant(name, rng.integers(-127, 128, shape).astype(np.int8), quant)


def reals(name: str, *shape: int) -> Value:
    rng = np.random.default_rng(zlib.crc32(f"{name}{shape}".encode()))
    return Value.constant(name, rng.normal(0, 1, shape).astype(np.float32))


def bias(count: int, dtype: str = "int32") -> Value:
    return Value.constant("bias", np.random.default_rng(count).integers(-3000, 3000, count).astype(dtype))


def per_channel(count: int, axis: int) -> Quant:
    scales = np.random.default_rng(count).uniform(0.01, 0.05, count).astype(np.float32)
    return Quant(tuple(float(s) for s in scales), (0,) * count, axis)
