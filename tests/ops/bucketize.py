# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Bucketize: elements between, on and beyond the boundaries, of every type that TFLite allows."""

from __future__ import annotations

import numpy as np

from tests.support.cases import Case, op_case
from tests.support.data import real, whole
from tinyml.ir import Array
from tinyml.ops.bucketize import Bucketize

EDGES = (-1.5, 0.0, 0.0, 0.25, 7.0)
ON = np.array([-2, -1.5, -0.0, 0.1, 0.25, 7, 8, np.inf, -np.inf, np.nan], np.float32)
LARGE = np.array([2**24 - 1, 2**24, 2**24 + 1, -(2**31)], np.int32)


def case(name: str, x: Array, edges: tuple[float, ...], *wanted: int) -> Case:
    expected = [np.array(wanted, np.int32).reshape(x.shape)] if wanted else None
    return op_case(name, Bucketize(edges), [x], expected=expected)


CASES: list[Case] = [
    case("edges", ON, EDGES, 0, 1, 3, 3, 4, 5, 5, 5, 0, 5),
    case("double", ON.astype(np.float64), EDGES, 0, 1, 3, 3, 4, 5, 5, 5, 0, 5),
    case("beside", np.nextafter(np.float64(0.25), [0, 1]), EDGES, 3, 4),
    case("integers", np.array([-2, -1, 0, 1, 7], np.int32), EDGES, 0, 1, 3, 4, 5),
    case("as_float32", LARGE, (2.0**24,), 0, 1, 1, 0),
    case("int64", whole(3, 5, low=-9, high=9, dtype="int64"), EDGES),
    case("one_boundary", real(2, 3, 4), (0.0,)),
    case("many", real(40), tuple(float(v) for v in np.linspace(-2, 2, 33, dtype=np.float32))),
    case("scalar", np.array(0.1, np.float32), EDGES, 3),
]
