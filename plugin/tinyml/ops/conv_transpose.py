"""ConvTranspose: every input element spreads a filter over the output. Channels last, any rank.

Weights are (out, *kernel, in / groups), like those of Conv.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tinyml import c
from tinyml.errors import ModelError
from tinyml.ir import Array, Layer, Op, Shape, Tensor, TensorType, given
from tinyml.kernel import Kernel, Sheet, register_kernels
from tinyml.ops._conv_loops import one_plain_type
from tinyml.ops._layout import channels_first, channels_last
from tinyml.ops._pool import flat_index, nested
from tinyml.ops._quant import NO_CLAMP, Clamp
from tinyml.ops.reshape import Reshape
from tinyml.ops.transpose import Transpose
from tinyml.reading import Builder, OnnxNode, onnx_op


@dataclass(frozen=True)
class ConvTranspose(Op):
    """Output element o gets x[i] * w[k] for all i, k with o = i * stride + k * dilation - pad."""

    strides: tuple[int, ...] = (1, 1)
    dilations: tuple[int, ...] = (1, 1)
    pads: tuple[int, ...] = (0, 0)  # before each spatial axis
    outputs: tuple[int, ...] = (1, 1)  # spatial extents of the output
    groups: int = 1
    clamp: Clamp = NO_CLAMP

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x, w = given(inputs, 0), given(inputs, 1)
        return (TensorType((x.shape[0], *self.outputs, w.shape[0]), x.dtype),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        acc = self.accumulate(given(inputs, 0), given(inputs, 1))
        if layer.has_input(2):
            acc = acc + inputs[2]
        return (np.clip(acc, *self.clamp).astype(layer.output.dtype.numpy),)

    def accumulate(self, x: Array, w: Array) -> Array:
        """The sums before bias and clamp."""
        sizes, kernel = x.shape[1:-1], w.shape[1:-1]
        full = [
            max((i - 1) * s + (k - 1) * d + 1, o + p)
            for i, s, k, d, o, p in zip(
                sizes, self.strides, kernel, self.dilations, self.outputs, self.pads, strict=True
            )
        ]
        outs, ins = w.shape[0] // self.groups, w.shape[-1]
        acc = np.zeros((x.shape[0], *full, w.shape[0]), np.result_type(x, w))
        for tap in np.ndindex(*kernel):
            spots = tuple(
                slice(k * d, k * d + (i - 1) * s + 1, s)
                for k, d, i, s in zip(tap, self.dilations, sizes, self.strides, strict=True)
            )
            for g in range(self.groups):
                part = x[..., g * ins : (g + 1) * ins] @ w[(slice(g * outs, (g + 1) * outs), *tap)].T
                acc[(slice(None), *spots, slice(g * outs, (g + 1) * outs))] += part
        cut = tuple(slice(p, p + o) for p, o in zip(self.pads, self.outputs, strict=True))
        return acc[(slice(None), *cut)]

    def macs(self, layer: Layer) -> int:
        w = layer.input(1)
        positions = layer.input(0).elements // layer.input(0).shape[-1]
        return positions * w.elements


class ConvTransposeLoops(Kernel):
    """Loops over the output; a tap counts where it meets an input element."""

    name = "transposed convolution loops"
    constraints = (one_plain_type,)

    def emit(self, layer: Layer, sheet: Sheet) -> None:
        op, x, w, y = layer.op, layer.input(0), layer.input(1), layer.output
        assert isinstance(op, ConvTranspose)
        rank = len(op.strides)
        ins, outs = w.shape[-1], w.shape[0] // op.groups
        names = ["n", *(f"o{a}" for a in range(rank)), "c"]
        channel = "c" if y.shape[-1] > 1 else "0"
        with nested(sheet, list(zip(names, y.shape, strict=True))):
            start = f"{sheet.x(2)}[{channel}]" if layer.has_input(2) else c.number(0, y.dtype.numpy)
            sheet.line(f"{y.dtype.c} sum = {start};")
            sheet.line()
            opened = self._taps(op, sheet, x.shape, y.shape, w.shape)
            inner = "j" if ins > 1 else "0"
            source = inner
            if op.groups > 1:
                group = f"{channel} / {outs}" if outs > 1 else channel
                source = group if ins == 1 else f"{group} * {ins} + j"
            at = flat_index(["n", *(f"i{a}" for a in range(rank)), source], x.shape)
            by = flat_index([channel, *(f"k{a}" for a in range(rank)), inner], w.shape)
            with nested(sheet, [("j", ins)]):
                sheet.line(f"sum += {sheet.x(0)}[{at}] * {sheet.x(1)}[{by}];")
            for _ in range(opened):
                sheet.depth -= 1
                sheet.line("}")
            for bound, sign in zip(op.clamp, "<>", strict=True):
                if np.isfinite(bound):
                    limit = c.number(bound, y.dtype.numpy)
                    sheet.line(f"sum = sum {sign} {limit} ? {limit} : sum;")
            sheet.line(f"{sheet.y()}[{flat_index(names, y.shape)}] = sum;")

    def _taps(self, op: ConvTranspose, sheet: Sheet, x: Shape, y: Shape, w: Shape) -> int:
        """Open the loops over the kernel; ``i0``, ``i1``, … are the input elements that a tap meets."""
        for a, stride in enumerate(op.strides):
            sheet.line(f"for (int32_t k{a} = 0; k{a} < {w[1 + a]}; k{a}++) {{")
            sheet.depth += 1
            place = f"o{a}" if y[1 + a] > 1 else "0"
            place += f" + {op.pads[a]}" if op.pads[a] else ""
            back = f"k{a}" if op.dilations[a] == 1 else f"k{a} * {op.dilations[a]}"
            sheet.line(f"const int32_t s{a} = {place} - {back};")
            sheet.line(f"const int32_t i{a} = s{a} / {stride};")
            sheet.line()
            aligned = f"s{a} % {stride} != 0 || " if stride > 1 else ""
            with sheet.block(f"if (s{a} < 0 || {aligned}i{a} >= {x[1 + a]}) {{"):
                sheet.line("continue;")
        return len(op.strides)


register_kernels(ConvTranspose, ConvTransposeLoops())


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


def _pads(
    node: OnnxNode, rank: int, full: Sequence[int], same: Sequence[int]
) -> tuple[list[int], list[int]]:
    """Padding before each axis and the extents of the output; ``full`` are those without padding."""
    auto_pad = str(node.attr("auto_pad", "NOTSET"))
    wanted = node.ints("output_shape")[-rank:] if "output_shape" in node.attributes else ()
    if auto_pad in ("SAME_UPPER", "SAME_LOWER") and not wanted:
        wanted = tuple(same)
    if wanted:
        totals = [max(0, f - w) for f, w in zip(full, wanted, strict=True)]  # more than full is added behind
        half = [t // 2 if auto_pad == "SAME_UPPER" else t - t // 2 for t in totals]
        return half, list(wanted)
    pads = list(node.ints("pads", (0,) * (2 * rank))) if auto_pad == "NOTSET" else [0] * (2 * rank)
    return pads[:rank], [f - pads[a] - pads[rank + a] for a, f in enumerate(full)]
