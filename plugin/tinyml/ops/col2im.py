# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Col2Im: columns of patches put back into an image; overlapping elements are added."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

import numpy as np

from tinyml.base import c
from tinyml.base.errors import ModelError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, Layer, Op, Tensor, TensorType, given
from tinyml.ops.framework.kernel import Kernel, Sheet, register_kernels
from tinyml.ops.framework.reading import Builder, OnnxNode, onnx_op
from tinyml.ops.shared.constraints import real_numbers
from tinyml.ops.shared.operands import numbers_from, of_rank, present


@dataclass(frozen=True)
class Col2Im(Op):
    """Input (n, c * taps, positions), output (n, c, *image); all tuples are per spatial axis."""

    operands = (present(1), of_rank(0, 3), numbers_from(1, "image", "kernel", "strides", "dilations"))
    image: tuple[int, ...] = ()
    kernel: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    dilations: tuple[int, ...] = ()
    begins: tuple[int, ...] = ()
    ends: tuple[int, ...] = ()

    def positions(self) -> tuple[int, ...]:
        """How many patches there are along each axis."""
        rows = zip(self.image, self.kernel, self.strides, self.dilations, self.begins, self.ends, strict=True)
        return tuple((i + b + e - d * (k - 1) - 1) // s + 1 for i, k, s, d, b, e in rows)

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x = given(inputs, 0)
        taps = int(np.prod(self.kernel))
        if len(x.shape) != 3 or x.shape[1] % taps or x.shape[2] != int(np.prod(self.positions())):
            raise ModelError(
                f"{x.name!r} {x.shape} does not hold patches of {self.kernel} from an image of {self.image}"
            )
        return (TensorType((x.shape[0], x.shape[1] // taps, *self.image), x.dtype),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x = given(inputs, 0)
        n, channels = layer.output.shape[:2]
        counts = self.positions()
        cols = x.reshape(n, channels, *self.kernel, *counts)
        padded = [i + b + e for i, b, e in zip(self.image, self.begins, self.ends, strict=True)]
        y = np.zeros((n, channels, *padded), x.dtype)
        for tap in np.ndindex(*self.kernel):
            spots = tuple(
                slice(k * d, k * d + (count - 1) * s + 1, s)
                for k, d, s, count in zip(tap, self.dilations, self.strides, counts, strict=True)
            )
            target, source = (slice(None), slice(None), *spots), (slice(None), slice(None), *tap)
            y[target] += cols[source]
        middle = (slice(b, b + i) for b, i in zip(self.begins, self.image, strict=True))
        cut = (slice(None), slice(None), *middle)
        return (y[cut],)


class Col2ImLoops(Kernel[Col2Im]):
    """Loops over all elements of the patches; those that fall outside the image are left out."""

    name = "col2im loops"
    constraints = (real_numbers,)

    def emit(self, layer: Layer[Col2Im], sheet: Sheet) -> None:
        op, y = layer.op, layer.output
        sheet.include("<string.h>")
        rank, counts = len(op.image), op.positions()
        sheet.line(f"memset({sheet.y()}, 0, {y.bytes});")
        sheet.line(f"const {y.dtype.c} *in = {sheet.x()};")
        sheet.line()
        loops = [("c", y.shape[0] * y.shape[1])]
        loops += [(f"k{a}", op.kernel[a]) for a in range(rank)] + [(f"p{a}", counts[a]) for a in range(rank)]
        with ExitStack() as opened:
            for name, extent in loops:
                opened.enter_context(sheet.loop(name, extent))
            sheet.line(f"const {y.dtype.c} v = *in++;")
            for a in range(rank):
                place = f"p{a} * {op.strides[a]} + k{a} * {op.dilations[a]} - {op.begins[a]}"
                sheet.line(f"const int32_t i{a} = {place};")
            sheet.line()
            inside = " && ".join(f"i{a} >= 0 && i{a} < {op.image[a]}" for a in range(rank))
            strides = c.contiguous(y.shape[1:])
            index = " + ".join([f"c * {strides[0]}", *(f"i{a} * {strides[1 + a]}" for a in range(rank))])
            with sheet.block(f"if ({inside}) {{"):
                sheet.line(f"{sheet.y()}[{index}] += v;")


register_kernels(Col2Im, Col2ImLoops())


@onnx_op("Col2Im")
def read_onnx(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    image, kernel = (tuple(int(d) for d in node.const(i).reshape(-1)) for i in (1, 2))
    rank = len(image)
    pads = node.ints("pads", (0,) * (2 * rank))
    strides, dilations = node.ints("strides", (1,) * rank), node.ints("dilations", (1,) * rank)
    op = Col2Im(image, kernel, strides, dilations, pads[:rank], pads[rank:])
    return [build.add1(op, [node.input(0)])]
