# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Transposed convolutions in C: loops in the model's own source, and calls for each part of the outputs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import ClassVar

import numpy as np

from tinyml.base import c
from tinyml.ir import Constraint, DType, Layer, Shape
from tinyml.ops.conv.conv_float import ConvFloat, ConvFloat16
from tinyml.ops.conv.conv_loops import one_plain_type
from tinyml.ops.conv.transpose_float import emit_phases
from tinyml.ops.conv.transposed import ConvTranspose
from tinyml.ops.framework.kernel import Kernel, Library, Sheet
from tinyml.ops.framework.play_sheet import NotPlayableError
from tinyml.ops.pool.windows import flat_index
from tinyml.ops.shared.quant import LARGEST_SHIFT_INT16, clamp_range, quant_of
from tinyml.ops.weighted.float16_weights import float16_weights
from tinyml.ops.weighted.records import SMALL, constant_weights, float_tensors, one_weight_zero
from tinyml.ops.weighted.weighted import largest_shift


def quantized_types(layer: Layer) -> bool:
    """Weights are int8, input and output are both int8 or both int16, and all are quantised."""
    x, w, y = layer.input(0), layer.input(1), layer.output
    alike = x.dtype is y.dtype and y.dtype in (DType.INT8, DType.INT16)
    return alike and all(t.quant is not None for t in (x, w, y)) and w.dtype is DType.INT8


def small_factors(layer: Layer[ConvTranspose]) -> bool:
    """The rescaling factor from accumulator to int16 output is below 2¹⁴."""
    return layer.output.dtype is not DType.INT16 or largest_shift(layer) <= LARGEST_SHIFT_INT16


def played_window(layer: Layer[ConvTranspose]) -> dict[str, object]:
    """Members of the player's records that both types have."""
    op, x, w, y = layer.op, layer.input(0), layer.input(1), layer.output
    fixed = [t for t in layer.inputs[1:] if t is not None]
    if len(op.strides) != 2 or not all(t.is_constant for t in fixed):
        raise NotPlayableError("the player has transposed convolutions of two axes and constant weights")
    if max(*x.shape, *y.shape, *w.shape, *op.strides, *op.dilations, *op.pads) > DType.INT16.limits[1]:
        raise NotPlayableError("the player's windows have extents below 32768")
    pairs = {
        ("in_h", "in_w"): x.shape[1:3],
        ("out_h", "out_w"): y.shape[1:3],
        ("kernel_h", "kernel_w"): w.shape[1:3],
        ("stride_h", "stride_w"): op.strides,
        ("dilation_h", "dilation_w"): op.dilations,
        ("pad_top", "pad_left"): op.pads,
        ("batches", "in_c"): (x.shape[0], x.shape[3]),
        ("out_c",): (y.shape[3],),
    }
    window: dict[str, object] = {
        f".window.{name}": value
        for names, values in pairs.items()
        for name, value in zip(names, values, strict=True)
    }
    return {**window, ".groups": op.groups}


def plain_image(layer: Layer[ConvTranspose]) -> bool:
    """There are one image with two spatial axes, one group and no dilation; extents are all below 32,768."""
    op, x, y, w = layer.op, layer.input(0).shape, layer.output.shape, layer.input(1).shape
    plain = len(x) == 4 and x[0] == 1 and op.groups == 1 and set(op.dilations) == {1}
    return plain and max(*x, *y, *w, *op.strides, *op.pads) < SMALL


def taps_for_all(layer: Layer[ConvTranspose]) -> bool:
    """The kernel is at least as large as the stride."""
    return all(k >= s for k, s in zip(layer.input(1).shape[1:-1], layer.op.strides, strict=True))


