# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Pruned models whose constants TFLite stores in sparse form, as MediaPipe's."""

from __future__ import annotations

import numpy as np

from tests.first_sight import Case, Refused, Right
from tests.support.tflite_writer import Call, Part, Value, write
from tinyml.importers.tflite_sparse import Level, Sparsity
from tinyml.ir import Array, Quant

RNG = np.random.default_rng(8)


def pruned(shape: tuple[int, ...], dtype: str = "float32") -> Array:
    kept = RNG.random(shape) < 0.4
    values = RNG.integers(-90, 90, shape) if dtype == "int8" else RNG.normal(0, 1, shape)
    return np.where(kept, values, 0).astype(dtype)


def rows(dense: Array) -> tuple[Array, Sparsity]:
    """The first axis dense, the others as one tree of which the last is sparse."""
    matrix = dense.reshape(-1, dense.shape[-1])
    indices = [np.flatnonzero(row) for row in matrix]
    segments = np.concatenate([[0], np.cumsum([len(row) for row in indices])])
    values = np.concatenate([row[i] for row, i in zip(matrix, indices, strict=True)])
    last = Level(0, segments, np.concatenate(indices))
    levels = (*(Level(extent) for extent in dense.shape[:-1]), last)
    return values, Sparsity(tuple(range(dense.ndim)), (), levels)


def blocks(dense: Array, size: int) -> tuple[Array, Sparsity]:
    """A matrix in blocks of one row and ``size`` columns, of which only some are stored."""
    height, width = dense.shape
    values, indices, segments = [], [], [0]
    for row in dense.reshape(height, width // size, size):
        found = [i for i, block in enumerate(row) if block.any()]
        values += [row[i] for i in found]
        indices += found
        segments.append(len(indices))
    levels = (Level(height), Level(0, np.array(segments), np.array(indices)), Level(size))
    return np.concatenate(values), Sparsity((0, 1, 2), (1,), levels)


def dense_layer(kind: str) -> bytes:
    weights = pruned((6, 8))
    if kind == "blocks":
        weights[:, :4] = np.where(RNG.random((6, 1)) < 0.5, 0, weights[:, :4])
    data, sparsity = blocks(weights, 4) if kind == "blocks" else rows(weights)
    values = [Value("x", (1, 8)), Value("y", (1, 6)), Value("dense", (6, 8))]
    values.append(Value("sparse", (6, 8), "float32", None, data, sparsity=sparsity))
    calls = [
        Call("DENSIFY", ["sparse"], ["dense"], "DensifyOptions"),
        Call("FULLY_CONNECTED", ["x", "dense", ""], ["y"], "FullyConnectedOptions"),
    ]
    return write(Part(values, calls, ["x"], ["y"]))


def conv() -> bytes:
    """Sparse float16 weights, densified, dequantised: how MediaPipe's face models store them."""
    data, sparsity = rows(pruned((3, 1, 1, 8)).astype(np.float16))
    values = [
        Value("x", (1, 4, 4, 8)),
        Value("y", (1, 4, 4, 3)),
        Value("half", (3, 1, 1, 8), "float16", None, data, sparsity=sparsity),
        Value("dense", (3, 1, 1, 8), "float16"),
        Value("w", (3, 1, 1, 8)),
        Value.constant("b", np.ones(3, np.float32)),
    ]
    options = {"StrideH": 1, "StrideW": 1, "DilationWFactor": 1, "DilationHFactor": 1}
    calls = [
        Call("DENSIFY", ["half"], ["dense"], "DensifyOptions"),
        Call("DEQUANTIZE", ["dense"], ["w"]),
        Call("CONV_2D", ["x", "w", "b"], ["y"], "Conv2DOptions", options),
    ]
    return write(Part(values, calls, ["x"], ["y"]))


def int8_layer() -> bytes:
    data, sparsity = rows(pruned((4, 8), "int8"))
    quant = Quant.per_tensor(0.02, 0)
    values = [
        Value("x", (1, 8), "int8", Quant.per_tensor(0.05, 3)),
        Value("y", (1, 4), "int8", Quant.per_tensor(0.2, -7)),
        Value("dense", (4, 8), "int8", quant),
        Value("sparse", (4, 8), "int8", quant, data, sparsity=sparsity),
    ]
    calls = [
        Call("DENSIFY", ["sparse"], ["dense"], "DensifyOptions"),
        Call("FULLY_CONNECTED", ["x", "dense", ""], ["y"], "FullyConnectedOptions"),
    ]
    return write(Part(values, calls, ["x"], ["y"]))


def broken() -> bytes:
    data, sparsity = rows(pruned((6, 8)))
    wrong = Sparsity(sparsity.order, (), (Level(6), Level(0, sparsity.levels[1].segments, np.array([99]))))
    values = [Value("x", (1, 8)), Value("y", (1, 6))]
    values.append(Value("sparse", (6, 8), "float32", None, data, sparsity=wrong))
    call = Call("FULLY_CONNECTED", ["x", "sparse", ""], ["y"], "FullyConnectedOptions")
    return write(Part(values, [call], ["x"], ["y"]))


CASES: list[Case] = [
    *(Right(kind, lambda kind=kind: dense_layer(kind), "tflite") for kind in ("rows", "blocks")),  # type: ignore[misc]
    Right("half", conv, "tflite"),
    Right("int8", int8_layer, "tflite"),
    Refused("broken", broken, ("'sparse' is broken", "lacks indices"), "tflite"),
]
