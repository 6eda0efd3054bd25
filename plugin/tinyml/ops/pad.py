# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Pad: a border of a constant, or of the tensor's own elements. Negative widths cut."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tinyml.base import c
from tinyml.base.errors import ModelError, UnsupportedError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Layer, Op, Shape, Tensor, TensorType, given
from tinyml.ir.hook_types import RowWindow
from tinyml.ops.framework import fixed_point as fp
from tinyml.ops.framework.kernel import Kernel, Overlay, Sheet, register_kernels
from tinyml.ops.framework.play_loops import array, merged, play_fill
from tinyml.ops.framework.quantization_facts import quantizes
from tinyml.ops.framework.reading import Builder, OnnxNode, TfliteNode, onnx_op, tflite_op
from tinyml.ops.framework.writing import OnnxWriter, onnx_writer
from tinyml.ops.reshape import with_quant
from tinyml.ops.shared.axis import from_front
from tinyml.ops.shared.operands import not_empty, numbers_from, one_per_axis, present, within_limits
from tinyml.ops.shared.quant import dequantize, stored_exactly
from tinyml.ops.shared.take import Picks, Take, TakeLoops, write_picks
from tinyml.ops.slice import take

if TYPE_CHECKING:  # operators can be read from TFLite without importing onnx
    import onnx


def value_fits(layer: Layer[Any]) -> bool:
    """The padding value is representable in the element type."""
    dtype, value = layer.input(0).dtype, layer.op.value
    if layer.input(0).quant is not None:
        return math.isfinite(value)
    if dtype is DType.BOOL:
        return value in (0, 1)
    return dtype.is_float or (math.isfinite(value) and dtype.limits[0] <= value <= dtype.limits[1])


@dataclass(frozen=True)
class Pad(Op):
    """A border of ``value``, a real number: on a quantised tensor it is stored quantised."""

    operands = (present(1), one_per_axis("begins", "ends"), numbers_from(0, "begins", "ends"), value_fits)
    begins: tuple[int, ...] = ()
    ends: tuple[int, ...] = ()
    value: float = 0

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x = given(inputs, 0)
        widths = zip(x.shape, self.begins, self.ends, strict=True)
        return (TensorType(tuple(size + b + e for size, b, e in widths), x.dtype, x.quant),)

    def stored_value(self, tensor: Tensor) -> float:
        """The value as it is stored in memory."""
        if tensor.quant is None:
            return self.value
        low, high = tensor.dtype.limits
        return fp.quantize_scalar(self.value, tensor.quant.scale, tensor.quant.zero_point, low, high)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x = given(inputs, 0)
        widths = list(zip(self.begins, self.ends, strict=True))
        return (np.pad(x, widths, constant_values=self.stored_value(layer.output)),)

    def channelwise(self, layer: Layer) -> bool:
        return not self.begins[-1] and not self.ends[-1]

    def row_window(self, layer: Layer, axis: int) -> RowWindow | None:
        within_rows = not any((*self.begins[: axis + 1], *self.ends[: axis + 1]))
        return RowWindow.row_by_row(layer.output.shape[axis]) if within_rows else None

    def permuted(self, layer: Layer, perm: Sequence[int]) -> Op | None:
        begins, ends = (tuple(w[p] for p in perm) for w in (self.begins, self.ends))
        return replace(self, begins=begins, ends=ends)

    def selects(self, inputs: Sequence[Tensor | None]) -> bool:
        return stored_exactly(self.value, given(inputs, 0))

    def quantized(
        self, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]
    ) -> tuple[Op, Sequence[Tensor | None]] | None:
        x, y = inputs[0], outputs[0]
        same = x is not None and x.quant == y.quant and x.dtype is y.dtype
        per_tensor = y.quant is not None and not y.quant.per_channel
        return (self, inputs) if same and per_tensor else None


