# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Convolutions and dense layers as what they are to their weights: rows times columns.

Every output element of a layer is a row of weights times a column of inputs, plus the bias. Groups of a
convolution have rows and columns of their own. A transposed convolution adds up such products afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array
from tinyml.quantize.channels import BIAS, attributes
from tinyml.reference.session import Session

COLUMNS = 4096
"""Columns of inputs that are kept of each layer, evenly spread over samples and positions."""


@dataclass(frozen=True)
class Linear:
    """A layer with constant weights."""

    node: onnx.NodeProto
    weights: Array
    bias_values: Array | None = None  # where the bias is a constant

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def groups(self) -> int:
        return int(attributes(self.node).get("group", 1)) if self.node.op_type == "Conv" else 1

    def rows(self, weights: Array | None = None) -> Array:
        """(groups, rows, columns) of the weights, or of other numbers of the same shape."""
        values = self.weights if weights is None else weights
        if self.node.op_type == "Conv":
            return values.reshape(self.groups, values.shape[0] // self.groups, -1)
        if self.node.op_type == "ConvTranspose":
            return np.moveaxis(values, 0, -1).reshape(1, -1, values.shape[0])
        return (values if self._transposed else values.T)[np.newaxis]

    def shaped(self, rows: Array) -> Array:
        """The reverse of ``rows``."""
        if self.node.op_type == "Conv":
            return rows.reshape(self.weights.shape)
        if self.node.op_type == "ConvTranspose":
            shape = (*self.weights.shape[1:], self.weights.shape[0])
            return np.moveaxis(rows.reshape(shape), -1, 0)
        return rows[0] if self._transposed else rows[0].T

    @property
    def rows_of_a_channel(self) -> int:
        """How many rows share an output channel, and so a scale: the taps of a transposed convolution."""
        return int(np.prod(self.weights.shape[2:])) if self.node.op_type == "ConvTranspose" else 1

    @property
    def takes_mean(self) -> bool:
        """Whether its bias can make up for a shift of the mean output."""
        return self.bias_values is not None and self.rows_of_a_channel == 1

    @property
    def _transposed(self) -> bool:
        return self.node.op_type == "Gemm" and bool(attributes(self.node).get("transB"))

    def columns(self, inputs: Array, most: int) -> Array:
        """(groups, positions, columns) of an input, at most so many positions, evenly spread."""
        if self.node.op_type in ("Gemm", "MatMul"):
            found = inputs.reshape(-1, inputs.shape[-1])
        elif self.node.op_type == "ConvTranspose":
            found = np.moveaxis(inputs, 1, -1).reshape(-1, inputs.shape[1])
        else:
            return self._windows(inputs, most)
        return found[_spread(len(found), most)][np.newaxis]

    def _windows(self, inputs: Array, most: int) -> Array:
        more, size = attributes(self.node), self.weights.shape[2:]
        strides = more.get("strides", [1] * len(size))
        steps = more.get("dilations", [1] * len(size))
        spans = [(k - 1) * d + 1 for k, d in zip(size, steps, strict=True)]
        pads = _pads(more, inputs.shape[2:], spans, strides)
        padded = np.pad(inputs, [(0, 0), (0, 0), *pads])
        windows = np.lib.stride_tricks.sliding_window_view(padded, spans, axis=tuple(range(2, inputs.ndim)))
        strided = [slice(None), slice(None), *(slice(None, None, s) for s in strides)]
        windows = windows[tuple(strided + [slice(None, None, d) for d in steps])]
        extents = (inputs.shape[0], *windows.shape[2 : 2 + len(size)])
        places = np.unravel_index(_spread(int(np.prod(extents)), most), extents)
        found = np.moveaxis(windows, 1, 1 + len(size))[places]  # (positions, channels, window)
        count, channels = len(found), inputs.shape[1]
        by_group = found.reshape(count, self.groups, channels // self.groups * int(np.prod(size)))
        return np.moveaxis(by_group, 1, 0)


def _pads(
    more: Mapping[str, Any], extents: Sequence[int], spans: Sequence[int], strides: Sequence[int]
) -> list[tuple[int, int]]:
    how = more.get("auto_pad", b"NOTSET").decode()
    if how in ("SAME_UPPER", "SAME_LOWER"):
        found = []
        for extent, span, stride in zip(extents, spans, strides, strict=True):
            total = max((-(-extent // stride) - 1) * stride + span - extent, 0)
            half = total // 2
            found.append((half, total - half) if how == "SAME_UPPER" else (total - half, half))
        return found
    flat = more.get("pads") if how == "NOTSET" else None
    flat = flat or [0] * (2 * len(spans))
    return list(zip(flat[: len(spans)], flat[len(spans) :], strict=True))


def _spread(count: int, most: int) -> Array:
    return np.arange(count) if count <= most else np.linspace(0, count - 1, most).astype(np.int64)


def linear_layers(model: onnx.ModelProto) -> list[Linear]:
    """The layers of a float model whose weights are a constant of their own."""
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    uses: dict[str, int] = {}
    for node in model.graph.node:
        for name in node.input:
            uses[name] = uses.get(name, 0) + 1
    found = []
    for node in model.graph.node:
        if node.op_type not in ("Conv", "ConvTranspose", "Gemm", "MatMul") or len(node.input) < 2:
            continue
        more = attributes(node)
        if node.input[1] not in constants or uses[node.input[1]] > 1 or node.input[0] in constants:
            continue
        values = numpy_helper.to_array(constants[node.input[1]])
        plain = not more.get("transA") and more.get("alpha", 1.0) == more.get("beta", 1.0) == 1.0
        if values.ndim < 2 or (node.op_type == "MatMul" and values.ndim > 2) or not plain:
            continue
        if node.op_type == "ConvTranspose" and more.get("group", 1) != 1:
            continue
        bias = constants.get(node.input[BIAS]) if len(node.input) > BIAS else None
        plain_bias = None if bias is None else numpy_helper.to_array(bias).astype(np.float64).reshape(-1)
        found.append(Linear(node, values.astype(np.float64), plain_bias))
    return found


@dataclass(frozen=True)
class Seen:
    """What the weights of a layer were multiplied by: means (groups, columns), second moments of the same."""

    mean: Array
    second: Array | None = None

    def moments(self, centred: bool) -> Array:
        """Second moments; around the mean if the bias takes the mean over."""
        assert self.second is not None
        if not centred:
            return self.second
        found: Array = self.second - self.mean[:, :, np.newaxis] * self.mean[:, np.newaxis, :]
        return found


def seen_inputs(
    model: onnx.ModelProto,
    layers: Sequence[Linear],
    samples: Sequence[Mapping[str, Array]],
    with_moments: bool = False,
) -> dict[str, Seen]:
    """The inputs of each layer, by its name, on these samples."""
    computed = {name for node in model.graph.node for name in node.output}
    session = Session(model, sorted({layer.node.input[0] for layer in layers} & computed))
    each = max(COLUMNS // max(len(samples), 1), 1)
    sums: dict[str, Array] = {}
    products: dict[str, Array] = {}
    counts: dict[str, int] = {}
    for sample in samples:
        values = {**sample, **session.run(sample)}
        for layer in layers:
            name = layer.name
            columns = layer.columns(values[layer.node.input[0]], each).astype(np.float64)
            counts[name] = counts.get(name, 0) + columns.shape[1]
            sums[name] = sums.get(name, 0.0) + columns.sum(axis=1)
            if with_moments:
                products[name] = products.get(name, 0.0) + np.matmul(np.swapaxes(columns, 1, 2), columns)
    return {
        name: Seen(total / counts[name], products[name] / counts[name] if with_moments else None)
        for name, total in sums.items()
    }
