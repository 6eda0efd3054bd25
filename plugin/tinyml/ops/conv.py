"""Conv: two-dimensional convolution, NHWC, weights (out, kernel_h, kernel_w, in / groups)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tinyml import c
from tinyml.ir import Array, DType, Layer, Op, Tensor, TensorType, given
from tinyml.kernel import Kernel, Library, Sheet, register_kernels
from tinyml.ops._byte_weights import ConvByteWeights
from tinyml.ops._cmsis_conv import CONV_KERNELS, pointwise
from tinyml.ops._conv_loops import ConvLoops
from tinyml.ops._conv_records import (
    constant_weights,
    float_record,
    float_tensors,
    int8_tensors,
    one_weight_zero,
    quantized_record,
    small_extents,
)
from tinyml.ops._int16_kernels import ConvInt16
from tinyml.ops._layout import channels_first, channels_last, depthwise_weights
from tinyml.ops._quant import NO_CLAMP, Clamp, centred, integer_bias, is_quantized, requantize
from tinyml.ops._real import layer_weights
from tinyml.ops._window import (
    Pads,
    Pair,
    onnx_window,
    output_extent,
    tflite_pads,
    windows,
)
from tinyml.ops.depthwise_conv import DepthwiseConv
from tinyml.reading import Builder, OnnxNode, TfliteNode, onnx_op, tflite_op
from tinyml.targets import Target


@dataclass(frozen=True)
class Conv(Op):
    """y = clamp(conv(x, weights) + bias). Inputs: x, weights, optional bias."""

    strides: Pair = (1, 1)
    dilations: Pair = (1, 1)
    pads: Pads = (0, 0, 0, 0)
    groups: int = 1
    clamp: Clamp = NO_CLAMP
    round_once: bool = False  # else twice, as TensorFlow Lite does

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x, w = given(inputs, 0), given(inputs, 1)
        n, height, width, _ = x.shape
        top, left, bottom, right = self.pads
        out_h = output_extent(height, w.shape[1], self.strides[0], self.dilations[0], top + bottom)
        out_w = output_extent(width, w.shape[2], self.strides[1], self.dilations[1], left + right)
        return (TensorType((n, out_h, out_w, w.shape[0]), x.dtype),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x, w = centred(layer, inputs, 0), centred(layer, inputs, 1, channel_axis=0)
        cols = windows(x, (w.shape[1], w.shape[2]), self.strides, self.dilations, self.pads, 0)
        outs, ins = w.shape[0] // self.groups, x.shape[3] // self.groups
        parts = []
        for g in range(self.groups):
            columns = cols[..., g * ins : (g + 1) * ins]
            filters = w[g * outs : (g + 1) * outs].reshape(outs, -1)
            parts.append(columns.reshape(*cols.shape[:3], -1) @ filters.T)
        acc = np.concatenate(parts, axis=-1)
        if layer.has_input(2):
            acc = acc + inputs[2]
        if layer.input(0).quant is not None:
            return (requantize(acc, layer, self.clamp, once=self.round_once),)
        return (np.clip(acc, *self.clamp).astype(layer.output.dtype.numpy),)

    def macs(self, layer: Layer) -> int:
        return layer.output.elements * int(np.prod(layer.input(1).shape[1:]))

    def quantized(
        self, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]
    ) -> tuple[Op, Sequence[Tensor | None]] | None:
        bytes_only = all(is_quantized(t, DType.INT8, DType.UINT8) for t in (*inputs[:2], outputs[0]))
        return (replace(self, round_once=True), [*inputs[:2], *integer_bias(inputs)]) if bytes_only else None


class ConvInt8(Kernel):
    """Integer convolution in portable C; takes any groups, dilations and weight zero point."""

    name = "tinyml_conv_s8"
    library = Library.PORTABLE
    sources = ("conv_s8.c",)
    constraints = (int8_tensors, constant_weights, one_weight_zero, small_extents)

    def scratch_bytes(self, layer: Layer, target: Target) -> int:
        """Two columns; cores with DSP instructions want them as int16 too."""
        column = -(-int(np.prod(layer.input(1).shape[1:])) // 4) * 4
        return (2 + 4 if target.dsp else 2) * column

    def overwrites(self, layer: Layer) -> tuple[int, ...]:
        """A 1x1 convolution reads every position before it writes there, the last first if it widens."""
        op = layer.op
        assert isinstance(op, Conv)
        return (0,) if pointwise(layer) and op.strides == (1, 1) else ()

    def emit(self, layer: Layer, sheet: Sheet) -> None:
        op = layer.op
        assert isinstance(op, Conv)
        filters = layer.input(1).value
        record = quantized_record(layer, sheet, filters, op.strides, op.dilations, op.pads, op.clamp)
        sheet.include("<tinyml/conv.h>")
        widens = pointwise(layer) and layer.output.shape[3] > layer.input(0).shape[3]
        members = {
            **record,
            ".groups": op.groups,
            ".from_the_end": c.boolean(widens),
            ".round_once": c.boolean(op.round_once),
        }
        name = sheet.record("struct tinyml_conv_s8", "params", members)
        sheet.line(f"tinyml_conv_s8(&{name}, {sheet.x()}, {sheet.y()}, {sheet.scratch});")


class ConvFloat(Kernel):
    """Float convolution in portable C."""

    name = "tinyml_conv_f32"
    library = Library.PORTABLE
    sources = ("conv_f32.c",)
    constraints = (float_tensors, constant_weights, small_extents)

    def emit(self, layer: Layer, sheet: Sheet) -> None:
        op = layer.op
        assert isinstance(op, Conv)
        record = float_record(layer, sheet, op.strides, op.dilations, op.pads, op.clamp)
        sheet.include("<tinyml/conv.h>")
        members = {**record, ".groups": op.groups}
        name = sheet.record("struct tinyml_conv_f32", "params", members)
        sheet.line(f"tinyml_conv_f32(&{name}, {sheet.x()}, {sheet.y()});")


register_kernels(Conv, *CONV_KERNELS, ConvInt8(), ConvInt16(), ConvByteWeights(), ConvFloat(), ConvLoops())


@onnx_op("Conv")
def read_onnx(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    return [read_conv(node, build, node.input(0), node.input(1), node.optional(2))]


def read_conv(
    node: OnnxNode,
    build: Builder,
    x: Tensor,
    w: Tensor,
    bias: Tensor | None,
    output: TensorType | None = None,
) -> Tensor:
    """An ONNX convolution (NCHW or NCL) as the NHWC operator between two transposes."""
    spatial = len(x.shape) - 2
    groups = int(node.attr("group", 1))
    window = onnx_window(node, x.shape[2:], w.shape[2:])
    depthwise = 1 < groups == x.shape[1]
    x = channels_last(build, x)
    op: Op
    if depthwise:
        w = depthwise_weights(build, w)
        op = DepthwiseConv(window.strides, window.dilations, window.pads)
    else:
        w = channels_last(build, w)
        op = Conv(window.strides, window.dilations, window.pads, groups)
    y = build.add1(op, [x, w] if bias is None else [x, w, bias], output)
    return channels_first(build, y, spatial)


@tflite_op("CONV_2D")
def read_tflite(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    from tflite import Padding

    x, options = node.input(0), node.options
    w = layer_weights(node, build, x, node.input(1))
    strides = (options.StrideH(), options.StrideW())
    dilations = (options.DilationHFactor(), options.DilationWFactor())
    same = options.Padding() == Padding.SAME
    pads = tflite_pads(same, (x.shape[1], x.shape[2]), (w.shape[1], w.shape[2]), strides, dilations)
    op = Conv(strides, dilations, pads, x.shape[3] // w.shape[3], node.clamp)
    return [build.add1(op, [x, w, node.optional(2)], node.outputs[0])]
