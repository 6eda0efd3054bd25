# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What the quantiser needs to know about ONNX operators, declared next to their readers in ``ops/``.

The quantiser turns a float ONNX model into an int8 ONNX model before the compiler reads it, so these facts
are about ONNX operators. Those that are not declared here stay float.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from tinyml.base.errors import RegistrationError
from tinyml.base.lazy_dataclass import dataclass

if TYPE_CHECKING:  # operators can be read from TFLite without importing onnx
    import onnx

ChannelAxis = Callable[["onnx.NodeProto", int], int]
"""A node and the rank of its weights (input 1) -> the axis of the weights that counts output channels."""


@dataclass(frozen=True)
class Quantizing:
    """How an ONNX operator is quantised. By default, all its tensors become int8, each with its own scale."""

    activations: bool = True  # inputs and outputs become integers
    moves: bool = False  # outputs are unchanged elements of the inputs, so int8 neither costs nor saves
    keeps_scale: bool = False  # the output has the scale of input 0
    one_scale: bool = False  # the integer form requires one scale for all inputs and outputs
    limits: bool = False  # an activation function that becomes limits of the layer before it
    passes_limits: bool = False  # limits on every element can be applied before it or after it
    channel_axis: ChannelAxis | None = None  # of input 1, if it is multiplied as weights
    matrices: tuple[int, ...] = ()  # inputs that become int8, also if the activations stay float
    places: tuple[int, ...] = ()  # inputs that are activations; all, unless stated
    tied: Callable[[onnx.NodeProto], Sequence[str]] = lambda node: ()  # tensors that share one scale
    int16: Callable[[onnx.NodeProto, Mapping[str, tuple[float, float]]], Mapping[str, float]] = (
        lambda node, ranges: {}
    )
    """A node and the ranges of tensors -> tensors that are always int16, with their scales."""
    too_large: Callable[[onnx.NodeProto, Mapping[str, tuple[float, float]], Collection[str]], bool] = (
        lambda node, ranges, stated: False
    )
    """A node, the ranges of tensors, those whose scale the file states -> whether int16 holds too little."""
    unusual_bits: Callable[[onnx.NodeProto, Mapping[str, tuple[float, float]]], int | None] = (
        lambda node, ranges: None
    )
    """A node and the ranges of tensors -> the integer bits of its cells, if they are not the usual ones."""
    trees: bool = False  # limits and leaves become integers while the results stay float
    scales: Mapping[str, tuple[float, int]] = field(default_factory=dict)
    """Scale and zero point of the output that kernels expect, by its element type."""
    scales_required: bool = False  # even if a reader requires a scale in common with other tensors
    stays_float: Callable[[onnx.NodeProto], bool] = lambda node: False  # for a node that is an exception

    @property
    def keeps_type(self) -> bool:
        """Whether the output has the type of the inputs, so that int16 passes through."""
        return self.moves or self.keeps_scale or self.one_scale


FLOAT = Quantizing(activations=False)
"""All operators that declare nothing."""

_DECLARED: dict[str, Quantizing] = {}
_PLACES: dict[str, str] = {}


def quantizes(*op_types: str, **facts: Any) -> None:
    """Declare that these ONNX operators are worth quantising, and how: the fields of ``Quantizing``."""
    caller = inspect.currentframe().f_back  # type: ignore[union-attr]
    place = f"{caller.f_code.co_filename}:{caller.f_lineno}" if caller else ""
    for op_type in op_types:
        if _PLACES.get(op_type, place) != place:
            raise RegistrationError(f"the quantising of {op_type}", (_PLACES[op_type], place))
        _DECLARED[op_type], _PLACES[op_type] = Quantizing(**facts), place


def quantizing(op_type: str) -> Quantizing:
    """What is declared about an ONNX operator."""
    return _DECLARED.get(op_type, FLOAT)


def integer_operators() -> frozenset[str]:
    """ONNX operators whose activations can become integers."""
    return frozenset(op_type for op_type, declared in _DECLARED.items() if declared.activations)
