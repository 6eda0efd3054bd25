# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Convolutions at the limits of what two windows in one word allow, and just past them."""

from __future__ import annotations

from typing import cast

import numpy as np

from tinyml.ir import Array, DType, Graph, Layer, Node, Quant, Tensor
from tinyml.ops.conv.conv import Conv
from tinyml.ops.weighted.pairs import sum_limits
from tinyml.ops.weighted.weighted import Weighted

SUM_LIMIT = 1 << 29
ELEMENTS = 13  # no whole words
FILTERS = 3
POSITIONS = 6  # one and a half times as many as are computed together
CASES = {
    "largest": "halves",  # weights whose magnitudes add up to 255 in every two
    "smallest": "halves",
    "high_sums": "halves",
    "low_sums": "halves",
    "once": "halves",
    "two_least_weights": "plain",
    "least_weights_apart": "halves",  # neighbours, but not in one pair
    "too_high_sums": "plain",
    "too_low_sums": "plain",
}
"""Layers, and whether two windows in a word are exact for them."""


def limited_layers() -> Graph:
    """All cases on one input."""
    x = Tensor("x", (1, 1, POSITIONS, ELEMENTS), DType.INT8, Quant.per_tensor(0.05, 5))
    graph = Graph("limits", {"x": x}, (), ("x",), ())
    for name in CASES:
        graph = _with_layer(graph, name, np.zeros(FILTERS, np.int64))
        bias = _bias(name, graph)
        if bias is not None:
            graph = _with_layer(graph, name, bias)
    return graph


def layer_of(graph: Graph, name: str) -> Layer[Weighted]:
    (layer,) = (layer for layer in graph.layers() if layer.name == name)
    assert isinstance(layer.op, Weighted)
    return cast("Layer[Weighted]", layer)


def extremes(graph: Graph) -> list[Array]:
    """Neighbouring windows at which sums are largest and smallest, in turns; and random ones."""
    weights = layer_of(graph, "largest").input(1).value[0].reshape(-1)
    most = np.where(weights > 0, 127, -128)
    least = np.where(weights > 0, -128, 127)
    lowest = np.full(ELEMENTS, -128)
    rows = ((most, most, least, least, most, least), (least, most, most, least, lowest, lowest))
    random = np.random.default_rng(3).integers(-128, 128, (1, 1, POSITIONS, ELEMENTS))
    made = [np.stack(row).reshape(1, 1, POSITIONS, ELEMENTS) for row in rows]
    return [values.astype(np.int8) for values in (*made, random)]


def _bias(name: str, graph: Graph) -> Array | None:
    """What moves the sums of the second filter to the limit."""
    low, high = (limit.astype(np.int64) for limit in sum_limits(layer_of(graph, name)))
    bias = np.zeros(FILTERS, np.int64)
    if name in ("high_sums", "too_high_sums"):
        bias[1] = SUM_LIMIT - 1 + (name == "too_high_sums") - high[1]
    elif name in ("low_sums", "too_low_sums"):
        bias[1] = -SUM_LIMIT - (name == "too_low_sums") - low[1]
    else:
        return None
    return bias


def _with_layer(graph: Graph, name: str, bias: Array) -> Graph:
    weights = np.tile(np.array([127, -128], np.int8), (FILTERS, ELEMENTS))[:, :ELEMENTS]
    weights[1] = np.random.default_rng(1).integers(-127, 128, ELEMENTS)
    if name == "smallest":
        weights[0] = np.where(weights[0] > 0, -127, 127)
    elif name == "two_least_weights":
        weights[2, 4:6] = -128
    elif name == "least_weights_apart":
        weights[2, 3:7] = (-128, -128, 127, 127)
        weights[2, 2] = -127
    scale = SUM_LIMIT * 0.0001 / 100 if "sums" in name else 0.4
    tensors = (
        Tensor.constant(
            f"{name}_w",
            weights.reshape(FILTERS, 1, 1, ELEMENTS),
            Quant((0.002,) * FILTERS, (0,) * FILTERS, 0),
        ),
        Tensor.constant(f"{name}_b", bias.astype(np.int32)),
        Tensor(f"{name}_y", (1, 1, POSITIONS, FILTERS), DType.INT8, Quant.per_tensor(scale, -3)),
    )
    w, b, y = tensors
    node = Node(name, Conv(round_once=name == "once"), ("x", w.name, b.name), (y.name,))
    others = tuple(each for each in graph.nodes if each.name != name)
    return Graph(
        graph.name,
        {**graph.tensors, **{tensor.name: tensor for tensor in tensors}},
        (*others, node),
        graph.inputs,
        tuple(each.outputs[0] for each in (*others, node)),
    )
