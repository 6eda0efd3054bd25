# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The work of a layer in numbers that decide how many instructions a kernel of a library takes."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from tinyml.ir import Layer

Work = Mapping[str, float]
"""Amounts of work by kind; ``tools.fit_costs`` finds out what one of each kind costs in each kernel."""


def work(layer: Layer) -> dict[str, float]:
    """Sizes, and for layers with windows how often these are moved and how much of them is padding."""
    zeros = getattr(layer.op, "joined", 1)  # kernels multiply those of joined groups as well
    macs, outputs = layer.op.macs(layer) * zeros, sum(t.elements for t in layer.outputs)
    channels = layer.output.shape[-1] if layer.output.shape else 1
    positions = outputs / max(channels, 1)
    inner = macs / outputs if outputs else 0  # multiplications of one output
    found = {
        "call": 1.0,
        "inputs": float(sum(t.elements for t in layer.inputs if t is not None and not t.is_constant)),
        "outputs": float(outputs),
        "positions": positions,
        "channels": float(channels),
        "macs": float(macs),
        "columns": positions * inner,
        "quads": outputs * _groups(inner, 4),
        "vectors": outputs * _groups(inner, 16),
        "pairs": positions * _groups(channels, 2),
        "pair_macs": positions * _groups(channels, 2) * inner,
        "lanes": positions * _groups(channels, 4),
        "lane_macs": positions * _groups(channels, 16) * inner,
        "quad_macs": positions * _groups(channels, 4) * inner,
        "quad_vectors": positions * _groups(channels, 4) * _groups(inner, 16),
        "last_macs": positions * (channels % 4) * inner,
        "last_vectors": positions * (channels % 4) * _groups(inner, 16),
        "tiles": _groups(positions, 4) * _groups(channels, 2) * _groups(inner, 16),
        "rest_vectors": positions % 4 * channels * _groups(inner, 16),
        "twos": _groups(positions, 2) * channels * inner,
        "threes": _groups(positions, 3) * channels * inner,
        "fours": _groups(positions, 4) * channels * inner,
        "constants": float(sum(t.elements for t in layer.inputs if t is not None and t.is_constant)),
    }
    return (
        found | _windows(layer, macs) | _spread(layer) | _stored(layer, positions) | _limited(layer, outputs)
    )


def _spread(layer: Layer) -> dict[str, float]:
    """For a transposed convolution that is computed as convolutions: their windows, padding included."""
    op, x, y = layer.op, layer.inputs[0], layer.output
    sizes, strides = getattr(op, "outputs", None), getattr(op, "strides", None)
    pads, dilations = getattr(op, "pads", ()), getattr(op, "dilations", ())
    if x is None or sizes is None or strides is None or len(y.shape) != 4 or not layer.has_input(1):
        return {}
    weights = layer.input(1).shape
    taps = [
        sum((o + pads[axis] - k * dilations[axis]) % strides[axis] == 0 for o in range(sizes[axis]))
        for axis in range(2)
        for k in range(weights[1 + axis])
    ]
    columns = float(x.shape[0] * sum(taps[: weights[1]]) * sum(taps[weights[1] :]) * weights[3])
    return {
        "spread_columns": columns,
        "spread_macs": columns * weights[0],
        "spread_rows": float(x.shape[0] * y.shape[1] * min(strides[1], y.shape[2])),
    }


def _limited(layer: Layer, outputs: int) -> dict[str, float]:
    """Float outputs that are compared with limits; those of integers always are."""
    low, high = getattr(layer.op, "clamp", (-math.inf, math.inf))
    if not layer.output.dtype.is_float:
        return {}
    return {"lows": outputs * float(low > -math.inf), "highs": outputs * float(high < math.inf)}


def _stored(layer: Layer, positions: float) -> dict[str, float]:
    """For float layers of which most weights are zero: the others, and the runs that they form."""
    weights = layer.inputs[1] if len(layer.inputs) > 1 else None
    if weights is None or not weights.is_constant or len(weights.shape) != 2 or not weights.dtype.is_float:
        return {}
    used = weights.value != 0
    if 2 * np.count_nonzero(used) > used.size:
        return {}
    runs = np.count_nonzero(used[:, 1:] & ~used[:, :-1]) + np.count_nonzero(used[:, 0])
    return {"stored": positions * np.count_nonzero(used), "runs": positions * runs}


def _windows(layer: Layer, macs: int) -> dict[str, float]:
    """For a convolution or a pool: rows of windows, windows that contain padding, and how much of it."""
    op, x, y = layer.op, layer.inputs[0], layer.output
    strides, pads = getattr(op, "strides", None), getattr(op, "pads", None)
    if x is None or strides is None or pads is None or len(y.shape) != 4 or len(x.shape) != 4:
        return {}
    kernel = getattr(op, "kernel", None) or tuple(layer.input(1).shape[1:3])
    dilations = getattr(op, "dilations", (1, 1))
    inside, whole = 1.0, y.shape[0]
    for axis in range(2):
        taps = _inside(
            x.shape[1 + axis], y.shape[1 + axis], kernel[axis], strides[axis], dilations[axis], pads[axis]
        )
        inside *= sum(taps) / (y.shape[1 + axis] * kernel[axis])
        whole *= taps.count(kernel[axis])
    amount = macs or y.elements * kernel[0] * kernel[1]
    groups = getattr(op, "groups", 1)
    return {
        "groups": float(groups * y.elements // y.shape[3]) if groups > 1 else 0.0,
        "inside": amount * inside,
        "rows": float(y.shape[0] * y.shape[1] * y.shape[3]),
        "taps": float(y.shape[0] * y.shape[1] * y.shape[2] * kernel[0] * kernel[1]),
        "tap_rows": float(y.elements * kernel[0]),
        "plane": float(x.elements),
        "edges": float(y.shape[0] * y.shape[1] * y.shape[2] - whole),
    }


def _inside(size: int, extent: int, kernel: int, stride: int, dilation: int, pad: int) -> list[int]:
    """The taps of each window along one axis that are not padding."""
    return [
        sum(0 <= at * stride - pad + tap * dilation < size for tap in range(kernel)) for at in range(extent)
    ]


def _groups(count: float, size: int) -> float:
    return float(-(-count // size))
