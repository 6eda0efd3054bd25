# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Concat: tensors joined along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tinyml.base import c
from tinyml.base.errors import UnsupportedError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Layer, Op, Tensor, TensorType, View, given
from tinyml.ops.elementwise.lookup import Lookup
from tinyml.ops.framework.kernel import Kernel, Sheet, register_kernels
from tinyml.ops.framework.play_loops import play_copies
from tinyml.ops.framework.quantization_facts import quantizes
from tinyml.ops.framework.reading import Builder, OnnxNode, TfliteNode, onnx_op, tflite_op
from tinyml.ops.framework.writing import OnnxWriter, onnx_writer
from tinyml.ops.quantization.requantize import rescaled
from tinyml.ops.reshape import Reshape
from tinyml.ops.shared.axes import kept_shape, normalized
from tinyml.ops.shared.operands import present


def joinable(layer: Layer[Concat]) -> bool:
    """All inputs have the same type and, on all axes but the one to join along, the same extents."""
    first, axis = layer.input(0), layer.op.axis
    return 0 <= axis < len(first.shape) and all(
        part is not None
        and part.dtype is first.dtype
        and len(part.shape) == len(first.shape)
        and kept_shape(part.shape, (axis,)) == kept_shape(first.shape, (axis,))
        for part in layer.inputs
    )


@dataclass(frozen=True)
class Concat(Op):
    """Its inputs one after the other along ``axis``."""

    operands = (present(1), joinable)
    axis: int = 0

    def carried_axis(self, layer: Layer, index: int, axis: int) -> tuple[int, ...] | None:
        return None if axis == self.axis else (axis,)

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        first = given(inputs, 0)
        parts = [given(inputs, i) for i in range(len(inputs))]
        shape = list(first.shape)
        shape[self.axis] = sum(part.shape[self.axis] for part in parts)
        quant = first.quant if all(part.quant == first.quant for part in parts) else None
        return (TensorType(tuple(shape), first.dtype, quant),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        return (np.concatenate([given(inputs, i) for i in range(len(inputs))], axis=self.axis),)

    def views(self, layer: Layer) -> tuple[View, ...]:
        """Joined along the first axis that is not 1, the inputs can be computed in place."""
        y = layer.output
        if any(extent != 1 for extent in y.shape[: self.axis]):
            return ()
        found: list[View] = []
        offset = 0
        for index in range(len(layer.inputs)):
            x = layer.input(index)
            if not x.is_constant and all(x.name != view.inner for view in found):
                found.append(View(x.name, y.name, offset))
            offset += x.bytes
        return tuple(found)

    def carried_channels(self, layer: Layer) -> Sequence[Array] | None:
        places, first = [], 0
        for index in range(len(layer.inputs)):
            channels = layer.input(index).shape[-1]
            places.append(np.arange(first, first + channels))
            first += channels if self.axis == len(layer.output.shape) - 1 else 0
        return places

    def permuted(self, layer: Layer, perm: Sequence[int]) -> Op | None:
        return replace(self, axis=list(perm).index(self.axis))

    def selects(self, inputs: Sequence[Tensor | None]) -> bool:
        return True

    def quantized(
        self, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]
    ) -> tuple[Op, Sequence[Tensor | None]] | None:
        y = outputs[0]
        same = all(t is not None and t.quant == y.quant and t.dtype is y.dtype for t in inputs)
        return (self, inputs) if same else None


