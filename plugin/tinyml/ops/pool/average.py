# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""AveragePool: the mean of each window, channels last, any number of spatial axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar

import numpy as np

from tinyml.base.errors import UnsupportedError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.cores.targets import Target
from tinyml.ir import Array, Constraint, DType, Layer, Op, Tensor, TensorType, given
from tinyml.ir.hook_types import Border, RowWindow
from tinyml.ops.framework.kernel import Library, Sheet, register_kernels
from tinyml.ops.framework.quantization_facts import quantizes
from tinyml.ops.framework.reading import Builder, OnnxNode, TfliteNode, onnx_op, tflite_op
from tinyml.ops.framework.writing import OnnxWriter, onnx_writer
from tinyml.ops.pool.float_vectors import float_vectors, pool_record
from tinyml.ops.pool.integer_mean import Halves, alike, from_sum, linear_mean, sums_fit
from tinyml.ops.pool.windows import (
    PoolKernel,
    PoolLoops,
    Window,
    read_pool,
    read_tflite_pool,
    two_spatial_axes,
)
from tinyml.ops.shared.clamped import Clamped
from tinyml.ops.shared.constraints import real_numbers
from tinyml.ops.shared.linear import Linear
from tinyml.ops.shared.quant import clamp_range, limited, quant_of
from tinyml.ops.weighted.records import window_members


@dataclass(frozen=True)
class AveragePool(Window, Clamped):
    """The divisor counts the elements of a window inside the input, or inside its padding too."""

    include_pad: bool = False
    halves: Halves = "away"  # how those of quantised means are rounded

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x = given(inputs, 0)
        return (TensorType(self.output_shape(x), x.dtype, x.quant),)

    def channelwise(self, layer: Layer) -> bool:
        return True

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x = given(inputs, 0)
        counts = self.counts(x.shape)
        if layer.output.quant is not None:
            total = self.windows(x.astype(np.int64), 0).sum(axis=self.taps)
            found = from_sum(total, counts, quant_of(layer.input(0)), quant_of(layer.output), self.halves)
            return (np.clip(found, *clamp_range(self.clamp, layer.output)).astype(x.dtype),)
        mean = self.windows(x, 0).sum(axis=self.taps) / counts
        return (np.clip(mean, *self.clamp).astype(layer.output.dtype.numpy),)

    def bordered(self, x: Tensor, border: Border) -> Op | None:
        pads = border.added_to(self.pads)
        if pads is None or x.quant is not None or any(self.pads) or self.ceil:
            return None
        return replace(self, pads=pads, include_pad=True)

    def row_window(self, layer: Layer, axis: int) -> RowWindow | None:
        return None if self.ceil or self.pads_count else super().row_window(layer, axis)

    def quantized(
        self, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]
    ) -> tuple[Op, Sequence[Tensor | None]] | None:
        even = replace(self, halves="even")
        return (even, inputs) if even.has_integer_form(inputs[0], outputs[0]) else None

    def has_integer_form(self, x: Tensor | None, y: Tensor) -> bool:
        """Whether sums of stored integers are enough."""
        if x is None or self.pads_count or not (alike(x, y) or self.line(x, y) is not None):
            return False
        return sums_fit(x, math.prod(self.kernel))

    def line(self, x: Tensor | None, y: Tensor) -> Linear | None:
        """From the sum of a window to its mean in one step, if there is one."""
        if x is None or y.quant is None or self.pads_count:
            return None
        return linear_mean(self.counts(x.shape), x, y, clamp_range(self.clamp, y), self.halves)

    @property
    def pads_count(self) -> bool:
        """Whether padding is counted: it would have to be the zero point, not 0."""
        return self.include_pad and any(self.pads)

    def counts(self, shape: Sequence[int]) -> Array:
        """The divisor of each output position, shape (1, *outputs, 1)."""
        rank = len(self.kernel)
        ones = np.ones((1, *shape[1:-1], 1), np.int32)
        if self.include_pad:
            around = [(self.pads[a], self.pads[rank + a]) for a in range(rank)]
            ones = np.pad(ones, [(0, 0), *around, (0, 0)], constant_values=1)
            free = Window(self.kernel, self.strides, self.dilations, (0,) * (2 * rank), self.ceil)
            kept = (slice(None), *(slice(0, extent) for extent in self.extents(tuple(shape))))
            found = free.windows(ones, 0)[kept]
        else:
            found = self.windows(ones, 0)
        return np.asarray(found.sum(axis=self.taps))