class ConvTransposeLoops(Kernel[ConvTranspose]):
    """Loops over the output; a tap counts where it meets an input element."""

    name = "transposed convolution loops"
    constraints: ClassVar[tuple[Constraint, ...]] = (one_plain_type,)

    def emit(self, layer: Layer[ConvTranspose], sheet: Sheet) -> None:
        op, x, w, y = layer.op, layer.input(0), layer.input(1), layer.output
        rank = len(op.strides)
        ins, outs = w.shape[-1], w.shape[0] // op.groups
        names = ["n", *(f"o{a}" for a in range(rank)), "c"]
        channel = "c" if y.shape[-1] > 1 else "0"
        with sheet.nested(zip(names, y.shape, strict=True)):
            start = f"{sheet.x(2)}[{channel}]" if layer.has_input(2) else sheet.number(0, y.dtype)
            sheet.line(f"{self.sum_type(layer)} sum = {start};")
            sheet.line()
            inner = "j" if ins > 1 else "0"
            source = inner
            if op.groups > 1:
                group = f"{channel} / {outs}" if outs > 1 else channel
                source = group if ins == 1 else f"{group} * {ins} + j"
            at = flat_index(["n", *(f"i{a}" for a in range(rank)), source], x.shape)
            by = flat_index([channel, *(f"k{a}" for a in range(rank)), inner], w.shape)
            with self._taps(op, sheet, x.shape, y.shape, w.shape), sheet.nested([("j", ins)]):
                sheet.line(
                    f"sum += {self.operand(layer, sheet, 0, at)} * {self.operand(layer, sheet, 1, by)};"
                )
            value = self.finish(layer, op, sheet, channel)
            sheet.line(f"{sheet.y()}[{flat_index(names, y.shape)}] = {value};")

    def play(self, layer: Layer[ConvTranspose], sheet: Sheet) -> None:
        if layer.output.dtype is not DType.FLOAT32:
            raise NotPlayableError(f"the player has no transposed convolution of {layer.output.dtype.value}")
        members = {
            **played_window(layer),
            ".weights": sheet.x(1),
            ".out_min": sheet.number(layer.op.clamp[0]),
            ".out_max": sheet.number(layer.op.clamp[1]),
        }
        if layer.has_input(2):
            members[".bias"] = sheet.x(2)
        sheet.note("tinyml_play_conv_transpose_f32", members, sheet.x(0), sheet.y())

    def sum_type(self, layer: Layer[ConvTranspose]) -> str:
        return layer.output.dtype.c

    def operand(self, layer: Layer[ConvTranspose], sheet: Sheet, index: int, place: c.Expr) -> str:
        """One factor of a product."""
        return f"{sheet.x(index)}[{place}]"

    def finish(self, layer: Layer[ConvTranspose], op: ConvTranspose, sheet: Sheet, channel: str) -> str:
        """From the sum to the output's element."""
        dtype = layer.output.dtype
        for bound, sign in zip(op.clamp, "<>", strict=True):
            if np.isfinite(bound):
                limit = sheet.number(bound, dtype)
                sheet.line(f"sum = sum {sign} {limit} ? {limit} : sum;")
        return "sum"

    @contextmanager
    def _taps(self, op: ConvTranspose, sheet: Sheet, x: Shape, y: Shape, w: Shape) -> Iterator[None]:
        """The loops over the kernel; ``i0``, ``i1``, … are the input elements that a tap meets."""
        with ExitStack() as opened:
            for a, stride in enumerate(op.strides):
                opened.enter_context(sheet.loop(f"k{a}", w[1 + a]))
                place = f"o{a}" if y[1 + a] > 1 else "0"
                place += f" + {op.pads[a]}" if op.pads[a] else ""
                back = f"k{a}" if op.dilations[a] == 1 else f"k{a} * {op.dilations[a]}"
                if stride == 1:
                    sheet.line(f"const int32_t i{a} = {place} - {back};")
                    outside = f"i{a} < 0 || i{a} >= {x[1 + a]}"
                else:
                    sheet.line(f"const int32_t s{a} = {place} - {back};")
                    sheet.line(f"const int32_t i{a} = s{a} / {stride};")
                    outside = f"s{a} < 0 || s{a} % {stride} != 0 || i{a} >= {x[1 + a]}"
                sheet.line()
                with sheet.block(f"if ({outside}) {{"):
                    sheet.line("continue;")
            yield