class PadLoops(Kernel[Pad]):
    """Move the input into the middle of the output, last row first, then fill the borders.

    No element moves towards the front, so the output may be computed in place.
    """

    name = "pad loops"
    in_bands = True

    def overlays(self, layer: Layer[Pad]) -> tuple[Overlay, ...]:
        return (Overlay(0, fixed=True),)

    def emit(self, layer: Layer[Pad], sheet: Sheet) -> None:
        op, x, y = layer.op, layer.input(0), layer.output
        value = op.stored_value(y)
        if x.elements:
            self._move(op, x.shape, y, sheet)
        for shape, offset in _borders(op, x.shape, y.shape):
            walk = c.Walk(c.contiguous(y.shape), offset)
            if sheet.plays:
                play_fill(sheet, shape, walk, sheet.y(), np.asarray(value, y.dtype.numpy).tobytes())
                continue
            with sheet.loops(c.nest(shape, {"y": walk})) as index:
                sheet.line(f"{sheet.y()}[{index['y']}] = {sheet.number(value, y.dtype)};")

    def _move(self, op: Pad, shape: Shape, y: Tensor, sheet: Sheet) -> None:
        """Rows reach from the last padded axis to the end; loops count from the last row to the first."""
        padded = [axis for axis in range(len(shape)) if op.begins[axis] or op.ends[axis]]
        row = padded[-1] if padded else 0
        x_strides, y_strides = c.contiguous(shape)[:row], c.contiguous(y.shape)
        lasts = [extent - 1 for extent in shape[:row]]
        first = sum(b * s for b, s in zip(op.begins, y_strides, strict=True))
        walks = {
            "x": c.Walk(
                tuple(-s for s in x_strides), sum(n * s for n, s in zip(lasts, x_strides, strict=True))
            ),
            "y": c.Walk(
                tuple(-s for s in y_strides[:row]),
                first + sum(n * s for n, s in zip(lasts, y_strides[:row], strict=True)),
            ),
        }
        if sheet.plays:
            self._play_move(shape, row, walks, sheet)
            return
        size = int(np.prod(shape[row:], dtype=np.int64)) * y.dtype.bytes
        sheet.include("<string.h>")
        with sheet.loops(c.nest(shape[:row], walks)) as index:
            sheet.line(f"memmove(&{sheet.y()}[{index['y']}], &{sheet.x()}[{index['x']}], {size});")

    def _play_move(self, shape: Shape, row: int, walks: dict[str, c.Walk], sheet: Sheet) -> None:
        """Rows stay whole: both may overlap."""
        extents, (x_steps, y_steps) = merged(shape[:row], walks["x"].strides, walks["y"].strides)
        size = sheet.layer.output.dtype.bytes
        members = {
            **array("extents", extents, 1),
            **array("from_steps", [step * size for step in x_steps], 0),
            **array("to_steps", [step * size for step in y_steps], 0),
            ".from_start": walks["x"].offset * size,
            ".to_start": walks["y"].offset * size,
            ".bytes": int(np.prod(shape[row:], dtype=np.int64)) * size,
            ".unit": 1,
        }
        sheet.note("tinyml_play_move", members, sheet.x(), sheet.y())


def _borders(op: Pad, inner: Shape, outer: Shape) -> Iterator[tuple[Shape, int]]:
    """Boxes that cover what is not the input: their extents, and where they start."""
    strides = c.contiguous(outer)
    for axis in range(len(outer)):
        start = sum(op.begins[a] * strides[a] for a in range(axis))
        before, behind = (*inner[:axis],), outer[axis + 1 :]
        if op.begins[axis]:
            yield (*before, op.begins[axis], *behind), start
        if op.ends[axis]:
            yield (*before, op.ends[axis], *behind), start + (op.begins[axis] + inner[axis]) * strides[axis]


register_kernels(Pad, PadLoops())


@dataclass(frozen=True)
class PadEdge(Take):
    """A border of the tensor's own elements.

    ``edge`` repeats the last one, ``wrap`` goes on at the other side, ``reflect`` and ``symmetric``
    go back, the latter from the last element itself.
    """

    operands = (
        present(1),
        not_empty(0),
        one_per_axis("begins", "ends"),
        numbers_from(0, "begins", "ends"),
        within_limits("begins", "ends"),
    )
    begins: tuple[int, ...] = ()
    ends: tuple[int, ...] = ()
    mode: str = "edge"

    def picks(self, shape: Shape) -> tuple[Picks, ...]:
        return tuple(
            tuple(self._pick(i, size) for i in range(-begin, size + end))
            for size, begin, end in zip(shape, self.begins, self.ends, strict=True)
        )

    def extents(self, shape: Shape) -> Shape:
        return tuple(b + size + e for b, size, e in zip(self.begins, shape, self.ends, strict=True))

    def _pick(self, i: int, size: int) -> int:
        if self.mode == "edge" or size == 1:
            return min(max(i, 0), size - 1)
        if self.mode == "wrap":
            return i % size
        period = 2 * size - 2 if self.mode == "reflect" else 2 * size
        i %= period
        return i if i < size else period - i - (0 if self.mode == "reflect" else 1)

    def permuted(self, layer: Layer, perm: Sequence[int]) -> Op | None:
        begins, ends = (tuple(w[p] for p in perm) for w in (self.begins, self.ends))
        return replace(self, begins=begins, ends=ends)


