# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""ReverseSequence: the first elements along time reversed, a different number of them in each batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from tinyml.base import c
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Layer, Op, Tensor, TensorType, given
from tinyml.ops.framework.kernel import Kernel, Sheet, register_kernels
from tinyml.ops.framework.quantization_facts import quantizes
from tinyml.ops.framework.reading import Builder, OnnxNode, TfliteNode, onnx_op, tflite_op
from tinyml.ops.framework.writing import OnnxWriter, element_type, onnx_writer
from tinyml.ops.shared.operands import integers, present


def one_length_per_batch(layer: Layer[ReverseSequence]) -> bool:
    """Batch and time are two axes of the first input, and there is one length for each batch."""
    op, x = layer.op, layer.input(0).shape
    inside = all(0 <= axis < len(x) for axis in (op.batch_axis, op.time_axis))
    return inside and op.batch_axis != op.time_axis and layer.input(1).elements == x[op.batch_axis]


@dataclass(frozen=True)
class ReverseSequence(Op):
    """Inputs: x, and how many elements to reverse in each batch."""

    operands = (present(2), integers(1), one_length_per_batch)
    movement: ClassVar[bool] = True
    batch_axis: int = 1
    time_axis: int = 0

    def told_apart(self, layer: Layer, index: int) -> tuple[int, int] | None:
        return (1, layer.input(0).shape[self.time_axis]) if index == 1 else None

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x = given(inputs, 0)
        return (TensorType(x.shape, x.dtype, x.quant),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x, lengths = given(inputs, 0), given(inputs, 1)
        moved = np.moveaxis(x, (self.batch_axis, self.time_axis), (0, 1)).copy()
        for batch, length in enumerate(np.clip(lengths, 0, moved.shape[1])):
            moved[batch, :length] = moved[batch, :length][::-1]
        return (np.moveaxis(moved, (0, 1), (self.batch_axis, self.time_axis)),)


class ReverseSequenceLoops(Kernel[ReverseSequence]):
    """Batches outside, then time, then the rest of the axes."""

    name = "reverse-sequence loops"

    def emit(self, layer: Layer[ReverseSequence], sheet: Sheet) -> None:
        op, x = layer.op, layer.input(0)
        strides = c.contiguous(x.shape)
        batch, time = strides[op.batch_axis], strides[op.time_axis]
        rest = [a for a in range(len(x.shape)) if a not in (op.batch_axis, op.time_axis)]
        walk = c.Walk(tuple(strides[a] for a in rest))
        with sheet.loop("b", x.shape[op.batch_axis]):
            extent = x.shape[op.time_axis]
            sheet.line(f"const int32_t length = {sheet.limited(f'{sheet.x(1)}[b]', 0, extent)};")
            sheet.line()
            with sheet.loop("t", x.shape[op.time_axis]):
                sheet.line("const int32_t from = t < length ? length - 1 - t : t;")
                sheet.line()
                with sheet.loops(c.nest([x.shape[a] for a in rest], {"i": walk})) as index:
                    i = f"b * {batch} + {index['i']}"
                    sheet.line(f"{sheet.y()}[{i} + t * {time}] = {sheet.x(0)}[{i} + from * {time}];")


register_kernels(ReverseSequence, ReverseSequenceLoops())


quantizes("ReverseSequence", moves=True, keeps_scale=True)


@onnx_op("ReverseSequence")
def read_onnx(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    op = ReverseSequence(int(node.attr("batch_axis", 1)), int(node.attr("time_axis", 0)))
    return [build.add1(op, [node.input(0), node.input(1)])]


@tflite_op("REVERSE_SEQUENCE")
def read_tflite(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    op = ReverseSequence(node.options.BatchDim(), node.options.SeqDim())
    return [build.add1(op, [node.input(0), node.input(1)], node.outputs[0])]


@onnx_writer(ReverseSequence)
def write_onnx(op: ReverseSequence, layer: Layer, x: list[str], y: str, out: OnnxWriter) -> None:
    """ONNX knows batches beside time at the front alone: time and batches go there, and back."""
    rank = len(layer.input(0).shape)
    rest = [axis for axis in range(rank) if axis not in (op.time_axis, op.batch_axis)]
    order = [op.time_axis, op.batch_axis, *rest]
    lengths = x[1]
    if layer.input(1).dtype is not DType.INT64:
        lengths = out.node("Cast", [lengths], to=element_type(DType.INT64))
    moved = out.node("Transpose", [x[0]], perm=order)
    reversed_ = out.node("ReverseSequence", [moved, lengths], time_axis=0, batch_axis=1)
    out.node("Transpose", [reversed_], y, perm=[order.index(axis) for axis in range(rank)])
