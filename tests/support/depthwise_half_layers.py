# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Depthwise convolutions at the limits of what two outputs in one word allow, and just past them."""

from __future__ import annotations

import numpy as np

from tinyml.ir import Array, DType, Graph, Node, Quant, Tensor
from tinyml.ops.conv.depthwise import DepthwiseConv

SHAPE = (1, 5, 4, 3)
SUM_LIMIT = 1 << 29
IN_ZERO = 5
ALTERNATING = (127, -128, 127, -128, 127, -128, 127, -128, -128)
"""Every two taps that are added have magnitudes that add up to 255, the ninth 128."""

CASES = {
    "largest": "halves",
    "smallest": "halves",
    "once": "halves",
    "down_columns": "halves",
    "two_least_taps": "plain",  # 0 and 1
    "two_least_taps_down": "plain",  # 2 and 5
    "least_taps_apart": "halves",  # 1 and 2: never added
    "high_bias": "halves",
    "low_bias": "halves",
    "too_high_bias": "plain",
    "too_low_bias": "plain",
    "relu": "plain",
    "row_of_taps": "halves",
    "two_least_taps_in_a_row": "plain",
}
"""Layers, and whether two outputs in a word are exact for them."""


def limited_layers() -> Graph:
    """All cases on one input."""
    x = Tensor("x", SHAPE, DType.INT8, Quant.per_tensor(0.05, IN_ZERO))
    tensors, nodes = {"x": x}, []
    for name in CASES:
        op = DepthwiseConv(
            strides=(1, 3) if name == "down_columns" else (1, 1),
            pads=(1, 1, 1, 1),
            clamp=(0.0, np.inf) if name == "relu" else (-np.inf, np.inf),
            round_once=name == "once",
        )
        weights = _weights(name)
        bias = np.zeros(SHAPE[3], np.int64)
        if name.endswith("bias"):
            second = weights[0, :, :, 1].astype(np.int64)
            limit = SUM_LIMIT - 1 + name.startswith("too") - 128 * int(np.abs(second).sum())
            bias[1] = (limit if "high" in name else -limit) + IN_ZERO * int(second.sum())
        x_type = [Tensor("x", SHAPE, DType.INT8), Tensor("w", weights.shape, DType.INT8)]
        shape = op.infer(x_type)[0].shape
        scale = SUM_LIMIT * 0.0001 / 100 if name.endswith("bias") else 0.4
        made = (
            Tensor.constant(f"{name}_w", weights, Quant((0.002,) * SHAPE[3], (0,) * SHAPE[3], 3)),
            Tensor.constant(f"{name}_b", bias.astype(np.int32)),
            Tensor(f"{name}_y", shape, DType.INT8, Quant.per_tensor(scale, -3)),
        )
        tensors |= {tensor.name: tensor for tensor in made}
        nodes.append(Node(name, op, ("x", made[0].name, made[1].name), (made[2].name,)))
    return Graph("limits", tensors, tuple(nodes), ("x",), tuple(node.outputs[0] for node in nodes))


def _weights(name: str) -> Array:
    """Limits in the first channel, random taps in the second, the case in the last."""
    taps = np.tile(np.array(ALTERNATING, np.int8)[:, np.newaxis], (1, SHAPE[3]))
    if name.endswith("row") or name == "row_of_taps":
        taps[:2, 2] = (-128, -128 if name.endswith("row") else 127)
        return taps[:5].reshape(1, 1, 5, SHAPE[3])
    taps[:, 1] = np.random.default_rng(1).integers(-127, 128, 9)
    if name == "smallest":
        taps[:, 0] = np.where(taps[:, 0] > 0, -128, 127)
    elif name == "two_least_taps":
        taps[:2, 2] = -128
    elif name == "two_least_taps_down":
        taps[[2, 5], 2] = -128
    elif name == "least_taps_apart":
        taps[:3, 2] = (127, -128, -128)
        taps[5, 2] = 127
    return taps.reshape(1, 3, 3, SHAPE[3])


def extremes() -> list[Array]:
    """Inputs at which windows of the first channel have their largest and smallest sums, and random ones."""
    taps = np.array(ALTERNATING).reshape(3, 3)
    most, least = np.where(taps > 0, 127, -128), np.where(taps > 0, -128, 127)
    made = []
    for upper, lower in ((most, least), (least, most), (most, most)):
        plane = np.full(SHAPE[1:3], -128)
        plane[:3, :3] = upper  # of window (1, 1), and of window (3, 2) below it
        plane[2:, 1:] = lower
        made.append(plane)
    made += [np.full(SHAPE[1:3], value) for value in (-128, 127)]
    arrays = [np.repeat(plane[np.newaxis, :, :, np.newaxis], SHAPE[3], axis=3) for plane in made]
    random = np.random.default_rng(3).integers(-128, 128, SHAPE)
    return [values.astype(np.int8) for values in (*arrays, random)]
