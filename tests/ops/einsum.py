# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Einsum: products, sums, diagonals, dots."""

from __future__ import annotations

from tests.support.cases import Case, onnx_case
from tests.support.data import real, whole

CASES: list[Case] = [
    onnx_case("matmul", "Einsum", [real(2, 3), real(3, 4)], equation="ij,jk->ik"),
    onnx_case("batch", "Einsum", [real(5, 2, 3), real(5, 3, 4)], equation="bij, bjk -> bik"),
    onnx_case("heads", "Einsum", [real(2, 3, 4, 5), real(2, 6, 4, 5)], equation="bqhd,bkhd->bhqk"),
    onnx_case("transpose", "Einsum", [real(2, 3)], equation="ij->ji"),
    onnx_case("sum", "Einsum", [real(3, 4)], equation="ij->i"),
    onnx_case("inner", "Einsum", [real(5), real(5, seed=1)], equation="i,i"),
    onnx_case("outer", "Einsum", [real(3), real(4)], equation="i,j->ij"),
    onnx_case("diagonal", "Einsum", [real(4, 3, 3)], equation="...ii->...i"),
    onnx_case("trace", "Einsum", [real(3, 3)], equation="ii"),
    onnx_case(
        "dots", "Einsum", [real(2, 1, 3, 4), real(5, 4, 2)], equation="...ij,...jk->...ik", oracle="reference"
    ),
    onnx_case("three", "Einsum", [real(2, 3), real(3, 4), real(4, 5)], equation="ij,jk,kl->il"),
    onnx_case("implicit", "Einsum", [real(2, 3), real(3, 4)], equation="zj,ja"),
    onnx_case("implicit_dots", "Einsum", [real(2, 3), real(3, 2)], equation="...j,j..."),
    onnx_case("integers", "Einsum", [whole(2, 3), whole(3, 4)], equation="ij,jk->ik"),
]
