"""AveragePool: the mean of each window, channels last, any number of spatial axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tinyml import c
from tinyml.ir import Array, DType, Layer, Op, Tensor, TensorType, given
from tinyml.kernel import Constraint, Kernel, Library, Sheet, register_kernels
from tinyml.ops._conv_records import window_members
from tinyml.ops._pool import PoolLoops, Window, read_pool
from tinyml.ops._quant import NO_CLAMP, Clamp, clamp_range, is_quantized
from tinyml.ops._window import tflite_pads
from tinyml.reading import Builder, OnnxNode, TfliteNode, onnx_op, tflite_op
from tinyml.targets import Target


@dataclass(frozen=True)
class AveragePool(Window):
    """The divisor counts the elements of a window inside the input, or inside its padding too."""

    include_pad: bool = False
    clamp: Clamp = NO_CLAMP

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x = given(inputs, 0)
        return (TensorType(self.output_shape(x), x.dtype, x.quant),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x = given(inputs, 0)
        rank = len(self.kernel)
        taps = tuple(range(1 + rank, 1 + 2 * rank))
        counts = self.counts(x.shape)
        if layer.output.quant is not None:
            total = self.windows(x.astype(np.int64), 0).sum(axis=taps)
            nearest = np.sign(total) * ((np.abs(total) + counts // 2) // counts)
            return (np.clip(nearest, *clamp_range(self.clamp, layer.output)).astype(x.dtype),)
        mean = self.windows(x, 0).sum(axis=taps) / counts
        return (np.clip(mean, *self.clamp).astype(layer.output.dtype.numpy),)

    def quantized(
        self, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]
    ) -> tuple[Op, Sequence[Tensor | None]] | None:
        return (self, inputs) if same_quantization(inputs[0], outputs[0]) and not self.pads_count else None

    @property
    def pads_count(self) -> bool:
        """Whether padding takes part: it would have to be the zero point, not 0."""
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
        return np.asarray(found.sum(axis=tuple(range(1 + rank, 1 + 2 * rank))))


def real_numbers(layer: Layer) -> bool:
    """Input and output are floating point."""
    return layer.input(0).dtype.is_float and layer.output.dtype.is_float


def same_quantization(x: Tensor | None, y: Tensor) -> bool:
    """Whether the stored integers of both mean the same, so that their mean is the mean."""
    types = (DType.INT8, DType.UINT8, DType.INT16)
    return x is not None and is_quantized(x, *types) and x.quant == y.quant and x.dtype is y.dtype


def integer_form(layer: Layer) -> bool:
    """Input and output are quantised alike, and padding does not count."""
    assert isinstance(layer.op, AveragePool)
    return same_quantization(layer.input(0), layer.output) and not layer.op.pads_count


class AveragePoolQuantized(Kernel):
    """Integer sums; the quotient is rounded to the nearest, halves away from zero."""

    name = "integer average-pool loops"
    constraints: ClassVar[tuple[Constraint, ...]] = (integer_form,)

    def overwrites(self, layer: Layer) -> tuple[int, ...]:
        assert isinstance(layer.op, AveragePool)
        return (0,) if layer.op.stays_behind(layer.input(0).shape) else ()

    def emit(self, layer: Layer, sheet: Sheet) -> None:
        op, y = layer.op, layer.output
        assert isinstance(op, AveragePool)
        counts = op.counts(layer.input(0).shape)
        same = bool(np.all(counts == counts.reshape(-1)[0]))
        low, high = clamp_range(op.clamp, y)
        sheet.include("<tinyml/fixed_point.h>")
        loops = PoolLoops(layer, sheet)
        with loops.outputs() as out:
            sheet.line("int32_t sum = 0;")
            if not same:
                sheet.line("int32_t count = 0;")
            sheet.line()
            with loops.taps() as place:
                sheet.line(f"sum += {sheet.x()}[{place}];")
                if not same:
                    sheet.line("count++;")
            count = str(counts.reshape(-1)[0]) if same else "count"
            half = str(counts.reshape(-1)[0] // 2) if same else "count / 2"
            sheet.line(f"sum = (sum > 0 ? sum + {half} : sum - {half}) / {count};")
            sheet.line(f"{sheet.y()}[{out}] = ({y.dtype.c})tinyml_clamp(sum, {low}, {high});")


def two_spatial_axes(layer: Layer) -> bool:
    """The input is NHWC with extents below 32768."""
    return len(layer.input(0).shape) == 4 and max(layer.input(0).shape) < 1 << 15


def whole_blocks(layer: Layer) -> bool:
    """Elements are int8, channels a multiple of 8, windows at most 255 elements of which each sees one."""
    op, x = layer.op, layer.input(0)
    assert isinstance(op, AveragePool)
    small = math.prod(op.kernel) <= 255 and bool(np.all(op.counts(x.shape) > 0))
    return x.dtype is DType.INT8 and x.shape[-1] % 8 == 0 and small


class AveragePoolInt8(AveragePoolQuantized):
    """Sums of several channels at a time, in 16 bits."""

    name = "tinyml_average_pool_s8"
    library = Library.PORTABLE
    sources = ("average_pool_s8.c",)
    constraints = (integer_form, two_spatial_axes, whole_blocks)

    def runs_on(self, target: Target) -> bool:
        return target.dsp

    def emit(self, layer: Layer, sheet: Sheet) -> None:
        op = layer.op
        assert isinstance(op, AveragePool)
        low, high = clamp_range(op.clamp, layer.output)
        sheet.include("<tinyml/pool.h>")
        window = window_members(layer, op.kernel, op.strides, op.dilations, op.pads)
        members = {**window, ".out_min": low, ".out_max": high}
        name = sheet.record("struct tinyml_pool_s8", "params", members)
        sheet.line(f"{self.name}(&{name}, {sheet.x()}, {sheet.y()});")


class AveragePoolLoops(Kernel):
    """Sums inside loops; the divisor is a constant where all windows hold as many elements."""

    name = "average-pool loops"
    constraints = (real_numbers,)

    def overwrites(self, layer: Layer) -> tuple[int, ...]:
        assert isinstance(layer.op, AveragePool)
        return (0,) if layer.op.stays_behind(layer.input(0).shape) else ()

    def emit(self, layer: Layer, sheet: Sheet) -> None:
        op, dtype = layer.op, layer.output.dtype
        assert isinstance(op, AveragePool)
        counts = op.counts(layer.input(0).shape)
        same = bool(np.all(counts == counts.reshape(-1)[0]))
        loops = PoolLoops(layer, sheet)
        with loops.outputs() as out:
            sheet.line(f"{dtype.c} sum = {c.number(0, dtype.numpy)};")
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
            divisor = c.number(counts.reshape(-1)[0], dtype.numpy) if same else f"({dtype.c})count"
            value = f"sum / {divisor}"
            low, high = (c.number(v, dtype.numpy) if np.isfinite(v) else "" for v in op.clamp)
            if low or high:
                sheet.line(f"{dtype.c} mean = {value};")
                sheet.line()
                if low:
                    sheet.line(f"mean = mean < {low} ? {low} : mean;")
                if high:
                    sheet.line(f"mean = mean > {high} ? {high} : mean;")
                value = "mean"
            sheet.line(f"{sheet.y()}[{out}] = {value};")


register_kernels(AveragePool, AveragePoolInt8(), AveragePoolQuantized(), AveragePoolLoops())


@onnx_op("AveragePool", "GlobalAveragePool")
def read_onnx(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    return read_pool(node, build, AveragePool, include_pad=bool(node.attr("count_include_pad", 0)))


@tflite_op("AVERAGE_POOL_2D")
def read_tflite(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    from tflite import Padding

    x, options = node.input(0), node.options
    kernel = (options.FilterHeight(), options.FilterWidth())
    strides = (options.StrideH(), options.StrideW())
    pads = tflite_pads(options.Padding() == Padding.SAME, (x.shape[1], x.shape[2]), kernel, strides)
    op = AveragePool(kernel, strides, (1, 1), pads, clamp=node.clamp)
    return [build.add1(op, [x], node.outputs[0])]
