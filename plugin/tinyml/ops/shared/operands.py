# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Rules about operands that several operators state; each operator lists its own in ``Op.operands``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tinyml.base import limits
from tinyml.ir import Constraint, DType, Layer, Shape, Tensor
from tinyml.ir.constraints import constraint

NAMES = ("first", "second", "third", "fourth", "fifth", "sixth")


def present(count: int) -> Constraint:
    """The first ``count`` inputs are there."""
    return constraint(
        f"It has at least {count} input{'s' if count > 1 else ''}.",
        lambda layer: all(layer.has_input(i) for i in range(count)),
    )


def of_rank(index: int, *ranks: int) -> Constraint:
    """An input, if it is there, has one of these numbers of axes."""
    allowed = " or ".join(map(str, ranks))
    return constraint(
        f"Its {NAMES[index]} input has {allowed} {'axis' if ranks == (1,) else 'axes'}.",
        lambda layer: not layer.has_input(index) or len(layer.input(index).shape) in ranks,
    )


def at_least_rank(index: int, least: int) -> Constraint:
    """An input has this number of axes or more."""
    return constraint(
        f"Its {NAMES[index]} input has at least {least} {'axis' if least == 1 else 'axes'}.",
        lambda layer: len(layer.input(index).shape) >= least,
    )


def integers(index: int) -> Constraint:
    """An input, if it is there, holds integers that are not quantised."""
    return constraint(
        f"Its {NAMES[index]} input holds integers.",
        lambda layer: not layer.has_input(index) or layer.input(index).dtype.is_integer,
    )


def numbers(index: int) -> Constraint:
    """An input, if it is there, holds numbers and not truth values."""
    return constraint(
        f"Its {NAMES[index]} input holds numbers.",
        lambda layer: not layer.has_input(index) or layer.input(index).dtype is not DType.BOOL,
    )


def of_type(index: int, dtype: DType) -> Constraint:
    """An input, if it is there, has this element type, and is not quantised."""
    return constraint(
        f"Its {NAMES[index]} input is {dtype.value}.",
        lambda layer: (
            not layer.has_input(index)
            or (layer.input(index).dtype is dtype and layer.input(index).quant is None)
        ),
    )


def same_type(*indices: int) -> Constraint:
    """These inputs have one element type."""
    words = " and ".join(NAMES[i] for i in indices)
    return constraint(
        f"Its {words} input have the same element type.",
        lambda layer: len({layer.input(i).dtype for i in indices if layer.has_input(i)}) <= 1,
    )


def not_empty(index: int) -> Constraint:
    """An input has elements."""
    return constraint(
        f"Its {NAMES[index]} input has elements.", lambda layer: layer.input(index).elements > 0
    )


def numbers_from(least: int, *attributes: str) -> Constraint:
    """Attributes, numbers or tuples of numbers, are not smaller than ``least``."""
    return constraint(
        f"{_listed(attributes)} must be at least {least}.",
        lambda layer: all(n >= least for name in attributes for n in _numbers(getattr(layer.op, name))),
    )


def within_limits(*attributes: str) -> Constraint:
    """Extents given by attributes are not larger than a tensor may be: tables are made of them."""
    return constraint(
        f"{_listed(attributes)} must be at most the limit of elements of a tensor.",
        lambda layer: all(
            n <= limits.limit("tensor_elements") for a in attributes for n in _numbers(getattr(layer.op, a))
        ),
    )


def one_per_axis(*attributes: str) -> Constraint:
    """Attributes have one entry for each axis of the first input."""
    return constraint(
        f"{_listed(attributes)} have one number for each axis of the input.",
        lambda layer: all(len(getattr(layer.op, a)) == len(layer.input(0).shape) for a in attributes),
    )


def _listed(words: Sequence[str]) -> str:
    """``Kernel, strides and dilations``."""
    *first, last = words
    return f"{', '.join(first)} and {last}".capitalize() if first else last.capitalize()


def _numbers(value: Any) -> Sequence[int]:
    return value if isinstance(value, tuple) else (value,)


def axis_exists(layer: Layer[Any]) -> bool:
    """The axis is an axis of the first input."""
    rank = len(layer.input(0).shape)
    return -rank <= layer.op.axis < rank


def axes_exist(layer: Layer[Any]) -> bool:
    """The axes are axes of the first input, each at most once."""
    axes, rank = layer.op.axes, len(layer.input(0).shape)
    return len(set(axes)) == len(axes) and all(0 <= axis < rank for axis in axes)


def extents(tensor: Tensor | None, shape: Shape) -> bool:
    """Whether a tensor that may be absent has this shape."""
    return tensor is None or tensor.shape == shape


def plain_bias(bias: Tensor | None, channels: int) -> bool:
    """Whether a bias that may be absent has one number for each channel."""
    return bias is None or (bias.elements == channels and bias.dtype is not DType.BOOL)


def optional(layer: Layer, index: int) -> Tensor | None:
    """An input that may be absent."""
    return layer.inputs[index] if index < len(layer.inputs) else None
