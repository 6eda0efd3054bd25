# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""TFLite's convolutions with three spatial axes: filters are (depth, height, width, in, out)."""

from __future__ import annotations

from collections.abc import Sequence

from tinyml.ir import Tensor
from tinyml.ops.conv.conv import Conv
from tinyml.ops.conv.depth_windows import DepthWindows
from tinyml.ops.conv.transposed import ConvTranspose
from tinyml.ops.conv.volumes import image_filters, images_of, volume_of
from tinyml.ops.framework.reading import Builder, TfliteNode, tflite_op
from tinyml.ops.shared.real import layer_bias, layer_weights
from tinyml.ops.shared.window import same_pads
from tinyml.ops.transpose import Transpose


def _steps(node: TfliteNode) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Strides and dilations along depth, height and width."""
    options = node.options
    strides = (options.StrideD(), options.StrideH(), options.StrideW())
    return strides, (options.DilationDFactor(), options.DilationHFactor(), options.DilationWFactor())


def _same(node: TfliteNode) -> bool:
    from tflite import Padding

    return bool(node.options.Padding() == Padding.SAME)


@tflite_op("CONV_3D")
def read_conv(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    x = node.input(0)
    w = build.add1(Transpose((4, 0, 1, 2, 3)), [layer_weights(node, build, x, node.input(1))])
    strides, dilations = _steps(node)
    axes = zip(x.shape[1:4], w.shape[1:4], strides, dilations, strict=True)
    pads = [same_pads(*axis) if _same(node) else (0, 0) for axis in axes]
    windows = DepthWindows(w.shape[1], strides[0], dilations[0], pads[0])
    border = (pads[1][0], pads[2][0], pads[1][1], pads[2][1])
    op = Conv((strides[1], strides[2]), (dilations[1], dilations[2]), border, clamp=node.clamp)
    images = [images_of(build, x, windows), image_filters(build, w)]
    y = build.add1(op, [*images, layer_bias(build, x, node.optional(2))])
    return [volume_of(build, y, x.shape[0])]


@tflite_op("CONV_3D_TRANSPOSE")
def read_transposed(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    x = node.input(2)
    w = build.add1(Transpose((3, 0, 1, 2, 4)), [layer_weights(node, build, x, node.input(1))])
    outputs = tuple(int(d) for d in node.const(0).reshape(-1)[1:4])
    strides, dilations = _steps(node)
    axes = zip(outputs, w.shape[1:4], strides, dilations, strict=True)
    pads = tuple(same_pads(*axis)[0] if _same(node) else 0 for axis in axes)
    op = ConvTranspose(strides, dilations, pads, outputs, clamp=node.clamp)
    return [build.add1(op, [x, w, layer_bias(build, x, node.optional(3))], node.outputs[0])]
