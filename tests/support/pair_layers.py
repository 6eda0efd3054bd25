# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Layers whose sums reach the limit of what two filters in one int16 allow, or pass it."""

from __future__ import annotations

from typing import cast

import numpy as np

from tinyml.ir import Array, DType, Graph, Layer, Node, Quant, Tensor
from tinyml.ops.conv.conv import Conv
from tinyml.ops.dense.dense import Dense
from tinyml.ops.weighted.pairs import sum_limits
from tinyml.ops.weighted.weighted import Weighted

LIMIT = 1 << 23
ELEMENTS = 261  # no whole words, and not so few that sums stay small
SIZES = {"conv": (4, ELEMENTS), "dense": (4, ELEMENTS), "wide": (33, 264)}
"""Filters and elements of the layers; wide dense layers have a kernel of their own."""
FIRST, SECOND = 2, 3  # a pair
IN_ZERO = 5
CASES = (
    *("largest", "smallest", "too_large", "too_small"),
    *("second_filter_large", "least_weight_above", "least_weight"),
)


def limited_layer(name: str) -> Graph:
    """``conv_``, ``dense_`` or ``wide_`` and one of CASES."""
    kind, _, case = name.partition("_")
    rng = np.random.default_rng(len(case))
    weights = rng.integers(-127, 128, SIZES[kind]).astype(np.int8)
    bias = np.zeros(len(weights), np.int64)
    low, high = (limit.astype(np.int64) for limit in sum_limits(_layer(kind, weights, bias)))
    if case in ("largest", "too_large"):
        bias[FIRST] = LIMIT - 1 + (case == "too_large") - high[FIRST]
    elif case in ("smallest", "too_small"):
        bias[FIRST] = -LIMIT - (case == "too_small") - low[FIRST]
    elif case == "second_filter_large":
        bias[SECOND] = 5 * LIMIT
    else:
        weights[FIRST, 7] = -128
        weights[SECOND, 7] = 0 if case == "least_weight_above" else -1
    return _graph(kind, weights, bias)


def single_layer(op: Conv | Dense, bias: int) -> Layer[Weighted]:
    """One filter."""
    kind = "conv" if isinstance(op, Conv) else "dense"
    return _layer(kind, np.ones((1, ELEMENTS), np.int8), np.array([bias]))


def extremes(graph: Graph) -> list[Array]:
    """Inputs at which the sums of the limited filter are largest and smallest, and one at random."""
    (layer,) = graph.layers()
    x = layer.input(0)
    weights = layer.input(1).value[FIRST].reshape(-1)
    largest = np.where(weights > 0, 127, -128).astype(np.int8)
    smallest = np.where(weights > 0, -128, 127).astype(np.int8)
    random = np.random.default_rng(3).integers(-128, 128, weights.size).astype(np.int8)
    return [row.reshape(x.shape) for row in (largest, smallest, random)]


def _layer(kind: str, weights: Array, bias: Array) -> Layer[Weighted]:
    return only_layer(_graph(kind, weights, bias))


def only_layer(graph: Graph) -> Layer[Weighted]:
    (layer,) = graph.layers()
    assert isinstance(layer.op, Weighted)
    return cast("Layer[Weighted]", layer)


def _graph(kind: str, weights: Array, bias: Array) -> Graph:
    outputs, elements = weights.shape
    lead = (1, 1, 1) if kind == "conv" else (1,)
    shape = (outputs, 1, 1, elements) if kind == "conv" else (outputs, elements)
    tensors = (
        Tensor("x", (*lead, elements), DType.INT8, Quant.per_tensor(0.05, IN_ZERO)),
        Tensor.constant("w", weights.reshape(shape), Quant((0.002,) * outputs, (0,) * outputs, 0)),
        Tensor.constant("b", bias.astype(np.int32)),
        Tensor("y", (*lead, outputs), DType.INT8, Quant.per_tensor(8.0, -3)),
    )
    node = Node("layer", Conv() if kind == "conv" else Dense(), ("x", "w", "b"), ("y",))
    return Graph("limits", {tensor.name: tensor for tensor in tensors}, (node,), ("x",), ("y",))
