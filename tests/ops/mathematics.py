# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Determinants, Fourier transforms, n-grams, matrix products of all ranks, quantisation at run time."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.support.cases import Case, Const, onnx_case
from tests.support.data import real, whole

SCALES = real(3, low=0.01, high=0.1)
POOL: dict[str, Any] = {
    "pool_int64s": [2, 3, 5, 4, 5, 6, 7, 8, 6, 7],
    "ngram_counts": [0, 4],
    "ngram_indexes": [0, 1, 2, 3, 4, 5, 6],
}
TOKENS = np.array([[1, 1, 3, 3, 3, 7], [8, 6, 7, 5, 6, 8]], np.int32)

CASES: list[Case] = [
    onnx_case("det", "Det", [real(4, 4)], oracle="reference"),
    onnx_case("det_many", "Det", [real(2, 3, 3, 3)], oracle="reference"),
    onnx_case("det_singular", "Det", [np.zeros((2, 2), np.float32)]),
    onnx_case("det_swaps", "Det", [np.array([[0, 1, 0], [0, 0, 2], [3, 0, 0]], np.float32)]),
    *(
        onnx_case(
            f"dft_{inverse}_{axis}",
            "DFT",
            [real(2, 5, 6, 2), None, Const(np.array(axis))],
            inverse=inverse,
            atol=1e-5,
        )
        for inverse in (0, 1)
        for axis in (0, 1, -2)
    ),
    onnx_case("dft_real", "DFT", [real(1, 9, 1)], atol=1e-5, oracle="reference"),
    onnx_case("dft_half", "DFT", [real(1, 9, 1)], atol=1e-5, onesided=1, oracle="reference"),
    onnx_case("dft_longer", "DFT", [real(1, 9, 1), Const(np.array(12))], atol=1e-5, oracle="reference"),
    onnx_case("dft_shorter", "DFT", [real(1, 9, 2), Const(np.array(6))], atol=1e-5, oracle="reference"),
    *(
        onnx_case(
            f"dft_half_back_{n}",
            "DFT",
            [real(1, 5, 2), Const(np.array(n))],
            inverse=1,
            onesided=1,
            oracle="reference",
            atol=1e-5,
        )
        for n in (6, 7, 8, 9, 12)
    ),
    *(
        onnx_case(
            f"grams_{mode}_{skip}",
            "TfIdfVectorizer",
            [TOKENS],
            mode=mode,
            min_gram_length=1,
            max_gram_length=2,
            max_skip_count=skip,
            weights=[1.0, 2.0, 3.0, 0.5, 0.25, 4.0, 5.0],
            **POOL,
        )
        for mode in ("TF", "IDF", "TFIDF")
        for skip in (0, 1, 5)
    ),
    onnx_case(
        "grams_pairs",
        "TfIdfVectorizer",
        [TOKENS[0]],
        mode="TF",
        min_gram_length=2,
        max_gram_length=2,
        max_skip_count=5,
        **POOL,
    ),
    *(
        onnx_case(f"matmul_{'x'.join(map(str, a))}_{'x'.join(map(str, b))}", "MatMul", [real(*a), real(*b)])
        for a, b in (
            ((3,), (3,)),
            ((3,), (2, 3, 4)),
            ((2, 3), (3, 4)),
            ((2, 2, 3), (2, 3, 4)),
            ((1, 2, 2, 3), (4, 1, 3, 4)),
            ((2, 2, 3), (3,)),
        )
    ),
    onnx_case("matmul_constant", "MatMul", [real(2, 3), Const(real(3, 4))]),
    onnx_case("gemm_computed_bias", "Gemm", [real(2, 3), Const(real(3, 4)), real(4, seed=2)]),
    onnx_case("matmul_int32", "MatMul", [whole(2, 3), Const(whole(3, 4))]),
    onnx_case("matmul_double", "MatMul", [real(2, 3, dtype="float64"), Const(real(3, 4, dtype="float64"))]),
    onnx_case(
        "matmul_integer",
        "MatMulInteger",
        [whole(2, 3, dtype="uint8"), whole(3, 4, dtype="int8"), np.array(7, np.uint8), np.array(-3, np.int8)],
    ),
    onnx_case(
        "matmul_integer_columns",
        "MatMulInteger",
        [whole(2, 3, dtype="uint8"), whole(3, 4, dtype="uint8"), None, whole(4, dtype="uint8")],
    ),
    *(
        onnx_case(f"quantize_{t}", "QuantizeLinear", [real(4, 3), np.array(0.05, np.float32), np.array(3, t)])
        for t in ("int8", "uint8", "int16", "uint16")
    ),
    onnx_case("quantize_per_axis", "QuantizeLinear", [real(2, 3, 4), SCALES, np.array([1, 2, 3], np.uint8)]),
    onnx_case(
        "quantize_per_axis_known",
        "QuantizeLinear",
        [real(2, 3, 4), Const(SCALES), Const(np.array([1, 2, 3], np.int8))],
    ),
    onnx_case(
        "quantize_blocks",
        "QuantizeLinear",
        [real(2, 6), Const(real(2, 3, low=0.1)), Const(whole(2, 3, dtype="uint8"))],
        axis=1,
        block_size=2,
    ),
    *(
        onnx_case(
            f"dequantize_{t}",
            "DequantizeLinear",
            [whole(4, 3, dtype=t), np.array(0.05, np.float32), np.array(3, t)],
        )
        for t in ("int8", "uint8", "int16", "uint16")
    ),
    onnx_case(
        "dequantize_per_axis",
        "DequantizeLinear",
        [whole(2, 3, 4, dtype="int8"), SCALES, np.array([1, 2, 3], np.int8)],
    ),
    onnx_case(
        "dequantize_blocks",
        "DequantizeLinear",
        [whole(2, 6, dtype="int8"), real(2, 3, low=0.1), whole(2, 3, dtype="int8")],
        axis=1,
        block_size=2,
    ),
    onnx_case("dynamic", "DynamicQuantizeLinear", [real(3, 4)], outputs=3),
    onnx_case("dynamic_positive", "DynamicQuantizeLinear", [real(3, 4, low=1)], outputs=3),
    onnx_case(
        "qlinear_matmul",
        "QLinearMatMul",
        [
            whole(2, 3, dtype="uint8"),
            np.array(0.02, np.float32),
            np.array(5, np.uint8),
            whole(3, 4, dtype="uint8"),
            np.array(0.03, np.float32),
            np.array(6, np.uint8),
            np.array(0.5, np.float32),
            np.array(9, np.uint8),
        ],
    ),
    onnx_case("trilu_at_run_time", "Trilu", [real(2, 4, 5), np.array(-1)], upper=0),
    *(
        onnx_case(f"cumsum_at_run_time_{a}", "CumSum", [real(2, 3, 4), np.array(a)], reverse=1)
        for a in (0, 1, -1)
    ),
    onnx_case("shape", "Shape", [real(2, 3, 4)], start=-2),
    onnx_case("size", "Size", [real(2, 3, 4)]),
    onnx_case("one_token", "MatMul", [Const(np.full((3, 2, 1, 1), 0.5, np.float32)), real(3, 2, 1, 4)]),
    onnx_case("filled", "ConstantOfShape", [Const(np.array([2, 3]))]),
    onnx_case("non_zero", "NonZero", [Const(np.array([[0, 2, 0], [3, 0, -1]], np.float32))]),
    onnx_case("range", "Range", [Const(np.array(v)) for v in (10, 1, -3)]),
    onnx_case("range_float", "Range", [Const(np.array(v, np.float32)) for v in (1, 2, 0.3)]),
    onnx_case("eye", "EyeLike", [real(3, 4)], k=1, dtype=6),
]
