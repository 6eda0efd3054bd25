# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""TFLite's uint8 after the shift to int8: operators whose arithmetic differs from that of int8."""

from __future__ import annotations

import numpy as np

from tests.support.cases import Case, Stored, op_case
from tinyml.ir import Array, Quant
from tinyml.ops.pool.average import AveragePool
from tinyml.ops.resize.bilinear import ResizeBilinear
from tinyml.ops.resize.tflite import Grid

Q = Quant.per_tensor(0.05, -9)
IMAGE = np.random.default_rng(4).integers(-128, 128, (1, 5, 4, 3)).astype(np.int8)
HALF = Stored(np.array([-3, -2, 2, 3], np.int8).reshape(1, 2, 2, 1), Q)


def bytes_of(*values: int) -> Array:
    return np.array(values, np.int8).reshape(1, 2, -1, 1)


CASES: list[Case] = [
    op_case("mean_halves_up", AveragePool((1, 2), (1, 1), pads=(0, 0, 0, 1), halves="up"), [HALF],
            expected=[bytes_of(-2, -2, 3, 3)]),
    op_case("mean_one_size", AveragePool((1, 2), (1, 1), halves="up"), [HALF], expected=[bytes_of(-2, 3)]),
    op_case("mean_padded", AveragePool((3, 2), (2, 1), pads=(1, 0, 1, 1), halves="up"), [Stored(IMAGE, Q)]),
    *(
        op_case(f"bilinear_{i}", ResizeBilinear(7, 6, Grid(*flags), unsigned=True), [Stored(IMAGE, Q)])
        for i, flags in enumerate(((False, False), (True, False), (False, True)))
    ),
    op_case("bilinear_halves_up", ResizeBilinear(2, 4, unsigned=True), [HALF],
            expected=[bytes_of(-3, -2, -2, -2, 2, 3, 3, 3)]),
]  # fmt: skip
