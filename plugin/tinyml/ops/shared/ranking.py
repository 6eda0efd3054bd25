# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The order of elements from best to worst: of equal ones the first is first, what is not a number last."""

from __future__ import annotations

import numpy as np

from tinyml.ir import Array, DType


def best_places(x: Array, axis: int, largest: bool) -> Array:
    """Indices along ``axis``, the best element first."""
    if largest:  # a stable sort of the reversed axis, read backwards: the first of equals is first
        order = np.flip(np.argsort(np.flip(x, axis), axis=axis, kind="stable"), axis)
        order = x.shape[axis] - 1 - order
    else:
        order = np.argsort(x, axis=axis, kind="stable")
    if x.dtype.kind == "f":
        unknown = np.take_along_axis(np.isnan(x), order, axis=axis)
        order = np.take_along_axis(order, np.argsort(unknown, axis=axis, kind="stable"), axis)
    return order


def ranks_before(one: str, other: str, dtype: DType, largest: bool) -> str:
    """C: whether an element ranks before another; numbers rank before what is not one."""
    better = number_ranks_before(one, other, dtype, largest)
    return f"({is_number(one)} && {better})" if dtype.is_float else better


def number_ranks_before(one: str, other: str, dtype: DType, largest: bool) -> str:
    """The same for an element that is a number: as many comparisons for all, so that bounds are tight."""
    if dtype.is_float:
        return f"!({other} {'>=' if largest else '<='} {one})"
    return f"{one} {'>' if largest else '<'} {other}"


def is_number(value: str) -> str:
    """C: whether a float is one."""
    return f"{value} == {value}"
