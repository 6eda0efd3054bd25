# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Clamp: limits on real numbers. Relu, Relu6, Clip; usually fused into the layer before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from tinyml.base import c
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Layer, Op, Tensor, TensorType, given
from tinyml.ops.elementwise import activation_tables as tables
from tinyml.ops.elementwise import int16_activation, lookup
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.elementwise.element_loops import apply_clamp, clamp_code, stored_limits
from tinyml.ops.framework import fixed_point as fp
from tinyml.ops.framework.kernel import InPlace, Sheet, register_kernels
from tinyml.ops.framework.quantization_facts import quantizes
from tinyml.ops.framework.reading import Builder, OnnxNode, TfliteNode, onnx_op, tflite_op
from tinyml.ops.framework.writing import OnnxWriter, onnx_writer
from tinyml.ops.quantization.requantize import rescaled
from tinyml.ops.shared.operands import numbers, present
from tinyml.ops.shared.quant import limits_are_exact


@dataclass(frozen=True)
class Clamp(Op):
    """min(max(x, low), high), in real numbers also for quantised tensors."""

    operands = (present(1), numbers(0))
    elementwise: ClassVar[bool] = True
    low: float = -np.inf
    high: float = np.inf

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        return (given(inputs, 0).type,)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        return (apply_clamp(given(inputs, 0), (self.low, self.high), layer.output),)

    @property
    def limits(self) -> tuple[float, float]:
        return (self.low, self.high)

    def identity_of(self, layer: Layer) -> int | None:
        return 0 if self.limits == (-np.inf, np.inf) else None

    def permuted(self, layer: Layer, perm: Sequence[int]) -> Op | None:
        return self

    def selects(self, inputs: Sequence[Tensor | None]) -> bool:
        return limits_are_exact(self.limits, given(inputs, 0))

    def quantized(
        self, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]
    ) -> tuple[Op, Sequence[Tensor | None]] | None:
        x, y = inputs[0], outputs[0]
        if x is None or not (lookup.takes(x, y) or int16_activation.takes(x, y)):
            return None
        if x.quant == y.quant and x.dtype is y.dtype:
            return self, inputs
        if int16_activation.takes(x, y):
            return int16_activation.LeakyInt16(1.0, clamp=(self.low, self.high), round_once=True), inputs
        return lookup.from_function("clamp", lambda real: np.clip(real, self.low, self.high), x, y), inputs


class ClampLoop(InPlace[Clamp]):
    """Two comparisons per element."""

    name = "clamp loop"
    in_bands = True

    def emit(self, layer: Layer[Clamp], sheet: Sheet) -> None:
        op = layer.op
        shape = layer.output.shape
        with sheet.loops(c.nest(shape, {"i": c.Walk(c.contiguous(shape))})) as index:
            sheet.line(f"const {layer.output.dtype.c} v = {sheet.x()}[{index['i']}];")
            value = clamp_code(sheet, "v", (op.low, op.high), layer.output)
            sheet.line(f"{sheet.y()}[{index['i']}] = {value};")

    def play(self, layer: Layer[Clamp], sheet: Sheet) -> None:
        """Bytes by a table of all of them, int16 by a kernel that also has limits."""
        op, y = layer.op, layer.output
        members: dict[str, object] = {".count": y.elements}
        if y.dtype is DType.FLOAT32:
            function = "clamp_f32"
            members |= {".low": sheet.number(op.low), ".high": sheet.number(op.high)}
        elif y.dtype.bytes == 1:
            function = "lookup"
            stored = np.arange(256, dtype=np.uint8).view(y.dtype.numpy)
            members[".table"] = sheet.table("table", apply_clamp(stored, op.limits, y))
        elif y.dtype is DType.INT16:
            function = "leaky_s16"
            multiplier, shift = fp.quantize_multiplier(1.0)
            low, high = stored_limits(op.limits, y)
            members |= {".multiplier": multiplier, ".below_multiplier": multiplier, ".to_even": 0}
            members |= {".shift": shift, ".below_shift": shift, ".offset": 0}
            members |= {".out_min": int(low), ".out_max": int(high)}
        else:
            self.emit(layer, sheet)
            return
        sheet.note(f"tinyml_play_{function}", members, sheet.x(), sheet.y())


register_kernels(Clamp, ClampLoop())


quantizes("Relu", "Clip", limits=True)


@onnx_op("Relu")
def read_relu(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    return [build.add1(Clamp(low=0.0), [node.input(0)])]


@onnx_op("Clip")
def read_clip(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    x = node.input(0)
    low, high = node.optional(1), node.optional(2)
    if node.opset < 11:
        return [_clip(x, node.attr("min", -np.inf), node.attr("max", np.inf), build)]
    known = all(limit is None or limit.is_constant for limit in (low, high))
    if known and x.dtype.bytes < 8:  # a double holds every value of the others
        lowest = -np.inf if low is None else float(low.value.reshape(()))
        highest = np.inf if high is None else float(high.value.reshape(()))
        return [_clip(x, lowest, highest, build)]
    if low is not None:
        x = build.add1(Binary("max"), [x, low])
    if high is not None:
        x = build.add1(Binary("min"), [x, high])
    return [x]


def _clip(x: Tensor, low: float, high: float, build: Builder) -> Tensor:
    return build.add1(Clamp(min(float(low), float(high)), float(high)), [x])  # the upper limit wins


TFLITE_LIMITS = {
    "RELU": (0.0, np.inf),
    "RELU6": (0.0, 6.0),
    "RELU_N1_TO_1": (-1.0, 1.0),
    "RELU_0_TO_1": (0.0, 1.0),
}


@tflite_op(*TFLITE_LIMITS)
def read_tflite(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    x, output = node.input(0), node.outputs[0]
    low, high = TFLITE_LIMITS[node.op_type]
    if x.quant == output.quant:
        return [build.add1(Clamp(low, high), [x], output)]
    if lookup.takes(x, output):  # the output has another scale
        table = lookup.from_integers("clamp", x, output, tables.clamp(x, output, low, high))
        return [build.add1(table, [x], output)]
    return [build.add1(Clamp(low, high), [rescaled(build, x, output)], output)]


@onnx_writer(Clamp)
def write_onnx(op: Clamp, layer: Layer, x: list[str], y: str, out: OnnxWriter) -> None:
    out.clamped(x[0], (op.low, op.high), y, layer.output.dtype)
