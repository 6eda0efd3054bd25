# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Rows written into a cache. onnxruntime has no TensorScatter yet; the expected outputs are written down."""

import numpy as np

from tests.support.cases import Case, op_case
from tests.support.data import real
from tinyml.ops.indexing.tensor_scatter import TensorScatter

CACHE = real(2, 4, 3)
ROWS = real(2, 2, 3, seed=1)


def _case(name: str, places: list[list[int]], starts: list[int] | None, **how: bool) -> Case:
    expected = CACHE.copy()
    for batch, (first, second) in enumerate(places):
        expected[batch, first] = ROWS[batch, 0]
        expected[batch, second] = ROWS[batch, 1]
    operands = [CACHE, ROWS] + ([] if starts is None else [np.array(starts, np.int64)])
    return op_case(name, TensorScatter(1, **how), operands, expected=[expected])


CASES: list[Case] = [
    _case("first_rows", [[0, 1], [0, 1]], None),
    _case("linear", [[1, 2], [2, 3]], [1, 2]),
    _case("linear_past_the_end", [[3, 3], [0, 0]], [3, -9]),
    _case("linear_far_away", [[3, 3], [0, 0]], [2**63 - 1, -(2**63)]),
    _case("circular", [[1, 2], [3, 0]], [1, 3], circular=True),
    _case("circular_before_the_start", [[3, 0], [1, 2]], [-1, -3], circular=True),
    _case("circular_far_away", [[3, 0], [1, 2]], [2**63 - 1, -(2**63) + 1], circular=True),
    op_case(
        "four_axes",
        TensorScatter(2),
        [real(2, 3, 4, 2), real(2, 3, 1, 2), np.array([3, 1], np.int32)],
    ),
]
