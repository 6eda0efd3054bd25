# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Hardmax: 1 at the first largest element along an axis, 0 elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, Layer, Tensor, TensorType, given
from tinyml.ops.framework.kernel import InPlace, Sheet, register_kernels
from tinyml.ops.framework.reading import Builder, OnnxNode, onnx_op
from tinyml.ops.framework.writing import OnnxWriter, onnx_writer
from tinyml.ops.reduce.arg_reduce import best_places
from tinyml.ops.shared.axes import AlongAxis, Split, flattened_before_13


@dataclass(frozen=True)
class Hardmax(AlongAxis):
    """Along ``axis``."""

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x = given(inputs, 0)
        return (TensorType(x.shape, x.dtype),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x = given(inputs, 0)
        y = np.zeros_like(x)
        np.put_along_axis(y, best_places(x, self.axis), 1, self.axis)
        return (y,)


class HardmaxLoops(InPlace[Hardmax]):
    """Two passes: find the largest element, then write the result."""

    name = "hardmax loops"

    def emit(self, layer: Layer[Hardmax], sheet: Sheet) -> None:
        op, x = layer.op, layer.input(0)
        split = Split(x.shape, (op.axis,))
        extent = x.shape[op.axis]
        with sheet.loops(split.outer()) as index:
            element, best = (split.at(index["x"], step) for step in ("k", "best"))
            sheet.line("int32_t best = 0;")
            with (
                sheet.loop("k", extent, start=1),
                sheet.block(f"if ({sheet.x()}[{element}] > {sheet.x()}[{best}]) {{"),
            ):
                sheet.line("best = k;")
            with sheet.loop("k", extent):
                sheet.line(f"{sheet.y()}[{element}] = k == best ? 1 : 0;")


register_kernels(Hardmax, HardmaxLoops())


@onnx_op("Hardmax")
def read_onnx(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    return [flattened_before_13(node, build, lambda x, axis: build.add1(Hardmax(axis), [x]))]


@onnx_writer(Hardmax)
def write_onnx(op: Hardmax, layer: Layer, x: list[str], y: str, out: OnnxWriter) -> None:
    out.node("Hardmax", x, y, axis=op.axis)
