# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""LocalResponse: each element against the squares of its neighbours in other channels (LRN)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.base.errors import UnsupportedError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, Layer, Tensor, TensorType, given
from tinyml.ops.framework.kernel import Kernel, Sheet, register_kernels
from tinyml.ops.framework.reading import Builder, OnnxNode, onnx_op
from tinyml.ops.framework.writing import OnnxWriter, onnx_writer
from tinyml.ops.shared.axes import AlongAxis, Split


@dataclass(frozen=True)
class LocalResponse(AlongAxis):
    """x / (bias + alpha * sum of squares in a window along axis) ** beta."""

    depends_on_cpu = True
    axis: int = 1
    before: int = 0  # channels of the window before and after the element's own
    after: int = 0
    alpha: float = 1.0
    beta: float = 0.75
    bias: float = 1.0

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x = given(inputs, 0)
        return (TensorType(x.shape, x.dtype),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x = given(inputs, 0)
        channels = x.shape[self.axis]
        squares = np.moveaxis(np.square(x), self.axis, 0)
        sums = np.stack(
            [squares[max(0, k - self.before) : k + self.after + 1].sum(axis=0) for k in range(channels)]
        )
        total = np.moveaxis(sums, 0, self.axis)
        return ((x * np.power(self.bias + self.alpha * total, -self.beta)).astype(x.dtype),)


class LocalResponseLoops(Kernel[LocalResponse]):
    """A window along the channels for each element."""

    name = "LRN loops"

    def emit(self, layer: Layer[LocalResponse], sheet: Sheet) -> None:
        op, x = layer.op, layer.input(0)
        channels, split = x.shape[op.axis], Split(x.shape, (op.axis,))
        kind, power = x.dtype.c, sheet.maths("pow", x.dtype)
        with (
            sheet.loops(split.outer()) as index,
            sheet.loop("k", channels),
        ):
            own, near = (f"{sheet.x()}[{split.at(index['x'], step)}]" for step in ("k", "j"))
            sheet.line(
                f"const int32_t first = k < {op.before} ? 0 : k - {op.before};"
                if op.before
                else "const int32_t first = k;"
            )
            sheet.line(f"const int32_t last = k + {op.after} < {channels} ? k + {op.after} : {channels - 1};")
            sheet.line(f"{kind} sum = 0;")
            with sheet.block("for (int32_t j = first; j <= last; j++) {"):
                sheet.line(f"sum += {near} * {near};")
            bias, alpha, beta = (sheet.number(v, x.dtype) for v in (op.bias, op.alpha, -op.beta))
            y = f"{sheet.y()}[{split.at(index['x'], 'k')}]"
            sheet.line(f"{y} = {own} * {power}({bias} + {alpha} * sum, {beta});")


register_kernels(LocalResponse, LocalResponseLoops())


@onnx_op("LRN")
def read_onnx(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    size = int(node.attr("size"))
    op = LocalResponse(
        axis=1,
        before=(size - 1) // 2,
        after=size // 2,
        alpha=float(node.attr("alpha", 1e-4)) / size,
        beta=float(node.attr("beta", 0.75)),
        bias=float(node.attr("bias", 1.0)),
    )
    return [build.add1(op, [node.input(0)])]


@onnx_writer(LocalResponse)
def write_onnx(op: LocalResponse, layer: Layer, x: list[str], y: str, out: OnnxWriter) -> None:
    size = op.before + op.after + 1
    if op.axis != 1 or op.before != op.after or len(layer.input(0).shape) != 4:
        raise UnsupportedError("a response normalised over a window that is not centred cannot be quantised")
    out.node("LRN", x, y, size=size, alpha=op.alpha * size, beta=op.beta, bias=op.bias)
