# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Quantize and Dequantize around the nodes of a float graph, or QLinear operators in their place."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import helper, numpy_helper

from tests.random_graphs.float_graph import FloatGraph, Step
from tests.support.weighted_layers import extreme_biases
from tinyml.ir import Array
from tinyml.reference.session import Session

OPSET = 21
MICROSOFT = "com.microsoft"
SAME_SCALE = ("MaxPool", "GlobalMaxPool", "Reshape", "Transpose", "Slice")
EXTREME_BIASES = 0.03
"""The share of layers with biases up to the limits of int32."""


def float_nodes(graph: FloatGraph) -> list[onnx.NodeProto]:
    return [helper.make_node(s.op_type, s.inputs, [s.output], **s.attributes) for s in graph.steps]


def model_of(
    graph: FloatGraph,
    nodes: Sequence[onnx.NodeProto],
    constants: Mapping[str, Array],
    outputs: Sequence[str],
    dtype: str,
) -> onnx.ModelProto:
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    used = {name for node in nodes for name in node.input}
    made = helper.make_graph(
        list(nodes),
        "random",
        [helper.make_tensor_value_info("x", kind, graph.shapes["x"])],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(value, name) for name, value in constants.items() if name in used],
    )
    imports = [helper.make_opsetid("", OPSET), helper.make_opsetid(MICROSOFT, 1)]
    return helper.make_model(made, opset_imports=imports, ir_version=10)


