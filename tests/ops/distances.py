# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Squared distances: far from the origin, to the point itself, one feature, points computed at run time."""

from __future__ import annotations

import numpy as np

from tests.support.cases import Case, Const, op_case
from tests.support.data import real
from tinyml.ops.classical.distances import SquaredDistance

POINTS = real(5, 3) + np.float32(4096)
STEP = np.float32(2**-11)  # the least difference of numbers near 4096

CASES: list[Case] = [
    op_case("points", SquaredDistance(), [real(1, 4), Const(real(7, 4))]),
    op_case("rows", SquaredDistance(), [real(3, 2), Const(real(4, 2))]),
    op_case(
        "itself", SquaredDistance(), [POINTS[:1], Const(POINTS[:1])], expected=[np.zeros((1, 1), np.float32)]
    ),
    op_case(
        "beside",
        SquaredDistance(),
        [POINTS[:1] + STEP, Const(POINTS[:1])],
        expected=[np.full((1, 1), 3 * STEP * STEP, np.float32)],
        rtol=0,
        atol=0,
    ),
    op_case("one_feature", SquaredDistance(), [real(2, 1), Const(real(3, 1))]),
    op_case("run_time", SquaredDistance(), [real(2, 3), real(4, 3)]),
]
