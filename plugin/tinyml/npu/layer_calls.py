# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What the writers of layers as TFLite operators share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import field
from typing import Any, TypeAlias

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Layer, Quant, Shape, Tensor
from tinyml.npu.tflite_writer import Call, Value

SAME, VALID = 0, 1
UNLIMITED = (-math.inf, math.inf)
ACTIVATIONS = {UNLIMITED: 0, (0.0, math.inf): 1, (-1.0, 1.0): 2, (0.0, 6.0): 3}
INTEGERS = (DType.INT8, DType.INT16)


class NotWritable(Exception):
    """TFLite has no operator for the layer, or none that an NPU computes."""


@dataclass
class Own:
    """The tensors that a layer has in the file and the graph does not have."""

    layer: Layer[Any]
    values: list[Value] = field(default_factory=list)
    exact: bool = True  # the operators compute what the layer computes, bit for bit

    def constant(self, what: str, data: Array, quant: Quant | None = None) -> str:
        return self._add(Value.constant(self._name(what), data, quant))

    def computed(self, what: str, shape: Shape, like: Tensor) -> str:
        return self._add(Value(self._name(what), shape, like.dtype.value, like.quant))

    def _name(self, what: str) -> str:
        return f"{self.layer.output.name}\n{what}"  # unlike the name of any tensor

    def _add(self, value: Value) -> str:
        self.values.append(value)
        return value.name


Writer: TypeAlias = Callable[[Layer[Any], Own], Iterator[Call]]
"""Yields the operators of a layer, or raises NotWritable."""


def require(*conditions: bool) -> None:
    """Ends a writer unless all conditions hold."""
    if not all(conditions):
        raise NotWritable


def quantized(*tensors: Tensor | None) -> bool:
    """All tensors are there and hold quantised integers of one type that an NPU computes on."""
    found = [t for t in tensors if t is not None and t.quant is not None]
    return len(found) == len(tensors) and len({t.dtype for t in found}) == 1 and found[0].dtype in INTEGERS


def activation(clamp: tuple[float, float]) -> int:
    require(clamp in ACTIVATIONS)
    return ACTIVATIONS[clamp]
