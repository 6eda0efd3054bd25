"""MaxPool: the largest element of each window, NHWC. Works on stored integers as on floats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tinyml import c
from tinyml.ir import Array, DType, Layer, Op, Tensor, TensorType, given
from tinyml.kernel import Kernel, Sheet, register_kernels
from tinyml.ops._layout import channels_first, channels_last
from tinyml.ops._quant import NO_CLAMP, Clamp, clamp_range
from tinyml.ops._window import Pads, Pair, onnx_window, output_extent, tflite_pads, windows
from tinyml.reading import Builder, OnnxNode, TfliteNode, onnx_op, tflite_op


@dataclass(frozen=True)
class MaxPool(Op):
    """Elements outside the input never win."""

    kernel: Pair = (1, 1)
    strides: Pair = (1, 1)
    dilations: Pair = (1, 1)
    pads: Pads = (0, 0, 0, 0)
    clamp: Clamp = NO_CLAMP

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x = given(inputs, 0)
        top, left, bottom, right = self.pads
        out_h = output_extent(x.shape[1], self.kernel[0], self.strides[0], self.dilations[0], top + bottom)
        out_w = output_extent(x.shape[2], self.kernel[1], self.strides[1], self.dilations[1], left + right)
        return (TensorType((x.shape[0], out_h, out_w, x.shape[3]), x.dtype, x.quant),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x = given(inputs, 0)
        lowest = lowest_value(layer.input(0).dtype)
        found = windows(x, self.kernel, self.strides, self.dilations, self.pads, lowest)
        largest = found.max(axis=(3, 4), initial=lowest)
        return (np.clip(largest, *stored_limits(self.clamp, layer.output)).astype(x.dtype),)

    def quantized(
        self, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]
    ) -> tuple[Op, Sequence[Tensor | None]] | None:
        x, y = inputs[0], outputs[0]
        same = x is not None and x.quant == y.quant and x.dtype is y.dtype
        return (self, inputs) if same else None


def lowest_value(dtype: DType) -> float:
    return -np.inf if dtype.is_float else dtype.limits[0]


def stored_limits(clamp: Clamp, tensor: Tensor) -> tuple[float, float]:
    """Real limits as limits on what is stored."""
    return clamp_range(clamp, tensor) if tensor.quant is not None else clamp


class MaxPoolLoops(Kernel):
    """Seven loops; the window is cut at the borders of the input."""

    name = "max-pool loops"

    def emit(self, layer: Layer, sheet: Sheet) -> None:
        op, x, y = layer.op, layer.input(0), layer.output
        assert isinstance(op, MaxPool)
        dtype = x.dtype
        n, out_h, out_w, channels = y.shape
        _, in_h, in_w, _ = x.shape
        low, high = stored_limits(op.clamp, y)
        if dtype.is_float:
            sheet.include("<math.h>")
        start = max(low, lowest_value(dtype))
        with (
            sheet.block(f"for (int32_t o = 0; o < {n * out_h * out_w}; o++) {{"),
        ):
            sheet.line(f"const int32_t row = o / {out_w} % {out_h} * {op.strides[0]} - {op.pads[0]};")
            sheet.line(f"const int32_t col = o % {out_w} * {op.strides[1]} - {op.pads[1]};")
            batch = f"o / {out_h * out_w} * {in_h * in_w}" if n > 1 else ""
            with sheet.block(f"for (int32_t c = 0; c < {channels}; c++) {{"):
                sheet.line(f"{dtype.c} best = {c.number(start, dtype.numpy)};")
                with sheet.block(f"for (int32_t k = 0; k < {op.kernel[0] * op.kernel[1]}; k++) {{"):
                    sheet.line(f"const int32_t i = row + k / {op.kernel[1]} * {op.dilations[0]};")
                    sheet.line(f"const int32_t j = col + k % {op.kernel[1]} * {op.dilations[1]};")
                    with sheet.block(f"if (i >= 0 && i < {in_h} && j >= 0 && j < {in_w}) {{"):
                        place = f"i * {in_w} + j" if not batch else f"{batch} + i * {in_w} + j"
                        sheet.line(f"const {dtype.c} v = {sheet.x()}[({place}) * {channels} + c];")
                        sheet.line("best = v > best ? v : best;")
                bounded = np.isfinite(high) and (dtype.is_float or high < dtype.limits[1])
                top = c.number(high, dtype.numpy) if bounded else ""
                value = f"best > {top} ? {top} : best" if top else "best"
                sheet.line(f"{sheet.y()}[o * {channels} + c] = {value};")


register_kernels(MaxPool, MaxPoolLoops())


@onnx_op("MaxPool")
def read_onnx(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    x = node.input(0)
    window = onnx_window(node, x.shape[2:], node.ints("kernel_shape"))
    spatial = len(x.shape) - 2
    y = build.add1(
        MaxPool(window.kernel, window.strides, window.dilations, window.pads), [channels_last(build, x)]
    )
    return [channels_first(build, y, spatial)]


@tflite_op("MAX_POOL_2D")
def read_tflite(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    from tflite import Padding

    x, options = node.input(0), node.options
    kernel = (options.FilterHeight(), options.FilterWidth())
    strides = (options.StrideH(), options.StrideW())
    pads = tflite_pads(options.Padding() == Padding.SAME, (x.shape[1], x.shape[2]), kernel, strides)
    return [build.add1(MaxPool(kernel, strides, (1, 1), pads, node.clamp), [x], node.outputs[0])]