class ConcatCopies(Kernel[Concat]):
    """One memcpy for each row of each input that is not already in place in the output."""

    name = "concat copies"

    def emit(self, layer: Layer[Concat], sheet: Sheet) -> None:
        op, y = layer.op, layer.output
        sheet.include("<string.h>")
        rows = int(np.prod(y.shape[: op.axis], dtype=np.int64))
        step = y.elements // rows if rows else 0
        offset = 0
        for index in range(len(layer.inputs)):
            x = layer.input(index)
            row = x.elements // rows if rows else 0
            if row and index not in sheet.shared_inputs:
                self._copy(sheet, index, rows, row, step, offset)
            offset += row

    def _copy(self, sheet: Sheet, index: int, rows: int, row: int, step: int, offset: int) -> None:
        x, y = sheet.x(index), sheet.y()
        if sheet.plays:
            play_copies(sheet, (rows, row), c.Walk((row, 1)), c.Walk((step, 1), offset), x, y)
            return
        size = row * sheet.layer.output.dtype.bytes
        if rows == 1:
            sheet.line(f"memcpy({f'&{y}[{offset}]' if offset else y}, {x}, {size});")
            return
        with sheet.loop("i", rows):
            target = f"i * {step} + {offset}" if offset else f"i * {step}"
            source = "i" if row == 1 else f"i * {row}"
            if row == 1:
                sheet.line(f"{y}[{target}] = {x}[{source}];")
            else:
                sheet.line(f"memcpy(&{y}[{target}], &{x}[{source}], {size});")


register_kernels(Concat, ConcatCopies())


quantizes("Concat", moves=True, one_scale=True)


@onnx_op("Concat")
def read_onnx(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    parts = [node.input(i) for i in range(len(node.inputs))]
    return [concat(build, parts, int(node.attr("axis", 1)))]


def concat(build: Builder, parts: Sequence[Tensor], axis: int) -> Tensor:
    """``parts`` joined; parts without elements are left out, a single one is itself."""
    (axis,) = normalized([axis], len(parts[0].shape))
    kept = [part for part in parts if part.shape[axis] != 0] or list(parts[:1])
    return kept[0] if len(kept) == 1 else build.add1(Concat(axis), kept)


@tflite_op("CONCATENATION")
def read_tflite(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    convert = _rescaled_in_float if node.outputs[0].dtype is DType.UINT8 else rescaled
    scales = {node.input(i).quant for i in range(len(node.inputs))} | {node.outputs[0].quant}
    if node.outputs[0].dtype is DType.INT16 and len(scales) > 1:
        raise UnsupportedError(
            f"CONCATENATION operator {node.name!r} joins int16 tensors of different scales",
            "inputs and output of one scale: LiteRT copies their integers, whatever they mean",
        )
    parts = [convert(build, node.input(i), node.outputs[0]) for i in range(len(node.inputs))]
    return [concat(build, parts, node.options.Axis())]


def _rescaled_in_float(build: Builder, x: Tensor, wanted: TensorType) -> Tensor:
    """uint8 as LiteRT rescales it: in float32, in this order of operations, halves away from zero."""
    if x.quant is None or wanted.quant is None or x.quant == wanted.quant:
        return x
    factor = np.float32(x.quant.scale) * (np.float32(1) / np.float32(wanted.quant.scale))
    offset = np.float32(-x.quant.zero_point) * factor
    steps = np.arange(256, dtype=np.float32) * factor + offset
    rounded = np.trunc(steps.astype(np.float64) + np.copysign(0.5, steps)) + wanted.quant.zero_point
    table = tuple(int(value) for value in rounded.clip(0, 255))
    return build.add1(Lookup(table, "rescale"), [x], TensorType(x.shape, wanted.dtype, wanted.quant))


@tflite_op("PACK")
def read_pack(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    """Joined along a new axis."""
    parts = [rescaled(build, node.input(i), node.outputs[0]) for i in range(len(node.inputs))]
    shape = list(parts[0].shape)
    axis = node.options.Axis() % (len(shape) + 1)
    shape.insert(axis, 1)
    return [concat(build, [build.add1(Reshape(tuple(shape)), [part]) for part in parts], axis)]


@onnx_writer(Concat)
def write_onnx(op: Concat, layer: Layer, x: list[str], y: str, out: OnnxWriter) -> None:
    out.node("Concat", x, y, axis=op.axis)
