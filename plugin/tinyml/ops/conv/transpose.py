# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""ConvTranspose: its kernels in order of preference, its readers and its writer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.base.errors import ModelError, UnsupportedError
from tinyml.ir import DType, Layer, Tensor
from tinyml.ops.conv import transpose_int16 as int16
from tinyml.ops.conv import transpose_integer as integer
from tinyml.ops.conv import transpose_kernels as kernels
from tinyml.ops.conv.transposed import ConvTranspose as ConvTranspose
from tinyml.ops.framework.kernel import register_kernels
from tinyml.ops.framework.quantization_facts import quantizes
from tinyml.ops.framework.reading import Builder, OnnxNode, TfliteNode, onnx_op, tflite_op
from tinyml.ops.framework.writing import OnnxWriter, onnx_writer
from tinyml.ops.reshape import Reshape
from tinyml.ops.shared.axis_order import channels_first, channels_last
from tinyml.ops.shared.real import layer_bias, layer_weights
from tinyml.ops.transpose import Transpose

register_kernels(
    ConvTranspose,
    integer.ConvTransposeNibblesDsp(),
    integer.ConvTransposeNibblesHalves(),
    integer.ConvTransposeNibbles(),
    integer.ConvTransposeHelium(),
    integer.ConvTransposePairs(),
    integer.ConvTransposeDsp(),
    integer.ConvTransposeHalves(),
    integer.ConvTransposeWide(),
    integer.ConvTransposeInt8(),
    int16.ConvTransposeInt16Helium(),
    int16.ConvTransposeInt16Dsp(),
    int16.ConvTransposeInt16(),
    kernels.ConvTransposeQuantized(),
    kernels.ConvTransposeFloat16(),
    kernels.ConvTransposeFloat(),
    kernels.ConvTransposeLoops(),
)


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
    if not layer.input(1).is_constant:
        raise UnsupportedError("a transposed convolution with computed weights cannot be quantised")
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