register_kernels(PadEdge, TakeLoops())


def pad(
    build: Builder, x: Tensor, begins: Sequence[int], ends: Sequence[int], mode: str, value: float = 0
) -> Tensor:
    """``x`` with a border; cuts (negative widths) come first."""
    cut = {
        axis: (max(0, -b), size + min(0, b) + min(0, e), 1)
        for axis, (size, b, e) in enumerate(zip(x.shape, begins, ends, strict=True))
        if b < 0 or e < 0
    }
    if any(extent < 0 for _, extent, _ in cut.values()):
        raise ModelError(f"negative padding removes more elements than {x.name!r} has")
    x = take(build, x, cut)
    front, back = tuple(max(0, b) for b in begins), tuple(max(0, e) for e in ends)
    if not any(front) and not any(back):
        return x
    if mode == "constant":
        return build.add1(Pad(front, back, value), [x])
    return build.add1(PadEdge(front, back, mode), [x])


def _has_own_value(node: onnx.NodeProto) -> bool:
    """A padding value would no longer be a constant if it were quantised."""
    return len(node.input) > 2 and bool(node.input[2])


quantizes("Pad", moves=True, keeps_scale=True, stays_float=_has_own_value)


@onnx_op("Pad")
def read_onnx(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    x = node.input(0)
    rank = len(x.shape)
    value: float = 0
    if node.opset < 11:
        widths = [int(w) for w in node.ints("pads", node.ints("paddings"))]
        value = float(node.attr("value", 0.0))
    else:
        widths = [int(w) for w in node.const(1).reshape(-1)]
        if node.optional(2) is not None:
            value = node.const(2).reshape(-1)[0].item()
    axes = list(range(rank))
    if node.optional(3) is not None:
        axes = [from_front(a, rank) for a in node.const(3).reshape(-1).tolist()]
    begins, ends = [0] * rank, [0] * rank
    for position, axis in enumerate(axes):
        begins[axis], ends[axis] = widths[position], widths[len(axes) + position]
    mode = str(node.attr("mode", "constant"))
    if mode not in ("constant", "edge", "reflect", "wrap"):
        raise UnsupportedError(f"Pad node {node.name!r}: mode {mode!r} is not known")
    if x.quant is not None:  # to ONNX the tensor holds integers, and so does the fill
        value = float(dequantize(np.array([value], x.dtype.numpy), x.quant)[0])
    return [pad(build, x, begins, ends, mode, value)]


@tflite_op("PAD", "PADV2")
def read_tflite(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    x, widths = node.input(0), node.const(1).astype(np.int64)
    if x.dtype is node.outputs[0].dtype:  # the border is what means 0 in the output
        x = with_quant(build, x, node.outputs[0].quant)
    value = 0.0
    if node.optional(2) is not None:
        fill = node.input(2)
        stored = node.const(2).reshape(-1)
        value = float((dequantize(stored, fill.quant) if fill.quant is not None else stored)[0])
    return [pad(build, x, widths[:, 0].tolist(), widths[:, 1].tolist(), "constant", value)]


@tflite_op("MIRROR_PAD")
def read_mirror_pad(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    from tflite import MirrorPadMode

    x, widths = node.input(0), node.const(1).astype(np.int64)
    mode = "reflect" if node.options.Mode() == MirrorPadMode.REFLECT else "symmetric"
    return [pad(build, x, widths[:, 0].tolist(), widths[:, 1].tolist(), mode)]


@onnx_writer(Pad)
def write_onnx(op: Pad, layer: Layer, x: list[str], y: str, out: OnnxWriter) -> None:
    value = out.constant(np.asarray(op.value, layer.output.dtype.numpy), "value")
    out.node("Pad", [x[0], out.integers((*op.begins, *op.ends), "pads"), value], y)


@onnx_writer(PadEdge)
def write_onnx_edge(op: PadEdge, layer: Layer, x: list[str], y: str, out: OnnxWriter) -> None:
    if op.mode == "symmetric" or (op.mode == "reflect" and not _one_reflection(op, layer)):
        write_picks(op, layer, x, y, out)
    else:
        out.node("Pad", [x[0], out.integers((*op.begins, *op.ends), "pads")], y, mode=op.mode)


def _one_reflection(op: PadEdge, layer: Layer) -> bool:
    """ONNX says nothing about borders that are as wide as what they reflect."""
    sizes = zip(layer.input(0).shape, op.begins, op.ends, strict=True)
    return all(max(begin, end) < size for size, begin, end in sizes if begin or end)
