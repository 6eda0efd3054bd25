# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Weights of a quantised model replaced by four bits, and biases that make up for rounded weights."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array
from tinyml.quantize.linear import Linear

LARGEST_BIAS = 2**31 - 1


@dataclass(frozen=True)
class Nibbles:
    """Integers of four bits in the shape of the weights, and a scale per output channel."""

    values: Array
    scales: Array
    mean: Array | None = None  # of the inputs, if the bias makes up for the rounding


@dataclass(frozen=True)
class _Layer:
    """A layer of the quantised model: its node and the DequantizeLinear of its weights and of its bias."""

    node: onnx.NodeProto
    weights: onnx.NodeProto
    bias: onnx.NodeProto | None
    input_scale: Array


class StoredWeights:
    """The constants of a quantised model, layer by layer."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.model = model
        self.constants = {tensor.name: tensor for tensor in model.graph.initializer}
        self.nodes = {node.name: node for node in model.graph.node}
        self.producers = {name: node for node in model.graph.node for name in node.output}

    def layer(self, linear: Linear) -> _Layer | None:
        """None if the layer is not quantised."""
        node = self.nodes.get(linear.name)
        found = [self._dequantize(name) for name in node.input] if node is not None else []
        if node is None or found[0] is None or found[1] is None or found[1].input[0] not in self.constants:
            return None
        bias = found[2] if len(found) > 2 else None
        if bias is not None and not self._is_sum(bias, found[1]):
            return None
        return _Layer(node, found[1], bias, self._values(found[0].input[1]))

    def has_scale_per_channel(self, layer: _Layer, linear: Linear) -> bool:
        """Also true of a layer with one channel; weights must be int8 without a zero point."""
        channels = math.prod(linear.rows().shape[:2]) // linear.rows_of_a_channel
        weights, scale = (self.constants[name] for name in layer.weights.input[:2])
        return weights.data_type == TensorProto.INT8 and math.prod(scale.dims) == channels

    def real(self, layer: _Layer, linear: Linear) -> Array:
        """What the stored weights mean, in the shape of ``Linear.rows``."""
        integers, scale = (self._values(name).astype(np.float64) for name in layer.weights.input[:2])
        axis = next((a.i for a in layer.weights.attribute if a.name == "axis"), 1)
        if scale.size > 1:
            scale = scale.reshape([-1 if at == axis % integers.ndim else 1 for at in range(integers.ndim)])
        return linear.rows(integers * scale)

    def put_nibbles(self, layer: _Layer, stored: Nibbles) -> None:
        """Replace the weights; the bias keeps its value in the new steps."""
        weights, scale, zero = layer.weights.input[:3]
        bias = None if layer.bias is None else self._bias(layer)
        kind = TensorProto.INT4
        self._store(
            helper.make_tensor(weights, kind, stored.values.shape, stored.values.reshape(-1).tolist())
        )
        shape = tuple(self.constants[scale].dims)
        self._store(numpy_helper.from_array(stored.scales.astype(np.float32).reshape(shape), scale))
        self._store(helper.make_tensor(zero, kind, shape, [0] * stored.scales.size))
        if bias is not None:
            self.put_bias(layer, bias)

    def put_bias(self, layer: _Layer, real: Array) -> None:
        assert layer.bias is not None
        weight_scale = self._values(layer.weights.input[1]).astype(np.float32).reshape(-1)
        scale = (layer.input_scale.astype(np.float32).reshape(-1) * weight_scale).astype(np.float32)
        name, scale_name = layer.bias.input[:2]
        steps = np.rint(real / scale.astype(np.float64))
        steps = np.clip(steps, -LARGEST_BIAS, LARGEST_BIAS).astype(np.int32)
        self._store(numpy_helper.from_array(steps, name))
        self._store(numpy_helper.from_array(scale.reshape(self.constants[scale_name].dims), scale_name))

    def correct_bias(self, layer: _Layer, linear: Linear, mean: Array) -> None:
        """Add what rounding the weights takes away from the mean output of each channel."""
        bias = linear.bias_values
        if layer.bias is None or bias is None:
            return
        lost = linear.rows() - self.real(layer, linear)
        self.put_bias(layer, bias + np.einsum("grk,gk->gr", lost, mean).reshape(-1))

    def _is_sum(self, bias: onnx.NodeProto, weights: onnx.NodeProto) -> bool:
        """Whether a bias is int32 in the steps of the sum that it is added to."""
        known = [self.constants.get(name) for name in (bias.input[0], bias.input[1], weights.input[1])]
        stored, scale, weight_scale = known
        if stored is None or scale is None or weight_scale is None:
            return False
        return stored.data_type == TensorProto.INT32 and np.prod(scale.dims) == np.prod(weight_scale.dims)

    def _bias(self, layer: _Layer) -> Array:
        assert layer.bias is not None
        steps, scale = (self._values(name).astype(np.float64) for name in layer.bias.input[:2])
        found: Array = (steps * scale).reshape(-1)
        return found

    def _dequantize(self, name: str) -> onnx.NodeProto | None:
        node = self.producers.get(name)
        return node if node is not None and node.op_type == "DequantizeLinear" else None

    def _values(self, name: str) -> Array:
        found: Array = numpy_helper.to_array(self.constants[name])
        return found

    def _store(self, tensor: TensorProto) -> None:
        self.constants[tensor.name].CopyFrom(tensor)


def store(
    model: onnx.ModelProto,
    layers: Sequence[Linear],
    nibbles: Mapping[str, Nibbles],
    means: Mapping[str, Array],
) -> None:
    """Put four bits where ``nibbles`` has some; correct the biases of layers whose mean input is known."""
    stored = StoredWeights(model)
    for linear in layers:
        layer = stored.layer(linear)
        if layer is None:
            continue
        if linear.name in nibbles:
            stored.put_nibbles(layer, nibbles[linear.name])
        mean = means.get(linear.name)
        if linear.name in nibbles:
            mean = nibbles[linear.name].mean
        if mean is not None and linear.takes_mean:
            stored.correct_bias(layer, linear, mean)
