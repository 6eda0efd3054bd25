# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What must be true of one tensor and of the operands of one operator.

Readers check them while a file is read, when a broken rule is an error of the model. The verifier checks them
after every pass, when it is an error of the compiler.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tinyml.ir import Constraint, DType, Layer, Op, Tensor, TensorType


def quantisation_problem(type_: TensorType) -> str | None:
    """Scales are positive and finite, zero points in range, one per slice of the axis."""
    quant = type_.quant
    if quant is None:
        return None
    if type_.dtype.is_float or type_.dtype is DType.BOOL:
        return f"is {type_.dtype.value} but quantised"
    low, high = type_.dtype.limits
    if not quant.scales or not all(map(math.isfinite, quant.scales)) or min(quant.scales) <= 0:
        return "has a scale that is not a positive number"
    if quant.zero_points and not low <= min(quant.zero_points) <= max(quant.zero_points) <= high:
        return f"has a zero point outside the range of {type_.dtype.value}, {low} to {high}"
    if quant.axis is not None and not 0 <= quant.axis < len(type_.shape):
        return f"is quantised along axis {quant.axis}, and has {len(type_.shape)} axes"
    wanted = 1 if quant.axis is None else type_.shape[quant.axis]
    if len(quant.scales) != wanted or len(quant.zero_points) != wanted:
        counts = f"{len(quant.scales)} scales and {len(quant.zero_points)} zero points"
        return f"has {counts} where {wanted} of each are required"
    return None


def operand_problem(op: Op, inputs: Sequence[Tensor | None]) -> str | None:
    """The first rule about its operands that an operator finds broken, in words."""
    layer = Layer(op.kind, op, tuple(inputs), ())
    for constraint in op.operands:
        if not constraint(layer):
            shapes = ", ".join("none" if t is None else f"{t.dtype.value} {t.shape}" for t in inputs)
            return f"a requirement is not met: {message(constraint).rstrip('.')} (its operands: {shapes})"
    return None


def message(constraint: Callable[..., object]) -> str:
    """What a constraint requires, as one line."""
    return " ".join((constraint.__doc__ or constraint.__name__).split())


def constraint(text: str, check: Constraint) -> Constraint:
    """A constraint made by a function: ``text`` is its docstring."""

    def checked(layer: Layer) -> bool:
        return check(layer)

    checked.__doc__ = text
    return checked
