# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Tensors: element types, quantisation, shapes and constant data."""

from __future__ import annotations

import enum
import math
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tinyml.base.lazy_dataclass import dataclass

Array: TypeAlias = npt.NDArray[Any]
Shape: TypeAlias = tuple[int, ...]


class DType(enum.Enum):
    """Element types; the value is numpy's name for it."""

    FLOAT32 = "float32"
    FLOAT64 = "float64"
    INT8 = "int8"
    UINT8 = "uint8"
    INT16 = "int16"
    UINT16 = "uint16"
    INT32 = "int32"
    UINT32 = "uint32"
    INT64 = "int64"
    UINT64 = "uint64"
    BOOL = "bool"

    @cached_property
    def numpy(self) -> np.dtype[Any]:
        return np.dtype(self.value)

    @cached_property
    def bytes(self) -> int:
        return self.numpy.itemsize

    @property
    def c(self) -> str:
        """The C type that holds one element."""
        return {"float32": "float", "float64": "double", "bool": "bool"}.get(self.value, f"{self.value}_t")

    @cached_property
    def code(self) -> int:
        """Its number in enum tinyml_type of <tinyml/tinyml.h>, which has the same order."""
        return list(DType).index(self)

    @property
    def is_float(self) -> bool:
        return self in (DType.FLOAT32, DType.FLOAT64)

    @property
    def is_signed(self) -> bool:
        return self.is_float or self.value.startswith("int")

    @property
    def is_integer(self) -> bool:
        return not self.is_float and self is not DType.BOOL

    @property
    def limits(self) -> tuple[int, int]:
        """Smallest and largest value of an integer type."""
        info = np.iinfo(self.numpy)
        return int(info.min), int(info.max)

    @staticmethod
    def of(array: Array) -> DType:
        return DType(array.dtype.name)


@dataclass(frozen=True)
class Quant:
    """Affine quantisation: real = scale * (stored - zero_point); per tensor, or per slice of ``axis``."""

    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    axis: int | None = None

    @property
    def per_channel(self) -> bool:
        return self.axis is not None

    @property
    def scale(self) -> float:
        """The one scale of a per-tensor quantisation."""
        if self.per_channel:
            raise ValueError("per-channel quantisation has no single scale")
        return self.scales[0]

    @property
    def zero_point(self) -> int:
        if self.per_channel:
            raise ValueError("per-channel quantisation has no single zero point")
        return self.zero_points[0]

    @staticmethod
    def per_tensor(scale: float, zero_point: int) -> Quant:
        return Quant((float(scale),), (int(zero_point),))


@dataclass(frozen=True)
class TensorType:
    """What shape inference yields: everything about a tensor but its name and value."""

    shape: Shape
    dtype: DType
    quant: Quant | None = None


@dataclass(frozen=True, eq=False)
class Tensor:
    """A named value. With ``data`` it is a constant and lives in flash."""

    name: str
    shape: Shape
    dtype: DType
    quant: Quant | None = None
    data: Array | None = None

    @property
    def is_constant(self) -> bool:
        return self.data is not None

    @property
    def value(self) -> Array:
        """The data of a constant."""
        if self.data is None:
            raise ValueError(f"tensor {self.name!r} is not a constant")
        return self.data

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    @cached_property  # the planner reads it a million times
    def bytes(self) -> int:
        return self.elements * self.dtype.bytes

    @property
    def type(self) -> TensorType:
        return TensorType(self.shape, self.dtype, self.quant)

    @staticmethod
    def of(name: str, type_: TensorType) -> Tensor:
        return Tensor(name, type_.shape, type_.dtype, type_.quant)

    @staticmethod
    def constant(name: str, data: Array, quant: Quant | None = None) -> Tensor:
        frozen = np.ascontiguousarray(data).reshape(data.shape)
        frozen.setflags(write=False)
        return Tensor(name, tuple(frozen.shape), DType.of(frozen), quant, frozen)