def integer_form(layer: Layer[AveragePool]) -> bool:
    """Input and output have the same quantisation, or are 8-bit with windows of one size; means leave padding
    out.

    The sum of a window fits into 32 bits."""
    return layer.op.has_integer_form(layer.input(0), layer.output)


class AveragePoolQuantized(PoolKernel[AveragePool]):
    """Integer sums."""

    name = "integer average-pool loops"
    in_bands = True
    constraints: ClassVar[tuple[Constraint, ...]] = (integer_form,)

    def emit(self, layer: Layer[AveragePool], sheet: Sheet) -> None:
        op, y = layer.op, layer.output
        line = op.line(layer.input(0), y)
        sheet.include("<tinyml/fixed_point.h>")
        loops = PoolLoops(layer, sheet, op)
        with loops.outputs() as out:
            sheet.line("int32_t sum = 0;")
            if line is None:
                sheet.line("int32_t count = 0;")
            sheet.line()
            with loops.taps() as place:
                sheet.line(f"sum += {sheet.x()}[{place}];")
                if line is None:
                    sheet.line("count++;")
            if line is not None:
                sheet.line(f"sum = {line.c('sum')};")
            elif op.halves == "even":
                zero = quant_of(y).zero_point
                centred = f"sum - count * ({zero})" if zero else "sum"
                sheet.line(f"sum = tinyml_divide_to_even({centred}, count) + ({zero});")
            elif op.halves == "up":
                sheet.line("sum += count / 2;")
                sheet.line("sum = (sum < 0 ? sum - count + 1 : sum) / count;")
            else:
                sheet.line("sum = (sum > 0 ? sum + count / 2 : sum - count / 2) / count;")
            value = limited("sum", *clamp_range(op.clamp, y))
            sheet.line(f"{sheet.y()}[{out}] = ({y.dtype.c}){value};")

    def play(self, layer: Layer[AveragePool], sheet: Sheet) -> None:
        op, y = layer.op, layer.output
        line = op.line(layer.input(0), y)
        words = y.dtype is DType.INT16 and line is None
        if not (words or y.dtype is DType.INT8) or not two_spatial_axes(layer):
            self.emit(layer, sheet)
        elif line is not None:
            sheet.note("tinyml_play_mean_s8", _pool_members(layer), sheet.x(), sheet.y())
        else:
            low, high = clamp_range(op.clamp, y)
            members = {
                **window_members(layer, op.kernel, op.strides, op.dilations, op.pads),
                ".zero": quant_of(y).zero_point,
                ".out_min": low,
                ".out_max": high,
                ".halves": ("away", "up", "even").index(op.halves),
            }
            kind = "s16" if words else "s8"
            sheet.note(f"tinyml_play_mean_any_{kind}", members, sheet.x(), sheet.y())

    def play_sums(self, layer: Layer[AveragePool], sheet: Sheet, sums: str) -> None:
        x = layer.input(0)
        if x.dtype is not DType.INT8:
            self.emit_sums(layer, sheet, sums)
            return
        members = {".positions": x.elements // x.shape[3], ".channels": x.shape[3]}
        sheet.note("tinyml_play_sums_s8", members, sheet.x(), sums)

    def play_means(self, layer: Layer[AveragePool], sheet: Sheet, sums: str) -> None:
        if layer.output.dtype is not DType.INT8:
            self.emit_means(layer, sheet, sums)
            return
        names = (".shift", ".out_min", ".out_max", ".factor", ".offset")
        known = _pool_members(layer)
        members = {".count": layer.output.elements, **{name: known[name] for name in names}}
        sheet.note("tinyml_play_means_s8", members, sums, sheet.y())

    def sums_rows(self, layer: Layer[AveragePool]) -> bool:
        x, y, op = layer.input(0), layer.output, layer.op
        whole = len(x.shape) == 4 and y.shape[:3] == (1, 1, 1) and not any(op.pads)
        return whole and op.kernel == x.shape[1:3] and op.line(x, y) is not None

    def emit_sums(self, layer: Layer[AveragePool], sheet: Sheet, sums: str) -> None:
        _, rows, columns, channels = layer.input(0).shape
        if rows * columns >= MANY_POSITIONS and channels % len(FOUR) == 0:
            _emit_sums_by_channel(layer, sheet, sums)
            return
        with (
            sheet.loop("i", rows * columns),
            sheet.loop("c", channels),
        ):
            sheet.line(f"{sums}[c] += {sheet.x()}[i * {channels} + c];")

    def emit_means(self, layer: Layer[AveragePool], sheet: Sheet, sums: str) -> None:
        y, line = layer.output, layer.op.line(layer.input(0), layer.output)
        assert line is not None
        sheet.include("<tinyml/fixed_point.h>")
        with sheet.loop("c", y.shape[3]):
            sheet.line(f"const int32_t sum = {line.c(f'{sums}[c]')};")
            value = limited("sum", *clamp_range(layer.op.clamp, y))
            sheet.line(f"{sheet.y()}[c] = ({y.dtype.c}){value};")


FOUR = range(4)  # channels at a time
MANY_POSITIONS = 16  # from here on, four sums in registers take fewer instructions than sums in memory


def _emit_sums_by_channel(layer: Layer[AveragePool], sheet: Sheet, sums: str) -> None:
    x = layer.input(0)
    channels = x.shape[3]
    with sheet.loop("c", channels, step=len(FOUR)):
        sheet.line(f"const {x.dtype.c} *at = &{sheet.x()}[c];")
        for i in FOUR:
            sheet.line(f"int32_t sum{i} = 0;")
        sheet.line()
        with sheet.loop("i", x.elements // channels):
            for i in FOUR:
                sheet.line(f"sum{i} += at[{i}];")
            sheet.line(f"at += {channels};")
        for i in FOUR:
            sheet.line(f"{sums}[c + {i}] += sum{i};")


def whole_blocks(layer: Layer[AveragePool]) -> bool:
    """Elements are int8, the channels are a multiple of 8, and every window is complete with at most 255
    elements."""
    op, x = layer.op, layer.input(0)
    small = math.prod(op.kernel) <= 255 and x.dtype is DType.INT8 and x.shape[-1] % 8 == 0
    return small and op.line(x, layer.output) is not None


def _pool_members(layer: Layer[AveragePool]) -> dict[str, object]:
    """Members of struct tinyml_pool_s8."""
    op = layer.op
    line = op.line(layer.input(0), layer.output)
    assert line is not None
    low, high = clamp_range(op.clamp, layer.output)
    return {
        **window_members(layer, op.kernel, op.strides, op.dilations, op.pads),
        ".shift": line.shift,
        ".out_min": low,
        ".out_max": high,
        ".factor": line.factors[0],
        ".offset": line.offset,
    }


class AveragePoolInt8(AveragePoolQuantized):
    """Sums of several channels at a time, in 16 bits."""

    name = "tinyml_average_pool_s8"
    library = Library.PORTABLE
    sources = ("pool/average_pool_s8.c",)
    constraints = (integer_form, two_spatial_axes, whole_blocks)

    def runs_on(self, target: Target) -> bool:
        return target.dsp

    def emit(self, layer: Layer[AveragePool], sheet: Sheet) -> None:
        sheet.include("<tinyml/pool.h>")
        members = _pool_members(layer)
        name = sheet.record("struct tinyml_pool_s8", "params", members)
        sheet.call(self.name, name, sheet.x(), sheet.y())

    def play(self, layer: Layer[AveragePool], sheet: Sheet) -> None:
        self.emit(layer, sheet)


def words_in_eights(layer: Layer[AveragePool]) -> bool:
    """Elements are int16, the channels are a multiple of 8, and every window has an element."""
    op, x = layer.op, layer.input(0)
    return x.dtype is DType.INT16 and x.shape[-1] % 8 == 0 and bool(np.all(op.counts(x.shape) > 0))


class AveragePoolInt16(AveragePoolQuantized):
    """Sums of eight channels at a time."""

    name = "tinyml_average_pool_s16"
    library = Library.PORTABLE
    sources = ("pool/average_pool_s16.c",)
    constraints = (integer_form, two_spatial_axes, words_in_eights)

    def runs_on(self, target: Target) -> bool:
        return target.dsp

    def emit(self, layer: Layer[AveragePool], sheet: Sheet) -> None:
        op = layer.op
        low, high = clamp_range(op.clamp, layer.output)
        sheet.include("<tinyml/pool.h>")
        members = {
            **window_members(layer, op.kernel, op.strides, op.dilations, op.pads),
            ".out_min": low,
            ".out_max": high,
            ".to_even": "true" if op.halves == "even" else "false",
        }
        name = sheet.record("struct tinyml_pool_s16", "params", members)
        sheet.call(self.name, name, sheet.x(), sheet.y())


class AveragePoolLoops(PoolKernel[AveragePool]):
    """Sums inside loops; the divisor is a constant where all windows hold as many elements."""

    name = "average-pool loops"
    in_bands = True
    constraints: ClassVar[tuple[Constraint, ...]] = (real_numbers,)

    def emit(self, layer: Layer[AveragePool], sheet: Sheet) -> None:
        op, dtype = layer.op, layer.output.dtype
        counts = op.counts(layer.input(0).shape)
        same = bool(np.all(counts == counts.reshape(-1)[0]))
        loops = PoolLoops(layer, sheet, op)
        if same and dtype is DType.FLOAT32 and layer.output.shape[-1] % len(FOUR) == 0:
            self._emit_four(layer, sheet, loops, float(counts.reshape(-1)[0]))
            return
        with loops.outputs() as out:
            sheet.line(f"{dtype.c} sum = {sheet.number(0, dtype)};")
            if not same:
                sheet.line("int32_t count = 0;")
            sheet.line()
            in_padding = op.include_pad and not same
            with loops.taps(padded=in_padding) as place:
                if not same:
                    sheet.line("count++;")
                if in_padding and loops.in_input():
                    with sheet.block(f"if ({loops.in_input()}) {{"):
                        sheet.line(f"sum += {sheet.x()}[{place}];")
                else:
                    sheet.line(f"sum += {sheet.x()}[{place}];")
            divisor = sheet.number(counts.reshape(-1)[0], dtype) if same else f"({dtype.c})count"
            value = f"sum / {divisor}"
            low, high = (sheet.number(v, dtype) if np.isfinite(v) else "" for v in op.clamp)
            if low or high:
                sheet.line(f"{dtype.c} mean = {value};")
                sheet.line()
                if low:
                    sheet.line(f"mean = mean < {low} ? {low} : mean;")
                if high:
                    sheet.line(f"mean = mean > {high} ? {high} : mean;")
                value = "mean"
            sheet.line(f"{sheet.y()}[{out}] = {value};")

    def _emit_four(self, layer: Layer[AveragePool], sheet: Sheet, loops: PoolLoops, count: float) -> None:
        """Four channels at a time, whose sums do not wait for each other."""
        with loops.outputs(channels=len(FOUR)) as out:
            zero = sheet.number(0)
            sheet.line(f"float {', '.join(f's{i} = {zero}' for i in FOUR)};")
            sheet.line()
            with loops.taps() as place:
                sheet.line(f"const float *const v = &{sheet.x()}[{place}];")
                sheet.line()
                for i in FOUR:
                    sheet.line(f"s{i} += v[{i}];")
            for i in FOUR:
                sheet.line(f"s{i} /= {sheet.number(count)};")
                for bound, sign in zip(layer.op.clamp, "<>", strict=True):
                    if np.isfinite(bound):
                        limit = sheet.number(bound)
                        sheet.line(f"s{i} = s{i} {sign} {limit} ? {limit} : s{i};")
                sheet.line(f"{sheet.y()}[{out + i if i else out}] = s{i};")

    def play(self, layer: Layer[AveragePool], sheet: Sheet) -> None:
        of_floats = layer.output.dtype is DType.FLOAT32
        if not of_floats or not divides_by_elements(layer) or not two_spatial_axes(layer):
            self.emit(layer, sheet)
            return
        members = pool_record(layer, sheet, divisor(layer))
        sheet.note("tinyml_play_average_pool_f32", members, sheet.x(), sheet.y())


def divisor(layer: Layer[AveragePool]) -> float:
    """Of all means; 0 where it is the number of elements, which differs."""
    counts = layer.op.counts(layer.input(0).shape)
    first = counts.reshape(-1)[0]
    return float(first) if np.all(counts == first) else 0.0


def divides_by_elements(layer: Layer[AveragePool]) -> bool:
    """Means leave padding out, or all windows have as much of it."""
    return not layer.op.include_pad or divisor(layer) != 0


class AveragePoolVectors(AveragePoolLoops):
    """Sums of four channels at a time, with Helium."""

    name = "tinyml_average_pool_mve_f32"
    library = Library.PORTABLE
    sources = ("pool/pools_mve_f32.c",)
    constraints = (*float_vectors, divides_by_elements)

    def runs_on(self, target: Target) -> bool:
        return target.mve and target.fpu

    def emit(self, layer: Layer[AveragePool], sheet: Sheet) -> None:
        sheet.include("<tinyml/pool.h>")
        name = sheet.record("struct tinyml_pool_f32", "params", pool_record(layer, sheet, divisor(layer)))
        sheet.call(self.name, name, sheet.x(), sheet.y())


class AveragePoolRiscv(AveragePoolVectors):
    """Sums of as many channels at a time as RISC-V's vectors of floats hold."""

    name = "tinyml_average_pool_rvv_f32"
    sources = ("pool/pools_rvv_f32.c",)

    def runs_on(self, target: Target) -> bool:
        return target.rvv and target.fpu


register_kernels(
    AveragePool,
    AveragePoolInt8(),
    AveragePoolInt16(),
    AveragePoolQuantized(),
    AveragePoolVectors(),
    AveragePoolRiscv(),
    AveragePoolLoops(),
)


quantizes("AveragePool", keeps_scale=True)


@onnx_op("AveragePool", "GlobalAveragePool")
def read_onnx(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    return read_pool(node, build, AveragePool, include_pad=bool(node.attr("count_include_pad", 0)))


@tflite_op("AVERAGE_POOL_2D")
def read_tflite(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    halves: Halves = "up" if node.input(0).dtype is DType.UINT8 else "away"
    return read_tflite_pool(node, build, partial(AveragePool, halves=halves))


@onnx_writer(AveragePool)
def write_onnx(op: AveragePool, layer: Layer, x: list[str], y: str, out: OnnxWriter) -> None:
    if any(step != 1 for step in op.dilations):
        raise UnsupportedError("an average pool with dilation cannot be quantised")
    rank = len(layer.input(0).shape)
    out.spatial(x[0], y, rank, op.clamp, "AveragePool", kernel_shape=list(op.kernel),
             strides=list(op.strides), pads=list(op.pads), ceil_mode=int(op.ceil),
             count_include_pad=int(op.include_pad))  # fmt: skip
