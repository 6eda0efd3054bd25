# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""ConvTranspose: every input element spreads a filter over the output. Channels last, any rank.

Weights are (out, *kernel, in / groups), like those of Conv.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tinyml.base import c
from tinyml.base.errors import ModelError
from tinyml.ir import Array, Constraint, DType, Layer, Shape, Tensor, TensorType, given
from tinyml.ops.conv.conv_float import ConvFloat
from tinyml.ops.conv.conv_loops import one_plain_type
from tinyml.ops.conv.transpose_float import emit_phases
from tinyml.ops.framework.kernel import Kernel, Library, Sheet, register_kernels
from tinyml.ops.framework.play_sheet import NotPlayableError
from tinyml.ops.framework.quantization_facts import quantizes
from tinyml.ops.framework.reading import Builder, OnnxNode, TfliteNode, onnx_op, tflite_op
from tinyml.ops.framework.writing import OnnxWriter, onnx_writer
from tinyml.ops.pool.windows import flat_index
from tinyml.ops.reshape import Reshape
from tinyml.ops.shared.axis_order import channels_first, channels_last
from tinyml.ops.shared.operands import not_empty, numbers_from, present
from tinyml.ops.shared.quant import LARGEST_SHIFT_INT16, clamp_range, quant_of
from tinyml.ops.shared.real import layer_bias, layer_weights
from tinyml.ops.transpose import Transpose
from tinyml.ops.weighted.records import SMALL, constant_weights, float_tensors, one_weight_zero
from tinyml.ops.weighted.weighted import Weighted, largest_shift


def spatial_axes(layer: Layer[ConvTranspose]) -> bool:
    """Input and weights have the axes of the window, one axis before them and one after."""
    op = layer.op
    ranks = {len(part) for part in (op.strides, op.dilations, op.pads, op.outputs)}
    return ranks == {len(layer.input(0).shape) - 2} == {len(layer.input(1).shape) - 2}


def transposed_groups(layer: Layer[ConvTranspose]) -> bool:
    """The number of groups must divide the output channels, and groups x weight channels must equal the input
    channels."""
    groups, w = layer.op.groups, layer.input(1).shape
    return groups >= 1 and w[0] % groups == 0 and groups * w[-1] == layer.input(0).shape[-1]


@dataclass(frozen=True)
class ConvTranspose(Weighted):
    """Output element o gets x[i] * w[k] for all i, k with o = i * stride + k * dilation - pad."""

    operands: ClassVar[tuple[Constraint, ...]] = (
        present(2),
        spatial_axes,
        *Weighted.operands,
        not_empty(0),
        numbers_from(1, "strides", "dilations", "outputs"),
        transposed_groups,
    )
    strides: tuple[int, ...] = (1, 1)
    dilations: tuple[int, ...] = (1, 1)
    pads: tuple[int, ...] = (0, 0)  # before each spatial axis
    outputs: tuple[int, ...] = (1, 1)  # spatial extents of the output
    groups: int = 1

    @property
    def channel_axis(self) -> int:
        return 0

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x, w = given(inputs, 0), given(inputs, 1)
        return (TensorType((x.shape[0], *self.outputs, w.shape[0]), x.dtype),)

    def accumulate(self, x: Array, weights: Array) -> Array:
        sizes, kernel = x.shape[1:-1], weights.shape[1:-1]
        full = [
            max((i - 1) * s + (k - 1) * d + 1, o + p)
            for i, s, k, d, o, p in zip(
                sizes, self.strides, kernel, self.dilations, self.outputs, self.pads, strict=True
            )
        ]
        outs, ins = weights.shape[0] // self.groups, weights.shape[-1]
        acc = np.zeros((x.shape[0], *full, weights.shape[0]), np.result_type(x, weights))
        for tap in np.ndindex(*kernel):
            spots = tuple(
                slice(k * d, k * d + (i - 1) * s + 1, s)
                for k, d, i, s in zip(tap, self.dilations, sizes, self.strides, strict=True)
            )
            for g in range(self.groups):
                own = slice(g * outs, (g + 1) * outs)
                filters, target = (own, *tap), (slice(None), *spots, own)
                acc[target] += x[..., g * ins : (g + 1) * ins] @ weights[filters].T
        middle = (slice(p, p + o) for p, o in zip(self.pads, self.outputs, strict=True))
        cut = (slice(None), *middle)
        return acc[cut]

    def macs(self, layer: Layer) -> int:
        w = layer.input(1)
        positions = layer.input(0).elements // layer.input(0).shape[-1]
        return positions * w.elements


def quantized_types(layer: Layer) -> bool:
    """Weights are int8, input and output are both int8 or both int16, and all are quantised."""
    x, w, y = layer.input(0), layer.input(1), layer.output
    alike = x.dtype is y.dtype and y.dtype in (DType.INT8, DType.INT16)
    return alike and all(t.quant is not None for t in (x, w, y)) and w.dtype is DType.INT8


def small_factors(layer: Layer[ConvTranspose]) -> bool:
    """The rescaling factor from accumulator to int16 output is below 2**14."""
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
    constraints = (quantized_types, constant_weights, one_weight_zero, small_factors)

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
    sources = ConvFloat.sources
    constraints = (float_tensors, constant_weights, plain_image, taps_for_all)

    def emit(self, layer: Layer[ConvTranspose], sheet: Sheet) -> None:
        emit_phases(layer, sheet, layer.op)


