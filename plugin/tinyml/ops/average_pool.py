"""AveragePool: the mean of each window, channels last, any number of spatial axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tinyml import c
from tinyml.ir import Array, Layer, Tensor, TensorType, given
from tinyml.kernel import Kernel, Sheet, register_kernels
from tinyml.ops._pool import PoolLoops, Window, read_pool
from tinyml.ops._quant import NO_CLAMP, Clamp
from tinyml.reading import Builder, OnnxNode, onnx_op


@dataclass(frozen=True)
class AveragePool(Window):
    """The divisor counts the elements of a window inside the input, or inside its padding too."""

    include_pad: bool = False
    clamp: Clamp = NO_CLAMP

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x = given(inputs, 0)
        return (TensorType(self.output_shape(x), x.dtype, x.quant),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x = given(inputs, 0)
        rank = len(self.kernel)
        taps = tuple(range(1 + rank, 1 + 2 * rank))
        total = self.windows(x, 0).sum(axis=taps)
        mean = total / self.counts(x.shape)
        return (np.clip(mean, *self.clamp).astype(layer.output.dtype.numpy),)

    def counts(self, shape: Sequence[int]) -> Array:
        """The divisor of each output position, shape (1, *outputs, 1)."""
        rank = len(self.kernel)
        ones = np.ones((1, *shape[1:-1], 1), np.int32)
        if self.include_pad:
            around = [(self.pads[a], self.pads[rank + a]) for a in range(rank)]
            ones = np.pad(ones, [(0, 0), *around, (0, 0)], constant_values=1)
            free = Window(self.kernel, self.strides, self.dilations, (0,) * (2 * rank), self.ceil)
            outs = self.extents(tuple(shape))
            found = free.windows(ones, 0)[(slice(None), *(slice(0, o) for o in outs))]
        else:
            found = self.windows(ones, 0)
        return np.asarray(found.sum(axis=tuple(range(1 + rank, 1 + 2 * rank))))


def real_numbers(layer: Layer) -> bool:
    """Input and output are floating point."""
    return layer.input(0).dtype.is_float and layer.output.dtype.is_float


class AveragePoolLoops(Kernel):
    """Sums inside loops; the divisor is a constant where all windows hold as many elements."""

    name = "average-pool loops"
    constraints = (real_numbers,)

    def emit(self, layer: Layer, sheet: Sheet) -> None:
        op, dtype = layer.op, layer.output.dtype
        assert isinstance(op, AveragePool)
        counts = op.counts(layer.input(0).shape)
        same = bool(np.all(counts == counts.reshape(-1)[0]))
        loops = PoolLoops(layer, sheet)
        with loops.outputs() as out:
            sheet.line(f"{dtype.c} sum = {c.number(0, dtype.numpy)};")
            if not same:
                sheet.line("int32_t count = 0;")
            sheet.line()
            in_padding = op.include_pad and not same
            with loops.taps(padded=in_padding) as place:
                if not same:
                    sheet.line("count++;")
                if in_padding and loops.in_input():
                    with sheet.block(f"if ({loops.in_input()}) {{"):
                        sheet.line(f"sum += {sheet.x()}[{place}];")
                else:
                    sheet.line(f"sum += {sheet.x()}[{place}];")
            divisor = c.number(counts.reshape(-1)[0], dtype.numpy) if same else f"({dtype.c})count"
            value = f"sum / {divisor}"
            low, high = (c.number(v, dtype.numpy) if np.isfinite(v) else "" for v in op.clamp)
            if low or high:
                sheet.line(f"{dtype.c} mean = {value};")
                sheet.line()
                if low:
                    sheet.line(f"mean = mean < {low} ? {low} : mean;")
                if high:
                    sheet.line(f"mean = mean > {high} ? {high} : mean;")
                value = "mean"
            sheet.line(f"{sheet.y()}[{out}] = {value};")


register_kernels(AveragePool, AveragePoolLoops())


@onnx_op("AveragePool", "GlobalAveragePool")
def read_onnx(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    return read_pool(node, build, AveragePool, include_pad=bool(node.attr("count_include_pad", 0)))
