# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Dft by fast transforms of every radix, against numpy's; and filter banks, which are mostly zero."""

from __future__ import annotations

import numpy as np

from tests.support.cases import Case, Const, op_case
from tests.support.data import real
from tinyml.ir import Array
from tinyml.ops.dense.dense import Dense
from tinyml.ops.signal.dft import Dft

LENGTHS = (
    2,
    3,
    4,
    5,
    6,
    7,
    8,
    9,
    10,
    12,
    14,
    15,
    16,
    18,
    22,
    25,
    26,
    30,
    31,
    32,
    34,
    37,
    49,
    62,
    74,
    77,
    96,
    128,
)
LONG = (200, 240, 256, 400, 480, 512, 1000, 1024)


def sparse(outputs: int, inputs: int, share: float) -> Array:
    weights = real(outputs, inputs)
    weights[real(outputs, inputs, low=0, high=1, seed=1) > share] = 0
    weights[outputs // 2] = 0  # an output without any weight
    return weights


def filter_bank(outputs: int, inputs: int, gap: int, coarse: bool = False) -> Array:
    """Each output has two runs of weights with ``gap`` zeros between them; the last two have less."""
    weights = np.zeros((outputs, inputs), np.float32)
    values = np.rint(real(outputs, 10) * 20) / 64 if coarse else real(outputs, 10)
    for output in range(outputs):
        first = (3 * output) % (inputs - 10 - gap)
        weights[output, first : first + 6] = values[output, :6]
        weights[output, first + 6 + gap : first + 10 + gap] = values[output, 6:]
    weights[-2] = 0
    weights[-1, : inputs - 1] = 0
    weights[-1, inputs - 1] = values[0, 0] or 1
    return weights


CASES: list[Case] = [
    *(op_case(f"half_{n}", Dft(1, n, False, True), [real(2, n, 1)], atol=2e-5) for n in LENGTHS),
    *(op_case(f"half_{n}", Dft(1, n, False, True), [real(1, n, 1, low=-1, high=1)], atol=5e-5) for n in LONG),
    *(op_case(f"whole_{n}", Dft(1, n), [real(2, n, 1)], atol=2e-5) for n in (2, 3, 6, 8, 9, 30)),
    *(op_case(f"complex_{n}", Dft(1, n), [real(2, n, 2)], atol=2e-5) for n in (2, 3, 4, 5, 12, 28, 60)),
    *(op_case(f"back_{n}", Dft(1, n, True), [real(2, n, 2)], atol=2e-5) for n in (3, 4, 5, 8, 14, 36)),
    op_case("back_real", Dft(1, 12, True), [real(2, 12, 1)], atol=2e-5),
    op_case("longer", Dft(2, 16, False, True), [real(2, 3, 11, 1)], atol=2e-5),
    op_case("longer_even", Dft(2, 16, False, True), [real(2, 3, 10, 1)], atol=2e-5),
    op_case("longer_complex", Dft(1, 15), [real(2, 11, 2)], atol=2e-5),
    op_case("shorter", Dft(1, 12, False, True), [real(2, 17, 1)], atol=2e-5),
    op_case("shorter_odd", Dft(1, 9, False, True), [real(2, 17, 1)], atol=2e-5),
    *(
        op_case(
            f"sparse_{int(100 * share)}",
            Dense(clamp=limits),
            [real(3, 21), Const(sparse(10, 21, share)), bias],
        )
        for share, limits, bias in (
            (0.1, (0.0, np.inf), Const(real(10))),
            (0.45, (-np.inf, np.inf), None),
            (0.0, (-np.inf, np.inf), Const(real(10))),
        )
    ),
    *(
        op_case(
            f"{'int8_' if coarse else ''}filters_{gap}_apart",
            Dense(clamp=(-1.0, np.inf) if gap else (-np.inf, np.inf)),
            [real(2, 60), Const(filter_bank(9, 60, gap, coarse)), Const(real(9)) if gap else None],
        )
        for gap in (0, 1, 2, 4, 5, 13)
        for coarse in (False, True)
    ),
]
