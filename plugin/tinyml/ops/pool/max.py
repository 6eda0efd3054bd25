# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""MaxPool: the largest element of each window, channels last, of floats or of stored integers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tinyml.base import c
from tinyml.base.errors import UnsupportedError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.cores.targets import Target
from tinyml.ir import Array, DType, Layer, Op, Tensor, TensorType, given
from tinyml.ir.hook_types import Border
from tinyml.ops.framework.kernel import Library, Sheet, register_kernels
from tinyml.ops.framework.quantization_facts import quantizes
from tinyml.ops.framework.reading import Builder, OnnxNode, TfliteNode, onnx_op, tflite_op
from tinyml.ops.framework.writing import OnnxWriter, onnx_writer
from tinyml.ops.pool.float_vectors import float_vectors, pool_record
from tinyml.ops.pool.windows import PoolKernel, PoolLoops, Window, read_pool, read_tflite_pool
from tinyml.ops.shared.clamped import Clamped
from tinyml.ops.shared.quant import Clamp, clamp_range, limits_are_exact
from tinyml.ops.weighted.records import window_members


@dataclass(frozen=True)
class MaxPool(Window, Clamped):
    """Elements outside the input never win.

    With ``indices`` there is a second output: where in the channels-first input each winner is,
    counted over the whole tensor, its spatial axes row by row or (``column_major``) column by column.
    """

    indices: bool = False
    column_major: bool = False

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x = given(inputs, 0)
        shape = self.output_shape(x)
        places = (TensorType(shape, DType.INT64),) if self.indices else ()
        return (TensorType(shape, x.dtype, x.quant), *places)

    def channelwise(self, layer: Layer) -> bool:
        return True

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x = given(inputs, 0)
        lowest = lowest_value(layer.input(0).dtype)
        rank = len(self.kernel)
        found = self.windows(x, lowest)
        largest = found.max(axis=self.taps, initial=lowest)
        largest = np.clip(largest, *stored_limits(self.clamp, layer.output)).astype(x.dtype)
        if not self.indices:
            return (largest,)
        numbers = np.zeros(x.shape, np.int64)
        for axis, stride in zip((0, *range(1, rank + 1), rank + 1), self.place_strides(x.shape), strict=True):
            shape = [1] * x.ndim
            shape[axis] = -1
            numbers += stride * np.arange(x.shape[axis]).reshape(shape)
        places = np.moveaxis(self.windows(numbers, 0), -1, 1 + rank)
        flat = np.moveaxis(found, -1, 1 + rank).reshape(*largest.shape, -1)
        inside = np.moveaxis(self.windows(np.ones(x.shape, bool), 0), -1, 1 + rank).reshape(flat.shape)
        best = flat.max(axis=-1, keepdims=True)
        wins = (flat == best) | ((flat != flat) & (best != best))  # NaN wins
        winner = np.argmax(np.where(inside, wins, False), axis=-1)
        chosen = np.take_along_axis(places.reshape(flat.shape), winner[..., None], axis=-1)
        return largest, chosen[..., 0]

    def bordered(self, x: Tensor, border: Border) -> Op | None:
        """Zeros never win against what is not negative, as long as each window sees some of the input.

        Indices count the border, and name it where zeros meet.
        """
        pads = border.added_to(self.pads)
        plain = not (any(self.pads) or self.ceil or self.indices) and all(d == 1 for d in self.dilations)
        if pads is None or not plain or not border.not_negative:
            return None
        sees = all(p < k for p, k in zip(pads, (*self.kernel, *self.kernel), strict=True))
        return replace(self, pads=pads) if sees else None

    def place_strides(self, shape: Sequence[int]) -> tuple[int, ...]:
        """How far apart neighbours along each (channels-last) axis are in the order of the indices."""
        spatial = shape[1:-1]
        inner = c.contiguous(spatial)
        if self.column_major:
            inner = tuple(reversed(c.contiguous(tuple(reversed(spatial)))))
        area = int(np.prod(spatial))
        return (shape[-1] * area, *inner, area)

    def selects(self, inputs: Sequence[Tensor | None]) -> bool:
        x = given(inputs, 0)
        return not self.indices and self.sees_input(x.shape) and limits_are_exact(self.clamp, x)

    def quantized(
        self, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]
    ) -> tuple[Op, Sequence[Tensor | None]] | None:
        x, y = inputs[0], outputs[0]
        same = x is not None and x.quant == y.quant and x.dtype is y.dtype and len(outputs) == 1
        return (self, inputs) if same else None


def lowest_value(dtype: DType) -> float:
    return -np.inf if dtype.is_float else dtype.limits[0]


def stored_limits(clamp: Clamp, tensor: Tensor) -> tuple[float, float]:
    """Real limits as limits on what is stored."""
    return clamp_range(clamp, tensor) if tensor.quant is not None else clamp