@dataclass
class Quantizer:
    """Scales from the ranges of one run in float; then each node on its own."""

    graph: FloatGraph
    dtype: str
    rng: np.random.Generator
    operators: bool
    narrow: bool = False  # weights have four bits

    def start(self, inputs: Sequence[Sequence[Array]]) -> None:
        graph = self.graph
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, Array] = dict(graph.constants)
        self.params: dict[str, tuple[np.float32, int]] = {}
        names = [step.output for step in graph.steps]
        session = Session(model_of(graph, float_nodes(graph), graph.constants, names, "float32"))
        self.ranges = {**session.run({"x": inputs[0][0]}), "x": inputs[0][0]}

    def model(self, inputs: Sequence[Sequence[Array]]) -> onnx.ModelProto:
        graph = self.graph
        self.start(inputs)
        self._choose("x", self.ranges["x"])
        for step in graph.steps:
            if step.op_type in SAME_SCALE and self.rng.random() < 0.7:
                self.params[step.output] = self.params[step.inputs[0]]
            else:
                self._choose(step.output, self.ranges[step.output])
            if not (self.operators and self._operator(step)):
                self._around(step)
        return model_of(graph, self.nodes, self.constants, [self._q(n) for n in graph.outputs()], self.dtype)

    def _choose(self, name: str, values: Array) -> None:
        """Scale and zero point for a range of values; sometimes at the very end of the type."""
        info = np.iinfo(self.dtype)
        low, high = (float(f(values, initial=0.0)) for f in (np.min, np.max))
        span = max(high - low, 1e-3) * float(self.rng.uniform(0.8, 1.3))
        if self.dtype == "int16":
            self.params[name] = np.float32(max(-low, high, 1e-3) / info.max), 0
            return
        scale = np.float32(span / (info.max - info.min))
        zero = int(np.clip(np.rint(info.min - low / scale), info.min, info.max))
        self.params[name] = scale, zero

    def pair(self, name: str, real: str) -> str:
        """Quantize and Dequantize behind a tensor; the name of what comes out."""
        if name not in self.params:
            self._choose(name, self.ranges[name])
        numbers = self._numbers(name, *self.params[name], self.dtype)
        self.nodes.append(helper.make_node("QuantizeLinear", [real, *numbers], [f"{name}_q"]))
        self.nodes.append(helper.make_node("DequantizeLinear", [f"{name}_q", *numbers], [f"{name}_d"]))
        return f"{name}_d"

    def _q(self, name: str) -> str:
        return "x" if name == "x" else f"{name}_q"

    def _numbers(self, name: str, scale: Any, zero: Any, dtype: str) -> tuple[str, str]:
        self.constants[f"{name}_s"] = np.asarray(scale, np.float32)
        self.constants[f"{name}_z"] = np.asarray(zero, dtype)
        return f"{name}_s", f"{name}_z"

    def _stored(self, name: str, values: Array) -> tuple[str, str, str]:
        """A constant, quantised per tensor."""
        if name not in self.params:
            self._choose(name, values)
        scale, zero = self.params[name]
        info = np.iinfo(self.dtype)
        self.constants[f"{name}_q"] = np.clip(np.rint(values / scale) + zero, info.min, info.max).astype(
            self.dtype
        )
        return (f"{name}_q", *self._numbers(name, scale, zero, self.dtype))

    def weights(self, name: str, axis: int, channels: bool) -> tuple[str, str, str, Array]:
        """int8 weights around zero, per channel or per tensor; also their scales."""
        values = self.graph.constants[name]
        others = tuple(i for i in range(values.ndim) if i != axis)
        largest = np.abs(values).max(axis=others if channels else None)
        scales = np.asarray(np.maximum(largest, 1e-4) / 127, np.float32)
        shape = [-1 if i == axis else 1 for i in range(values.ndim)] if channels else [1] * values.ndim
        if self.narrow:
            return self._narrow_weights(name, values, scales * np.float32(127 / 7), shape)
        self.constants[f"{name}_q"] = np.clip(np.rint(values / scales.reshape(shape)), -127, 127).astype(
            np.int8
        )
        numbers = self._numbers(name, scales, np.zeros_like(scales, np.int8), "int8")
        return (f"{name}_q", *numbers, scales)

    def _narrow_weights(
        self, name: str, values: Array, scales: Array, shape: list[int]
    ) -> tuple[str, str, str, Array]:
        """int4, or uint4 with any zero points."""
        signed = self.rng.random() < 0.5
        kind, (low, high) = (ml_dtypes.int4, (-8, 7)) if signed else (ml_dtypes.uint4, (0, 15))
        zeros = np.zeros(scales.shape, int) if signed else self.rng.integers(0, 16, scales.shape)
        stored = np.clip(np.rint(values / scales.reshape(shape)) + zeros.reshape(shape), low, high)
        self.constants[f"{name}_q"] = stored.astype(np.dtype(kind))
        self.constants[f"{name}_s"], self.constants[f"{name}_z"] = scales, zeros.astype(np.dtype(kind))
        return f"{name}_q", f"{name}_s", f"{name}_z", scales

    def bias(self, name: str, x: str, scales: Array) -> tuple[str, str, str]:
        sums = np.float32(self.params[x][0]) * scales
        count = self.graph.constants[name].size
        stored = np.rint(self.graph.constants[name].astype(np.float64) / sums).clip(-(2**30), 2**30)
        whole = stored.reshape(count).astype(np.int32)
        extreme = np.random.default_rng(zlib.crc32(f"{name} {whole.tolist()}".encode()))
        if extreme.random() < EXTREME_BIASES:
            whole = extreme_biases(extreme, whole)
            if self.operators:  # QLinearConv adds in 32 bits, and wraps around
                whole = np.clip(whole, -(1 << 30), 1 << 30)
        self.constants[f"{name}_q"] = whole
        return (f"{name}_q", *self._numbers(name, sums, np.zeros_like(sums, np.int32), "int32"))

    def whole_bias(self, name: str, x: str, scales: Array) -> None:
        """A float bias, of whole steps of the sums: integer layers round others to such."""
        stored, s, _ = self.bias(name, x, scales)
        self.constants[name] = (self.constants[stored] * self.constants[s].astype(np.float64)).astype(
            np.float32
        )

    def _activation(self, name: str) -> tuple[str, str, str]:
        """An operand that is not a weight: stored, scale, zero point."""
        if name in self.graph.constants:
            return self._stored(name, self.graph.constants[name])
        return (self._q(name), *self._numbers(name, *self.params[name], self.dtype))

    def _around(self, step: Step) -> None:
        """Dequantize, the operator, Quantize."""
        operands = []
        weight_scales = np.float32(1)
        for position, name in enumerate(step.inputs):
            axis = None
            if name in self.graph.constants and self.graph.constants[name].dtype != np.float32:
                operands.append(name)
                continue
            if position in step.weights:
                if position == 1:
                    along = channel_axis(step)
                    channels = self.rng.random() < 0.6 and step.op_type != "MatMul"
                    stored, s, z, weight_scales = self.weights(name, along, channels)
                    axis = along if channels else None
                elif self.rng.random() < 0.8:
                    stored, s, z = self.bias(name, step.inputs[0], weight_scales)
                    axis = 0 if weight_scales.ndim else None
                else:
                    self.whole_bias(name, step.inputs[0], weight_scales)
                    operands.append(name)
                    continue
            elif step.op_type in ("BatchNormalization", "Clip") and position:
                operands.append(name)
                continue
            else:
                stored, s, z = self._activation(name)
            real = f"{step.output}_r{position}"
            attributes: dict[str, Any] = {} if axis is None else {"axis": axis}
            self.nodes.append(helper.make_node("DequantizeLinear", [stored, s, z], [real], **attributes))
            operands.append(real)
        self.nodes.append(helper.make_node(step.op_type, operands, [step.output], **step.attributes))
        numbers = self._numbers(step.output, *self.params[step.output], self.dtype)
        self.nodes.append(helper.make_node("QuantizeLinear", [step.output, *numbers], [self._q(step.output)]))

    def _operator(self, step: Step) -> bool:
        """As a QLinear operator or an operator on integers, where there is one."""
        out = self._numbers(step.output, *self.params[step.output], self.dtype)
        y = [self._q(step.output)]
        same = self.params[step.output] == self.params.get(step.inputs[0])
        if step.op_type in ("Conv", "MatMul"):
            axis = channel_axis(step)
            channels = step.op_type == "Conv" and self.rng.random() < 0.6
            *weights, scales = self.weights(step.inputs[1], axis, channels)
            operands = [*self._activation(step.inputs[0]), *weights, *out]
            if len(step.inputs) > 2:
                operands.append(self.bias(step.inputs[2], step.inputs[0], scales)[0])
            self.nodes.append(helper.make_node(f"QLinear{step.op_type}", operands, y, **step.attributes))
        elif step.op_type in ("Add", "Mul"):
            operands = [n for name in step.inputs for n in self._activation(name)]
            self.nodes.append(
                helper.make_node(f"QLinear{step.op_type}", [*operands, *out], y, domain=MICROSOFT)
            )
        elif step.op_type in ("Sigmoid", "LeakyRelu", "GlobalAveragePool", "AveragePool"):
            attributes = {**step.attributes, **({"channels_last": 0} if "Pool" in step.op_type else {})}
            operands = [*self._activation(step.inputs[0]), *out]
            name = f"QLinear{step.op_type}"
            self.nodes.append(helper.make_node(name, operands, y, domain=MICROSOFT, **attributes))
        elif step.op_type == "Concat":
            operands = [*out, *(n for name in step.inputs for n in self._activation(name))]
            node = helper.make_node("QLinearConcat", operands, y, domain=MICROSOFT, **step.attributes)
            self.nodes.append(node)
        elif same and step.op_type in ("MaxPool", "Reshape", "Transpose", "Slice"):
            operands = [self._activation(step.inputs[0])[0], *step.inputs[1:]]
            self.nodes.append(helper.make_node(step.op_type, operands, y, **step.attributes))
        else:
            return False
        return True


def channel_axis(step: Step) -> int:
    """The axis of the weights that belongs to output channels."""
    if step.op_type == "Conv":
        return 0
    if step.op_type == "Gemm":
        return 0 if step.attributes["transB"] else 1
    return 1
