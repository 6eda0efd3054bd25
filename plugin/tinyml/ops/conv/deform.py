# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""DeformConv: a convolution whose taps are shifted by offsets known at run time. Channels first."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.base.errors import UnsupportedError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Layer, Op, Tensor, TensorType, given
from tinyml.ops.framework.kernel import Kernel, Library, Sheet, register_kernels
from tinyml.ops.framework.reading import Builder, OnnxNode, onnx_op
from tinyml.ops.shared.operands import extents, not_empty, numbers_from, of_rank, optional, present

Pair = tuple[int, int]


def offsets_fit(layer: Layer[DeformConv]) -> bool:
    """Weights, offsets, bias and mask have the shapes that input, kernel and groups ask for."""
    op, x, w, offset = layer.op, layer.input(0), layer.input(1), layer.input(2)
    if min(op.groups, op.offset_groups) < 1 or w.shape[0] % op.groups or x.shape[1] % op.offset_groups:
        return False
    taps = w.shape[2] * w.shape[3] * op.offset_groups
    places = (offset.shape[2], offset.shape[3])
    return (
        w.shape[1] * op.groups == x.shape[1]
        and offset.shape[:2] == (x.shape[0], 2 * taps)
        and extents(optional(layer, 3), (w.shape[0],))
        and extents(optional(layer, 4), (x.shape[0], taps, *places))
    )


@dataclass(frozen=True)
class DeformConv(Op):
    """Inputs: x (n, c, h, w), weights, offsets (n, 2 * taps * groups, h, w), bias, mask."""

    operands = (
        present(3),
        of_rank(0, 4),
        of_rank(1, 4),
        of_rank(2, 4),
        not_empty(1),
        numbers_from(1, "strides", "dilations"),
        offsets_fit,
    )
    strides: Pair = (1, 1)
    dilations: Pair = (1, 1)
    pads: Pair = (0, 0)  # top, left
    groups: int = 1
    offset_groups: int = 1

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x, w, offset = (given(inputs, i) for i in range(3))
        return (TensorType((x.shape[0], w.shape[0], *offset.shape[2:]), x.dtype),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x, w, offset = (given(inputs, i) for i in range(3))
        bias = inputs[3] if len(inputs) > 3 else None
        mask = inputs[4] if len(inputs) > 4 else None
        n, channels = x.shape[:2]
        out_c, _, kernel_h, kernel_w = w.shape
        out_h, out_w = offset.shape[2:]
        taps, each = kernel_h * kernel_w, channels // self.offset_groups
        moves = offset.reshape(n, self.offset_groups, taps, 2, out_h, out_w)
        rows = np.arange(out_h)[:, None] * self.strides[0] - self.pads[0]
        cols = np.arange(out_w)[None, :] * self.strides[1] - self.pads[1]
        samples = np.zeros((n, channels, taps, out_h, out_w), np.float64)
        for b, ch, k in np.ndindex(n, channels, taps):
            move = moves[b, ch // each, k]
            v = rows + k // kernel_w * self.dilations[0] + move[0]
            u = cols + k % kernel_w * self.dilations[1] + move[1]
            samples[b, ch, k] = _between(x[b, ch], v, u)
        if mask is not None:
            factors = mask.reshape(n, self.offset_groups, 1, taps, out_h, out_w)
            shape = (n, self.offset_groups, each, taps, out_h, out_w)
            samples = (samples.reshape(shape) * factors).reshape(samples.shape)
        parts = []
        ins, outs = channels // self.groups, out_c // self.groups
        for g in range(self.groups):
            filters = w[g * outs : (g + 1) * outs].reshape(outs, ins, taps)
            parts.append(np.einsum("nckhw,ock->nohw", samples[:, g * ins : (g + 1) * ins], filters))
        y = np.concatenate(parts, axis=1)
        y = y if bias is None else y + bias.reshape(1, -1, 1, 1)
        return (y.astype(layer.output.dtype.numpy),)

    def macs(self, layer: Layer) -> int:
        return layer.output.elements * int(np.prod(layer.input(1).shape[1:]))


def _between(plane: Array, v: Array, u: Array) -> Array:
    """Bilinear samples; zero outside."""
    height, width = plane.shape
    i, j = np.floor(v).astype(np.int64), np.floor(u).astype(np.int64)
    total = np.zeros(v.shape, np.float64)
    for di, dj in np.ndindex(2, 2):
        row, col = i + di, j + dj
        inside = (row >= 0) & (row < height) & (col >= 0) & (col < width)
        weight = np.abs(1 - di - (v - i)) * np.abs(1 - dj - (u - j))
        total += np.where(inside, plane[row.clip(0, height - 1), col.clip(0, width - 1)] * weight, 0)
    return total


def single_precision(layer: Layer) -> bool:
    """All tensors are float32."""
    return all(t is None or t.dtype is DType.FLOAT32 for t in layer.inputs)


class DeformConvFloat(Kernel[DeformConv]):
    """Bilinear samples times weights."""

    name = "tinyml_deform_conv_f32"
    library = Library.PORTABLE
    sources = ("conv/deform_conv_f32.c",)
    constraints = (single_precision,)

    def emit(self, layer: Layer[DeformConv], sheet: Sheet) -> None:
        op, x, w, y = layer.op, layer.input(0), layer.input(1), layer.output
        sheet.include("<stddef.h>")
        sheet.include("<tinyml/sample.h>")
        names = ("in_c", "in_h", "in_w"), ("out_c", "out_h", "out_w")
        members: dict[str, object] = {".batches": x.shape[0]}
        for words, tensor in zip(names, (x, y), strict=True):
            members |= {f".{word}": extent for word, extent in zip(words, tensor.shape[1:], strict=True)}
        members |= {".kernel_h": w.shape[2], ".kernel_w": w.shape[3]}
        members |= {".stride_h": op.strides[0], ".stride_w": op.strides[1]}
        members |= {".dilation_h": op.dilations[0], ".dilation_w": op.dilations[1]}
        members |= {".pad_top": op.pads[0], ".pad_left": op.pads[1]}
        members |= {".groups": op.groups, ".offset_groups": op.offset_groups}
        record = sheet.record("struct tinyml_deform_conv", "params", members)
        operands = [sheet.x(i) if layer.has_input(i) else "NULL" for i in range(5)]
        sheet.line(f"tinyml_deform_conv_f32(&{record}, {', '.join(operands)}, {sheet.y()});")


register_kernels(DeformConv, DeformConvFloat())


@onnx_op("DeformConv")
def read_onnx(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    if len(node.input(0).shape) != 4:
        raise UnsupportedError(
            f"DeformConv node {node.name!r} has {len(node.input(0).shape) - 2} spatial axes", "use two"
        )
    strides, dilations = node.ints("strides", (1, 1)), node.ints("dilations", (1, 1))
    pads = node.ints("pads", (0, 0, 0, 0))
    op = DeformConv(
        (strides[0], strides[1]),
        (dilations[0], dilations[1]),
        (pads[0], pads[1]),
        int(node.attr("group", 1)),
        int(node.attr("offset_group", 1)),
    )
    operands = [node.input(0), node.input(1), node.input(2), node.optional(3), node.optional(4)]
    while operands[-1] is None:
        operands.pop()
    return [build.add1(op, operands)]