class MaxPoolLoops(PoolKernel[MaxPool]):
    """Loops over the output and over the window, which is cut at the borders of the input."""

    name = "max-pool loops"
    in_bands = True

    def emit(self, layer: Layer[MaxPool], sheet: Sheet) -> None:
        op, dtype = layer.op, layer.input(0).dtype
        low, high = stored_limits(op.clamp, layer.output)
        loops = PoolLoops(layer, sheet, op)
        with loops.outputs() as out:
            sheet.line(f"{dtype.c} best = {sheet.number(max(low, lowest_value(dtype)), dtype)};")
            if op.indices:
                sheet.line("int64_t place = -1;")
            sheet.line()
            with loops.taps() as at:
                sheet.line(f"const {dtype.c} v = {sheet.x()}[{at}];")
                sheet.line()
                if op.indices:
                    unknown = "(v != v && best == best) || " if dtype.is_float else ""
                    with sheet.block(f"if (v > best || {unknown}place < 0) {{"):
                        sheet.line("best = v;")
                        sheet.line(f"place = {self._place(op, layer.input(0).shape)};")
                else:
                    unknown = " || v != v" if dtype.is_float else ""  # NaN wins
                    sheet.line(f"best = v > best{unknown} ? v : best;")
            bounded = np.isfinite(high) and (dtype.is_float or high < dtype.limits[1])
            top = sheet.number(high, dtype) if bounded else ""
            sheet.line(f"{sheet.y(0)}[{out}] = {f'best > {top} ? {top} : best' if top else 'best'};")
            if op.indices:
                sheet.line(f"{sheet.y(1)}[{out}] = place;")

    def play(self, layer: Layer[MaxPool], sheet: Sheet) -> None:
        op, x, y = layer.op, layer.input(0), layer.output
        if op.indices or len(x.shape) != 4 or max(*x.shape, *y.shape) >= 1 << 15:
            self.emit(layer, sheet)
            return
        if x.dtype is DType.FLOAT32:
            sheet.note("tinyml_play_max_pool_f32", pool_record(layer, sheet), sheet.x(), sheet.y())
            return
        if x.dtype not in (DType.INT8, DType.INT16):
            self.emit(layer, sheet)
            return
        low, high = stored_limits(op.clamp, y)
        lowest, highest = x.dtype.limits
        members = {
            **window_members(layer, op.kernel, op.strides, op.dilations, op.pads),
            ".out_min": int(max(low, lowest)),
            ".out_max": int(min(high, highest)),
        }
        sheet.note(
            f"tinyml_play_max_pool_{'s8' if x.dtype is DType.INT8 else 's16'}", members, sheet.x(), sheet.y()
        )

    def _place(self, op: MaxPool, shape: Sequence[int]) -> c.Expr:
        names = ["n", *(f"i{a}" for a in range(len(op.kernel))), "c"]
        place = c.Expr(0)
        for name, stride, extent in zip(names, op.place_strides(shape), shape, strict=True):
            if extent > 1:
                place += c.Expr(name) * stride
        return place


def without_places(layer: Layer[MaxPool]) -> bool:
    """The places of the largest elements are not an output."""
    return not layer.op.indices


class MaxPoolVectors(MaxPoolLoops):
    """Four channels at a time, with Helium."""

    name = "tinyml_max_pool_mve_f32"
    library = Library.PORTABLE
    sources = ("pool/pools_mve_f32.c",)
    constraints = (*float_vectors, without_places)

    def runs_on(self, target: Target) -> bool:
        return target.mve and target.fpu

    def emit(self, layer: Layer[MaxPool], sheet: Sheet) -> None:
        sheet.include("<tinyml/pool.h>")
        name = sheet.record("struct tinyml_pool_f32", "params", pool_record(layer, sheet))
        sheet.call(self.name, name, sheet.x(), sheet.y())


class MaxPoolRiscv(MaxPoolVectors):
    """As many channels at a time as RISC-V's vectors of floats hold."""

    name = "tinyml_max_pool_rvv_f32"
    sources = ("pool/pools_rvv_f32.c",)

    def runs_on(self, target: Target) -> bool:
        return target.rvv and target.fpu


register_kernels(MaxPool, MaxPoolVectors(), MaxPoolRiscv(), MaxPoolLoops())


quantizes("MaxPool", keeps_scale=True, passes_limits=True)
quantizes("GlobalMaxPool")


@onnx_op("MaxPool", "GlobalMaxPool")
def read_onnx(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    column_major = bool(node.attr("storage_order", 0))
    return read_pool(node, build, MaxPool, indices=node.wants(1), column_major=column_major)


@tflite_op("MAX_POOL_2D")
def read_tflite(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    return read_tflite_pool(node, build, MaxPool)


@onnx_writer(MaxPool)
def write_onnx(op: MaxPool, layer: Layer, x: list[str], y: str, out: OnnxWriter) -> None:
    if op.indices:
        raise UnsupportedError("a max-pool that returns positions cannot be quantised")
    rank = len(layer.input(0).shape)
    out.spatial(x[0], y, rank, op.clamp, "MaxPool", kernel_shape=list(op.kernel),
             strides=list(op.strides), dilations=list(op.dilations), pads=list(op.pads),
             ceil_mode=int(op.ceil))  # fmt: skip