class ConvTransposeQuantized(ConvTransposeLoops):
    """Integer sums, rescaled for each output channel; of 64 bits where activations are int16."""

    name = "integer transposed convolution loops"
    constraints: ClassVar[tuple[Constraint, ...]] = (
        quantized_types,
        constant_weights,
        one_weight_zero,
        small_factors,
    )

    def sum_type(self, layer: Layer[ConvTranspose]) -> str:
        return "int64_t" if layer.output.dtype is DType.INT16 else "int32_t"

    def operand(self, layer: Layer[ConvTranspose], sheet: Sheet, index: int, place: c.Expr) -> str:
        zero = quant_of(layer.input(index)).zero_points[0]
        element = f"{sheet.x(index)}[{place}]"
        return f"({element} - ({zero}))" if zero else element

    def finish(self, layer: Layer[ConvTranspose], op: ConvTranspose, sheet: Sheet, channel: str) -> str:
        y = layer.output
        low, high = clamp_range(op.clamp, y)
        multipliers, shifts = op.multipliers(layer)
        if multipliers.size > 1:
            multiplier = f"{sheet.table('multiplier', multipliers)}[{channel}]"
            shift = f"{sheet.table('shift', shifts.astype(np.int8))}[{channel}]"
        else:
            multiplier, shift = str(multipliers[0]), str(shifts[0])
        once = "_once" if op.round_once else ""
        if y.dtype is DType.INT16:
            sheet.include("<tinyml/conv_s16.h>")
            return f"tinyml_narrow_s64{once}(sum, {multiplier}, {shift}, {low}, {high})"
        sheet.include("<tinyml/fixed_point.h>")
        scaled = f"tinyml_rescale{once}(sum, {multiplier}, {shift}) + ({quant_of(y).zero_point})"
        return f"({y.dtype.c})tinyml_clamp({scaled}, {low}, {high})"

    def play(self, layer: Layer[ConvTranspose], sheet: Sheet) -> None:
        op, y = layer.op, layer.output
        low, high = clamp_range(op.clamp, y)
        channels = y.shape[-1]
        multipliers, shifts = (np.broadcast_to(part, (channels,)) for part in op.multipliers(layer))
        members = {
            **played_window(layer),
            ".in_zero": quant_of(layer.input(0)).zero_point,
            ".weight_zero": quant_of(layer.input(1)).zero_points[0],
            ".out_zero": quant_of(y).zero_point,
            ".out_min": low,
            ".out_max": high,
            ".round_once": int(op.round_once),
            ".weights": sheet.x(1),
            ".multiplier": sheet.table("multiplier", multipliers),
            ".shift": sheet.table("shift", shifts.astype(np.int8)),
        }
        if layer.has_input(2):
            members[".bias"] = sheet.x(2)
        kind = "s16" if y.dtype is DType.INT16 else "s8"
        sheet.note(f"tinyml_play_conv_transpose_{kind}", members, sheet.x(0), sheet.y())


class ConvTransposeFloat(ConvTransposeLoops):
    """Float: a convolution for each remainder of output positions after division by the strides."""

    name = "tinyml_conv_apart_f32"
    library = Library.PORTABLE
    sources: ClassVar[tuple[str, ...]] = ConvFloat.sources
    constraints: ClassVar[tuple[Constraint, ...]] = (
        *(float_tensors, constant_weights),
        *(plain_image, taps_for_all),
    )

    def emit(self, layer: Layer[ConvTranspose], sheet: Sheet) -> None:
        emit_phases(layer, sheet, layer.op, self.weights_are_float16)

    def play(self, layer: Layer[ConvTranspose], sheet: Sheet) -> None:
        self.emit(layer, sheet)


class ConvTransposeFloat16(ConvTransposeFloat):
    """The same with float16 weights."""

    name = "tinyml_conv_apart_f32_f16"
    sources = ConvFloat16.sources
    constraints = (*ConvTransposeFloat.constraints, float16_weights)
    weights_are_float16 = True
