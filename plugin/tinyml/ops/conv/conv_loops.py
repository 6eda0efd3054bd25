# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Convolutions as generated loops: slow, but they support computed weights and any element type."""

from __future__ import annotations

import numpy as np

from tinyml.ir import Layer
from tinyml.ops.conv.convolution import Convolution
from tinyml.ops.framework.kernel import Kernel, Overlay, Sheet
from tinyml.ops.pool.windows import PoolLoops, Window, flat_index
from tinyml.ops.shared.overlay import forwards


def one_plain_type(layer: Layer) -> bool:
    """Input, weights, bias and output have one element type and are not quantised."""
    tensors = [t for t in (*layer.inputs, layer.output) if t is not None]
    return all(t.dtype is layer.output.dtype and t.quant is None for t in tensors)


class ConvLoops(Kernel[Convolution]):
    """Output channels are the first axis of the weights, the input channels of a group the last."""

    name = "convolution loops"
    constraints = (one_plain_type,)

    def overlays(self, layer: Layer[Convolution]) -> tuple[Overlay, ...]:
        return forwards(layer, copied=False)

    def emit(self, layer: Layer[Convolution], sheet: Sheet) -> None:
        op, y, w = layer.op, layer.output, layer.input(1)
        sizes = w.shape[1:-1]
        window = Window(tuple(sizes), op.strides, op.dilations, op.pads)
        zero = sheet.number(0, y.dtype)
        loops = PoolLoops(layer, sheet, window)
        with loops.outputs() as out:
            channel = "c" if y.shape[-1] > 1 else "0"
            start = f"{sheet.x(2)}[{channel}]" if layer.has_input(2) else zero
            sheet.line(f"{y.dtype.c} sum = {start};")
            sheet.line()
            self.products(layer, sheet, loops, channel)
            for bound, sign in zip(op.clamp, "<>", strict=True):
                if np.isfinite(bound):
                    limit = sheet.number(bound, y.dtype)
                    sheet.line(f"sum = sum {sign} {limit} ? {limit} : sum;")
            sheet.line(f"{sheet.y()}[{out}] = sum;")

    def products(self, layer: Layer[Convolution], sheet: Sheet, loops: PoolLoops, channel: str) -> None:
        """Add up one output element: all taps, all input channels of its group."""
        x, w = layer.input(0), layer.input(1)
        ins = w.shape[-1]
        groups = x.shape[-1] // ins
        inner = "i" if ins > 1 else "0"
        source = inner
        if groups > 1:
            group = f"{channel} / {w.shape[0] // groups}" if w.shape[0] > groups else channel
            source = group if ins == 1 else f"{group} * {ins} + i"
        names = [channel, *(f"k{a}" for a in range(len(w.shape) - 2)), inner]
        with loops.taps(channel=source) as at:
            product = f"{sheet.x(0)}[{at}] * {sheet.x(1)}[{flat_index(names, w.shape)}]"
            with sheet.nested([("i", ins)]):
                sheet.line(f"sum += {product};")


class DepthwiseConvLoops(ConvLoops):
    """Weights are (1, *kernel, out); output channel c reads input channel c / multiplier."""

    name = "depthwise convolution loops"

    def products(self, layer: Layer[Convolution], sheet: Sheet, loops: PoolLoops, channel: str) -> None:
        x, w = layer.input(0), layer.input(1)
        multiplier = w.shape[-1] // x.shape[-1]
        source = channel if multiplier == 1 else f"{channel} / {multiplier}"
        names = ["0", *(f"k{a}" for a in range(len(w.shape) - 2)), channel]
        with loops.taps(channel=source) as at:
            sheet.line(f"sum += {sheet.x(0)}[{at}] * {sheet.x(1)}[{flat_index(names, w.shape)}];")
