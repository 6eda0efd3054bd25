# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Keep every sum of products of an integer layer inside its accumulator.

Sums of int8 layers have 32 bits, those of int16 layers 47. A bias near the limits of int32, or a very deep
layer, would leave them. If a bias is so large that its channel is saturated whatever the input is, a smaller
one that saturates as well does the same. What still does not fit is computed in real numbers. A bias that
another layer computes stays as it is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Graph, Layer, Node, Tensor, TensorType
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.quantization.quantize import Dequantize, Quantize
from tinyml.ops.reshape import Reshape
from tinyml.ops.shared.quant import NO_CLAMP, dequantize, quant_of
from tinyml.ops.weighted.weighted import Weighted, channel_multipliers, largest_sums
from tinyml.passes.editor import Editor

MOST = {DType.INT8: (1 << 31) - (1 << 10), DType.INT16: 1 << 46}
"""What the sums may reach, by the type of the input.

Where the factor is just below one half, kernels add twice the zero point to the scaled sum, in 32 bits: see
``tinyml_output_s8()``, and tests/proofs/output_s8.c, which proves that this much less is enough.
"""


@dataclass(frozen=True, eq=False)
class _Sums:
    """Per output channel: what products add up to at most, the bias, what is saturated, and the limit."""

    products: Array
    bias: Array
    saturated: Array  # infinite where no sum saturates the output
    most: Array

    @property
    def fit(self) -> Array:
        return np.abs(self.bias) + self.products <= self.most


def bound_sums(graph: Graph) -> Graph:
    """Smaller biases that saturate as well; layers that do not fit as float layers."""
    edit = Editor(graph)
    for node in edit.sweep():
        layer = edit.layer(node)
        if not isinstance(layer.op, Weighted) or layer.input(0).dtype not in MOST:
            continue
        if any(tensor.quant is None for tensor in (layer.input(0), layer.input(1), layer.output)):
            continue
        if layer.has_input(2) and not layer.input(2).is_constant:
            continue  # nothing is known about it
        sums = _sums(cast(Layer[Weighted], layer))
        if not sums.fit.all():
            _bound(edit, node, layer, sums)
    return edit.graph()


def _sums(layer: Layer[Weighted]) -> _Sums:
    op = layer.op
    x, w = layer.input(0), layer.input(1)
    channels = w.shape[op.channel_axis]
    bias = np.zeros(channels)
    if layer.has_input(2):
        bias = layer.input(2).value.reshape(-1).astype(np.float64)
    multiplier, shift = (part.astype(np.float64) for part in channel_multipliers(layer))
    low, high = layer.output.dtype.limits
    with np.errstate(divide="ignore"):
        saturated = np.ceil(2.0 * (high - low + 1) / (multiplier * 2.0 ** (shift - 31)))
    most = np.full(channels, float(MOST[x.dtype]))
    if x.dtype is DType.INT8 and not op.round_once:  # sums are shifted to the left first, in 32 bits
        most = np.floor(most / 2.0 ** np.maximum(shift, 0))
    return _Sums(largest_sums(op, x, w), bias, saturated, most)


def _bound(edit: Editor, node: Node, layer: Layer, sums: _Sums) -> None:
    limit = sums.saturated + sums.products
    limit[np.isinf(sums.saturated)] = 0  # the multiplier is 0, and so is every result
    smaller = replace(sums, bias=np.where(sums.fit, sums.bias, np.clip(sums.bias, -limit, limit)))
    if not smaller.fit.all():
        _in_real_numbers(edit, node, layer)
        return
    bias = layer.input(2)
    values = smaller.bias.astype(bias.dtype.numpy).reshape(bias.shape)
    name = edit.constant(f"{bias.name}/bounded", values, bias.quant).name
    edit.replace([node], [replace(node, inputs=(*node.inputs[:2], name, *node.inputs[3:]))])


def _in_real_numbers(edit: Editor, node: Node, layer: Layer) -> None:
    """A float layer on the integers, whose small sums are exact, then their scale, and Quantize.

    At the scales of the tensors, rounding would leave a little of sums that are 0. Where a step of the output
    is tiny, it would be saturated.
    """
    assert isinstance(layer.op, Weighted)
    x, w, y = layer.input(0), layer.input(1), layer.output
    float_x, nodes = _whole_numbers(edit, f"{node.name}/input", x)
    if w.is_constant:
        quant = quant_of(w)
        whole = replace(quant, scales=(1.0,) * len(quant.scales))
        float_w: Tensor = edit.constant(f"{w.name}/real", dequantize(w.value, whole))
    else:
        float_w, more = _whole_numbers(edit, f"{node.name}/weights", w)
        nodes += more
    names = [float_x.name, float_w.name]
    if layer.has_input(2):
        real = layer.input(2).value.reshape(-1).astype(np.float32)
        names.append(edit.constant(f"{layer.input(2).name}/real", real).name)
    sums = edit.tensor(f"{y.name}/sums", TensorType(y.shape, DType.FLOAT32))
    nodes.append(Node(node.name, replace(layer.op, clamp=NO_CLAMP), tuple(names), (sums.name,)))
    scales = (quant_of(x).scale * np.asarray(quant_of(w).scales, np.float64)).astype(np.float32)
    factors = edit.constant(f"{y.name}/scales", scales)
    float_y = edit.tensor(f"{y.name}/real", TensorType(y.shape, DType.FLOAT32))
    scaled = Binary("mul", clamp=layer.op.clamp)
    nodes.append(Node(f"{node.name}/scale", scaled, (sums.name, factors.name), (float_y.name,)))
    to_integers = Quantize(y.dtype, quant_of(y), halves_to_even=layer.op.round_once)
    nodes.append(Node(f"{node.name}/quantize", to_integers, (float_y.name,), (y.name,)))
    edit.replace([node], nodes)


def _whole_numbers(edit: Editor, name: str, x: Tensor) -> tuple[Tensor, list[Node]]:
    """The integers of a tensor as float, without their zero point and their scale."""
    quant = replace(quant_of(x), scales=(1.0,) * len(quant_of(x).scales))
    plain = edit.tensor(f"{x.name}/whole", TensorType(x.shape, x.dtype, quant))
    real = edit.tensor(f"{x.name}/real", TensorType(x.shape, DType.FLOAT32))
    return real, [
        Node(f"{name}/whole", Reshape(x.shape), (x.name,), (plain.name,)),
        Node(f"{name}/dequantize", Dequantize(), (plain.name,), (real.name,)),
    ]
