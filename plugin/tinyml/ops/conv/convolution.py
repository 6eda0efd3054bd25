# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What Conv and DepthwiseConv have in common: the window and the TFLite options."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, Constraint, DType, Layer, Op, Tensor, TensorType, given
from tinyml.ir.hook_types import Border, RowWindow, moved_along, padded_along
from tinyml.ops.framework.reading import Builder, TfliteNode
from tinyml.ops.framework.writing import OnnxWriter
from tinyml.ops.shared.operands import numbers_from, present
from tinyml.ops.shared.real import layer_bias, layer_weights
from tinyml.ops.shared.window import Pads, Pair, output_extent, tflite_pads, windows
from tinyml.ops.weighted.weighted import Weighted


def two_spatial_axes(layer: Layer[Convolution]) -> bool:
    """Input and weights have 4 axes."""
    return len(layer.input(0).shape) == len(layer.input(1).shape) == 4


def kernel_fits(layer: Layer[Convolution]) -> bool:
    """The kernel, with its dilation, is not larger than the input and its padding."""
    op = layer.op
    return all(
        op.dilations[i] * (layer.input(1).shape[1 + i] - 1)
        < layer.input(0).shape[1 + i] + op.pads[i] + op.pads[2 + i]
        for i in range(2)
    )


@dataclass(frozen=True)
class Convolution(Weighted):
    """The sums of x and weights over a window that slides over x, NHWC."""

    operands: ClassVar[tuple[Constraint, ...]] = (
        present(2),
        two_spatial_axes,
        *Weighted.operands,
        numbers_from(1, "strides", "dilations"),
        numbers_from(0, "pads"),
        kernel_fits,
    )
    has_integer_sums: ClassVar[bool] = True
    strides: Pair = (1, 1)
    dilations: Pair = (1, 1)
    pads: Pads = (0, 0, 0, 0)

    @abstractmethod
    def sums(self, columns: Array, weights: Array) -> Array:
        """Windows (n, out_h, out_w, kernel_h, kernel_w, in) times weights, channels last."""

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x, w = given(inputs, 0), given(inputs, 1)
        n, height, width, _ = x.shape
        top, left, bottom, right = self.pads
        out_h = output_extent(height, w.shape[1], self.strides[0], self.dilations[0], top + bottom)
        out_w = output_extent(width, w.shape[2], self.strides[1], self.dilations[1], left + right)
        return (TensorType((n, out_h, out_w, w.shape[self.channel_axis]), self.result_type(x)),)

    @property
    def reads_padding(self) -> bool:
        return any(self.pads)

    def bordered(self, x: Tensor, border: Border) -> Op | None:
        pads = border.added_to(self.pads)
        return None if pads is None else replace(self, pads=(pads[0], pads[1], pads[2], pads[3]))

    def row_window(self, layer: Layer, axis: int) -> RowWindow:
        rows, i = (layer.input(0).shape[axis], layer.output.shape[axis]), axis - 1
        kernel = layer.input(1).shape[axis]
        return RowWindow(kernel, self.strides[i], self.dilations[i], self.pads[i], *rows)

    def with_padding(self, axis: int, before: int, after: int) -> Op:
        return replace(self, pads=padded_along(axis, self.pads, before, after))

    def with_window(self, axis: int, window: RowWindow) -> Op | None:
        return replace(
            self,
            strides=moved_along(axis, self.strides, window.stride),
            dilations=moved_along(axis, self.dilations, window.dilation),
            pads=padded_along(axis, self.pads, window.pad_top, window.pad_bottom),
        )

    def at_one_position(self) -> Convolution:
        return replace(self, strides=(1, 1), dilations=(1, 1), pads=(0, 0, 0, 0))

    def accumulate(self, x: Array, weights: Array) -> Array:
        kernel = (weights.shape[1], weights.shape[2])
        return self.sums(windows(x, kernel, self.strides, self.dilations, self.pads, 0), weights)


def read_tflite(node: TfliteNode, build: Builder, op: Convolution) -> Sequence[Tensor]:
    """CONV_2D and DEPTHWISE_CONV_2D, which describe their window in the same way."""
    from tflite import Padding

    x, options = node.input(0), node.options
    w = layer_weights(node, build, x, node.input(1))
    strides = (options.StrideH(), options.StrideW())
    dilations = (options.DilationHFactor(), options.DilationWFactor())
    same = options.Padding() == Padding.SAME
    pads = tflite_pads(same, (x.shape[1], x.shape[2]), (w.shape[1], w.shape[2]), strides, dilations)
    single = x.dtype is DType.UINT8
    op = replace(op, strides=strides, dilations=dilations, pads=pads, clamp=node.clamp, single_scales=single)
    return [build.add1(op, [x, w, layer_bias(build, x, node.optional(2))], node.outputs[0])]


def write_convolution(
    op: Convolution, groups: int, weights: str, x: list[str], y: str, out: OnnxWriter
) -> None:
    """As ONNX, with weights in the order that ONNX has."""
    bias = [x[2]] if len(x) > 2 and x[2] else []
    operands = [weights, *bias]
    out.spatial(x[0], y, 4, op.clamp, "Conv", operands, strides=list(op.strides),
                dilations=list(op.dilations), pads=list(op.pads), group=groups)  # fmt: skip