register_kernels(ConvTranspose, ConvTransposeQuantized(), ConvTransposeFloat(), ConvTransposeLoops())


quantizes("ConvTranspose", channel_axis=lambda node, rank: 1)


@onnx_op("ConvTranspose")
def read_onnx(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    x, w, bias = node.input(0), node.input(1), node.optional(2)
    rank = len(x.shape) - 2
    groups = int(node.attr("group", 1))
    kernel, sizes = w.shape[2:], x.shape[2:]
    strides = node.ints("strides", (1,) * rank)
    dilations = node.ints("dilations", (1,) * rank)
    extra = node.ints("output_padding", (0,) * rank)
    spans = [d * (k - 1) + 1 for k, d in zip(kernel, dilations, strict=True)]
    full = [s * (i - 1) + e + k for s, i, e, k in zip(strides, sizes, extra, spans, strict=True)]
    begins, outputs = _pads(node, rank, full, [i * s for i, s in zip(sizes, strides, strict=True)])
    # (in, out / groups, *kernel) -> (out, *kernel, in / groups)
    ins, outs = w.shape[0] // groups, w.shape[1]
    if x.shape[1] != w.shape[0]:
        raise ModelError(f"ConvTranspose node {node.name!r}: {x.shape[1]} channels, {w.shape[0]} in weights")
    w = build.add1(Reshape((groups, ins, outs, *kernel)), [w])
    w = build.add1(Transpose((0, 2, *range(3, 3 + rank), 1)), [w])
    w = build.add1(Reshape((groups * outs, *kernel, ins)), [w])
    if rank == 1:
        w = build.add1(Reshape((groups * outs, 1, *kernel, ins)), [w])
        strides, dilations = (1, *strides), (1, *dilations)
        begins, outputs = [0, *begins], [1, *outputs]
    op = ConvTranspose(strides, dilations, tuple(begins), tuple(outputs), groups)
    operands = [channels_last(build, x), w] if bias is None else [channels_last(build, x), w, bias]
    return [channels_first(build, build.add1(op, operands), rank)]


def _pads(node: OnnxNode, rank: int, full: Sequence[int], same: Sequence[int]) -> tuple[list[int], list[int]]:
    """Padding before each axis and the extents of the output; ``full`` are those without padding."""
    auto_pad = str(node.attr("auto_pad", "NOTSET"))
    wanted = node.ints("output_shape")[-rank:] if "output_shape" in node.attributes else ()
    if auto_pad in ("SAME_UPPER", "SAME_LOWER") and not wanted:
        wanted = tuple(same)
    if wanted:
        totals = [max(0, f - w) for f, w in zip(full, wanted, strict=True)]  # any excess is added at the end
        half = [t // 2 if auto_pad == "SAME_UPPER" else t - t // 2 for t in totals]
        return half, list(wanted)
    pads = list(node.ints("pads", (0,) * (2 * rank))) if auto_pad == "NOTSET" else [0] * (2 * rank)
    return pads[:rank], [f - pads[a] - pads[rank + a] for a, f in enumerate(full)]


@tflite_op("TRANSPOSE_CONV")
def read_tflite(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    from tflite import Padding

    x, options = node.input(2), node.options
    w = layer_weights(node, build, x, node.input(1))
    outputs = tuple(int(d) for d in node.const(0).reshape(-1)[1:3])
    strides = (options.StrideH(), options.StrideW())
    pads = (0, 0)
    if options.Padding() == Padding.SAME:
        sizes = zip(x.shape[1:3], strides, w.shape[1:3], outputs, strict=True)
        before = [max(0, (i - 1) * s + k - o) // 2 for i, s, k, o in sizes]
        pads = (before[0], before[1])
    single = x.dtype is DType.UINT8
    op = ConvTranspose(strides, (1, 1), pads, outputs, clamp=node.clamp, single_scales=single)
    return [build.add1(op, [x, w, layer_bias(build, x, node.optional(3))], node.outputs[0])]


@onnx_writer(ConvTranspose)
def write_onnx(op: ConvTranspose, layer: Layer, x: list[str], y: str, out: OnnxWriter) -> None:
    """ONNX has the number of elements that are cut off, or added, at the end of each axis, not the size."""
    shape, values = layer.input(0).shape, layer.input(1).value
    kernel, ins = values.shape[1:-1], values.shape[-1]
    apart = values.reshape(op.groups, -1, *kernel, ins)
    weights = np.moveaxis(apart, -1, 1).reshape(op.groups * ins, -1, *kernel)
    spare = [
        stride * (size - 1) + dilation * (taps - 1) + 1 - pad - wanted
        for stride, size, dilation, taps, pad, wanted in zip(
            op.strides, shape[1:-1], op.dilations, kernel, op.pads, op.outputs, strict=True
        )
    ]
    bias = [x[2]] if len(x) > 2 and x[2] else []
    out.spatial(x[0], y, len(shape), op.clamp, "ConvTranspose", [out.constant(weights, "weights"), *bias],
             strides=list(op.strides), dilations=list(op.dilations), group=op.groups,
             pads=[*op.pads, *(max(s, 0) for s in spare)],
             output_padding=[max(-s, 0) for s in spare])  # fmt: skip
