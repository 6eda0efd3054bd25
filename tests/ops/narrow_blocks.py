# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""MatMulNBits and GatherBlockQuantized against onnxruntime."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from numpy.random import default_rng

from tests.support.cases import Case, Const, onnx_case
from tinyml.ir import Array


def packed(seed: int, *shape: int) -> Array:
    return default_rng(seed).integers(0, 255, shape, dtype=np.uint8, endpoint=True)


def real(seed: int, *shape: int) -> Array:
    return default_rng(seed).normal(0, 1, shape).astype(np.float32)


def product(
    name: str,
    ins: int,
    outs: int,
    block: int,
    bits: int = 4,
    zeros: str = "",
    bias: bool = False,
    rows: int = 1,
) -> Case:
    blocks = -(-ins // block)
    operands: list[Array | Const | None] = [
        real(1, rows, ins),
        Const(packed(2, outs, blocks, block * bits // 8)),
        Const(real(3, outs * blocks) * np.float32(0.1)),
        None,
    ]
    if zeros == "packed":
        operands[3] = Const(packed(4, outs * ((blocks * bits + 7) // 8)))
    elif zeros == "real":
        operands[3] = Const(real(4, outs * blocks) + np.float32(7))
    if bias:
        operands += [None, Const(real(5, outs))]
    while operands[-1] is None:
        operands.pop()
    attributes: dict[str, Any] = {"K": ins, "N": outs, "bits": bits, "block_size": block}
    return onnx_case(
        name, "MatMulNBits", operands, domain="com.microsoft", rtol=1e-4, atol=1e-4, **attributes
    )


def rows(name: str, table: Array, scales: Array, zeros: Array | None = None, **attributes: Any) -> Case:
    operands: list[Array | Const | None] = [
        Const(table),
        np.array([[2, 0], [6, 5]], np.int64),
        Const(scales),
        *([] if zeros is None else [Const(zeros)]),
    ]
    return onnx_case(name, "GatherBlockQuantized", operands, domain="com.microsoft", **attributes)


INT4 = np.dtype(ml_dtypes.int4)
UINT4 = np.dtype(ml_dtypes.uint4)

CASES = [
    *(product(f"block {block}", 256, 9, block) for block in (16, 32, 64, 128, 256)),
    product("short block", 100, 10, 32, zeros="packed"),
    product("odd zero points", 96, 7, 32, zeros="packed", rows=3),
    product("real zero points", 64, 6, 32, zeros="real"),
    product("bias", 64, 6, 16, bias=True),
    product("eight bits", 80, 6, 16, bits=8),
    product("eight bits, zero points", 80, 6, 16, bits=8, zeros="packed"),
    rows("int4 rows", packed(6, 7, 64).astype(INT4), real(7, 7, 4), block_size=16),
    rows(
        "uint4 rows",
        packed(6, 7, 64).astype(UINT4),
        real(7, 7, 2),
        packed(8, 7, 2).astype(UINT4),
        block_size=32,
    ),
    rows("packed rows", packed(9, 7, 32), real(7, 7, 4), block_size=16),
    rows("packed rows, zero points", packed(9, 7, 32), real(7, 7, 4), packed(8, 7, 2), block_size=16),
    rows("bytes", packed(9, 7, 32), real(7, 7, 2), packed(8, 7, 2), block_size=16, bits=8),
]
