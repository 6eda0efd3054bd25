"""Clamp: limits on real numbers. Relu, Relu6, Clip; usually fused into the layer before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tinyml import c
from tinyml.ir import Array, DType, Layer, Op, Tensor, TensorType, given
from tinyml.kernel import Kernel, Sheet, register_kernels
from tinyml.ops._quant import clamp_range, is_quantized
from tinyml.reading import Builder, OnnxNode, TfliteNode, onnx_op, tflite_op


@dataclass(frozen=True)
class Clamp(Op):
    """min(max(x, low), high), in real numbers also for quantised tensors."""

    low: float = -np.inf
    high: float = np.inf

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        return (given(inputs, 0).type,)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x = given(inputs, 0)
        low, high = self._limits(layer.output)
        return (np.minimum(np.maximum(x, low), high).astype(x.dtype),)

    def _limits(self, tensor: Tensor) -> tuple[float, float]:
        if tensor.quant is not None:
            return clamp_range((self.low, self.high), tensor)
        if tensor.dtype.is_integer:
            lowest, highest = tensor.dtype.limits
            return max(self.low, lowest), min(self.high, highest)
        return self.low, self.high

    def overwrites(self, layer: Layer) -> tuple[int, ...]:
        return (0,)

    def permuted(self, layer: Layer, perm: Sequence[int]) -> Op | None:
        return self

    def quantized(
        self, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]
    ) -> tuple[Op, Sequence[Tensor | None]] | None:
        x, y = inputs[0], outputs[0]
        same = x is not None and x.quant == y.quant and x.dtype is y.dtype
        return (self, inputs) if same and is_quantized(x, DType.INT8, DType.UINT8) else None


class ClampLoop(Kernel):
    """Two comparisons per element."""

    name = "clamp loop"

    def emit(self, layer: Layer, sheet: Sheet) -> None:
        op = layer.op
        assert isinstance(op, Clamp)
        low, high = op._limits(layer.output)
        dtype = layer.output.dtype
        if dtype.is_float:
            sheet.include("<math.h>")
        with sheet.loops(
            c.nest(layer.output.shape, {"i": c.Walk(c.contiguous(layer.output.shape))})
        ) as index:
            value = f"{sheet.x()}[{index['i']}]"
            below, above = c.number(low, dtype.numpy), c.number(high, dtype.numpy)
            sheet.line(f"const {dtype.c} v = {value};")
            sheet.line(f"const {dtype.c} raised = v < {below} ? {below} : v;")
            sheet.line(f"{sheet.y()}[{index['i']}] = raised > {above} ? {above} : raised;")


register_kernels(Clamp, ClampLoop())


@onnx_op("Relu")
def read_relu(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    return [build.add1(Clamp(low=0.0), [node.input(0)])]


@onnx_op("Clip")
def read_clip(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    x = node.input(0)
    if node.opset < 11:
        low, high = node.attr("min", -np.inf), node.attr("max", np.inf)
    else:
        low = node.const(1).item() if node.optional(1) is not None else -np.inf
        high = node.const(2).item() if node.optional(2) is not None else np.inf
    return [build.add1(Clamp(float(low), float(high)), [x])]


@tflite_op("RELU", "RELU6", "RELU_N1_TO_1")
def read_tflite(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    low, high = {"RELU": (0.0, np.inf), "RELU6": (0.0, 6.0), "RELU_N1_TO_1": (-1.0, 1.0)}[node.op_type]
    return [build.add1(Clamp(low, high), [node.input(0)], node.outputs[0])]
