# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Choose: either branch, of several types; and the coupling of pairs, which runs until it is close."""

from __future__ import annotations

import numpy as np

from tests.support.cases import Case, Const, op_case
from tests.support.data import real, whole
from tinyml.ops.classical.coupling import PairwiseCoupling
from tinyml.ops.control.choose import Choose

TRUE, FALSE = np.array(True), np.array([False])
A, B = real(2, 3), real(2, 3, seed=1)
PAIRS = (0.02 + 0.96 * np.random.default_rng(3).random((5, 6))).astype(np.float32)

CASES: list[Case] = [
    op_case("then", Choose(), [TRUE, A, B], expected=[A]),
    op_case("else", Choose(), [FALSE, A, B], expected=[B]),
    op_case("constant_branch", Choose(), [FALSE, A, Const(B)], expected=[B]),
    op_case("int64", Choose(), [TRUE, whole(4, dtype="int64"), whole(4, dtype="int64", seed=2)]),
    op_case("scalars", Choose(), [FALSE, np.array(2.5, np.float32), np.array(-1, np.float32)]),
    op_case("coupled", PairwiseCoupling(4), [PAIRS]),
    op_case("two_classes", PairwiseCoupling(2), [PAIRS[:, :1]]),
    op_case("certain", PairwiseCoupling(3), [np.array([[1 - 1e-7, 1 - 1e-7, 0.5]], np.float32)]),
]
