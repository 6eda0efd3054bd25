"""DepthwiseConv: every input channel has its own filters; weights (1, kernel_h, kernel_w, out)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tinyml import c
from tinyml.ir import Array, DType, Layer, Op, Tensor, TensorType, given
from tinyml.kernel import Kernel, Library, Sheet, register_kernels
from tinyml.ops._cmsis_conv import DEPTHWISE_KERNELS
from tinyml.ops._conv_loops import DepthwiseConvLoops
from tinyml.ops._conv_records import (
    constant_weights,
    float_record,
    float_tensors,
    int8_tensors,
    one_weight_zero,
    quantized_record,
    small_extents,
)
from tinyml.ops._int16_kernels import DepthwiseConvInt16
from tinyml.ops._quant import NO_CLAMP, Clamp, centred, integer_bias, is_quantized, requantize
from tinyml.ops._real import layer_weights
from tinyml.ops._window import (
    Pads,
    Pair,
    output_extent,
    tflite_pads,
    windows,
)
from tinyml.reading import Builder, TfliteNode, tflite_op
from tinyml.targets import Target


@dataclass(frozen=True)
class DepthwiseConv(Op):
    """Output channel c * multiplier + m is filter m of input channel c. Inputs: x, weights, optional bias."""

    strides: Pair = (1, 1)
    dilations: Pair = (1, 1)
    pads: Pads = (0, 0, 0, 0)
    clamp: Clamp = NO_CLAMP
    round_once: bool = False  # else twice, as TensorFlow Lite does

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x, w = given(inputs, 0), given(inputs, 1)
        n, height, width, _ = x.shape
        top, left, bottom, right = self.pads
        out_h = output_extent(height, w.shape[1], self.strides[0], self.dilations[0], top + bottom)
        out_w = output_extent(width, w.shape[2], self.strides[1], self.dilations[1], left + right)
        return (TensorType((n, out_h, out_w, w.shape[3]), x.dtype),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x, w = centred(layer, inputs, 0), centred(layer, inputs, 1, channel_axis=3)
        x = np.repeat(x, w.shape[3] // x.shape[3], axis=3)
        cols = windows(x, (w.shape[1], w.shape[2]), self.strides, self.dilations, self.pads, 0)
        acc = np.einsum("nhwklc,klc->nhwc", cols, w[0])
        if layer.has_input(2):
            acc = acc + inputs[2]
        if layer.input(0).quant is not None:
            return (requantize(acc, layer, self.clamp, once=self.round_once),)
        return (np.clip(acc, *self.clamp).astype(layer.output.dtype.numpy),)

    def macs(self, layer: Layer) -> int:
        _, kernel_h, kernel_w, _ = layer.input(1).shape
        return layer.output.elements * kernel_h * kernel_w

    def quantized(
        self, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]
    ) -> tuple[Op, Sequence[Tensor | None]] | None:
        bytes_only = all(is_quantized(t, DType.INT8, DType.UINT8) for t in (*inputs[:2], outputs[0]))
        return (replace(self, round_once=True), [*inputs[:2], *integer_bias(inputs)]) if bytes_only else None


def moderate_padding(layer: Layer) -> bool:
    """There is less padding before the input than the kernel spans."""
    op = layer.op
    assert isinstance(op, DepthwiseConv)
    kernel = layer.input(1).shape[1:3]
    return all(op.pads[i] <= op.dilations[i] * (kernel[i] - 1) for i in range(2))


class DepthwiseConvInt8(Kernel):
    """Integer depthwise convolution in portable C, through a ring of rows."""

    name = "tinyml_depthwise_conv_s8"
    library = Library.PORTABLE
    sources = ("depthwise_conv_s8.c",)
    constraints = (int8_tensors, constant_weights, one_weight_zero, small_extents, moderate_padding)

    def scratch_bytes(self, layer: Layer, target: Target) -> int:
        """The rows that the kernel spans, each with its padding."""
        op = layer.op
        assert isinstance(op, DepthwiseConv)
        _, kernel_h, kernel_w, _ = layer.input(1).shape
        _, _, in_w, channels = layer.input(0).shape
        reach = (kernel_w - 1) * op.dilations[1] + (layer.output.shape[2] - 1) * op.strides[1] + 1
        rows = (kernel_h - 1) * op.dilations[0] + 1
        return rows * max(reach, op.pads[1] + in_w) * channels

    def overwrites(self, layer: Layer) -> tuple[int, ...]:
        """The output may take over rows of the input that are in the ring already."""
        op, x, y = layer.op, layer.input(0), layer.output
        assert isinstance(op, DepthwiseConv)
        batches, in_h, in_w, in_c = x.shape
        _, out_h, out_w, out_c = y.shape
        span = (layer.input(1).shape[1] - 1) * op.dilations[0] + 1
        for row in range(out_h):
            rows_read = min(max(row * op.strides[0] - op.pads[0] + span, 0), in_h)
            if rows_read < in_h and (row + 1) * out_w * out_c > rows_read * in_w * in_c:
                return ()
        return (0,) if batches == 1 else ()

    def emit(self, layer: Layer, sheet: Sheet) -> None:
        op = layer.op
        assert isinstance(op, DepthwiseConv)
        filters = np.transpose(layer.input(1).value, (3, 0, 1, 2))
        sheet.include("<tinyml/conv.h>")
        members = quantized_record(layer, sheet, filters, op.strides, op.dilations, op.pads, op.clamp)
        members[".round_once"] = c.boolean(op.round_once)
        name = sheet.record("struct tinyml_conv_s8", "params", members)
        sheet.line(f"tinyml_depthwise_conv_s8(&{name}, {sheet.x()}, {sheet.y()}, {sheet.scratch});")


class DepthwiseConvFloat(Kernel):
    """Float depthwise convolution in portable C."""

    name = "tinyml_depthwise_conv_f32"
    library = Library.PORTABLE
    sources = ("depthwise_conv_f32.c",)
    constraints = (float_tensors, constant_weights, small_extents)

    def emit(self, layer: Layer, sheet: Sheet) -> None:
        op = layer.op
        assert isinstance(op, DepthwiseConv)
        sheet.include("<tinyml/conv.h>")
        members = float_record(layer, sheet, op.strides, op.dilations, op.pads, op.clamp)
        name = sheet.record("struct tinyml_conv_f32", "params", members)
        sheet.line(f"tinyml_depthwise_conv_f32(&{name}, {sheet.x()}, {sheet.y()});")


register_kernels(
    DepthwiseConv,
    *DEPTHWISE_KERNELS,
    DepthwiseConvInt8(),
    DepthwiseConvInt16(),
    DepthwiseConvFloat(),
    DepthwiseConvLoops(),
)


@tflite_op("DEPTHWISE_CONV_2D")
def read_tflite(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    from tflite import Padding

    x, options = node.input(0), node.options
    w = layer_weights(node, build, x, node.input(1))
    strides = (options.StrideH(), options.StrideW())
    dilations = (options.DilationHFactor(), options.DilationWFactor())
    same = options.Padding() == Padding.SAME
    pads = tflite_pads(same, (x.shape[1], x.shape[2]), (w.shape[1], w.shape[2]), strides, dilations)
    op = DepthwiseConv(strides, dilations, pads, node.clamp)
    return [build.add1(op, [x, w, node.optional(2)], node.outputs[0])]
