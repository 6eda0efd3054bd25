# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Transpose: axes in another order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from tinyml.base import c
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, Layer, Op, Tensor, TensorType, View, given
from tinyml.ops.framework.kernel import Kernel, Sheet, register_kernels
from tinyml.ops.framework.play_loops import play_copies
from tinyml.ops.framework.quantization_facts import quantizes
from tinyml.ops.framework.reading import Builder, OnnxNode, TfliteNode, onnx_op, tflite_op
from tinyml.ops.framework.writing import OnnxWriter, onnx_writer
from tinyml.ops.shared.operands import present


def every_axis_once(layer: Layer[Transpose]) -> bool:
    """The permutation names every axis of the input once."""
    return sorted(layer.op.perm) == list(range(len(layer.input(0).shape)))


@dataclass(frozen=True)
class Transpose(Op):
    """y's axis i is x's axis perm[i]."""

    operands = (present(1), every_axis_once)
    movement: ClassVar[bool] = True
    perm: tuple[int, ...] = ()

    def carried_axis(self, layer: Layer, index: int, axis: int) -> tuple[int, ...] | None:
        return (self.perm.index(axis),)

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x = given(inputs, 0)
        quant = x.quant
        if quant is not None and quant.axis is not None:
            quant = replace(quant, axis=self.perm.index(quant.axis))
        return (TensorType(tuple(x.shape[p] for p in self.perm), x.dtype, quant),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        return (np.transpose(given(inputs, 0), self.perm),)

    def identity_of(self, layer: Layer) -> int | None:
        return 0 if self.perm == tuple(range(len(self.perm))) else None

    def moves_nothing(self, shape: Sequence[int]) -> bool:
        """Whether only axes of extent 1 change places, so that the bytes stay in order."""
        kept = [p for p in self.perm if shape[p] != 1]
        return kept == sorted(kept)

    def views(self, layer: Layer) -> tuple[View, ...]:
        x = layer.input(0)
        return (View(layer.output.name, x.name),) if self.moves_nothing(x.shape) else ()


SHORT = 4
"""Elements of a last axis that are copied without a loop: images have three or four colours."""


class TransposeKernel(Kernel[Transpose]):
    """Loops over the output; reads the input with permuted strides."""

    name = "transpose loops"

    def emit(self, layer: Layer[Transpose], sheet: Sheet) -> None:
        op = layer.op
        shape = layer.output.shape
        strides = c.contiguous(layer.input(0).shape)
        walks = {"y": c.Walk(c.contiguous(shape)), "x": c.Walk(tuple(strides[p] for p in op.perm))}
        if sheet.plays:
            play_copies(sheet, shape, walks["x"], walks["y"], sheet.x(), sheet.y(), any_order=True)
            return
        nests = _without_short_loop(shape, walks)
        with sheet.loops(nests[0]):
            for nest in nests:
                sheet.line(f"{sheet.y()}[{nest.index['y']}] = {sheet.x()}[{nest.index['x']}];")


def _without_short_loop(shape: Sequence[int], walks: Mapping[str, c.Walk]) -> list[c.Nest]:
    """The same loops with other indices for each element of a short last axis, or one nest of all loops."""
    whole = c.nest(shape, walks)
    last = max((axis for axis, extent in enumerate(shape) if extent != 1), default=0)
    short = len(whole.extents) > 1 and 0 < whole.extents[-1] <= SHORT
    if not short or whole.extents[-1] != shape[last]:
        return [whole]
    outer = (*shape[:last], *(1 for _ in shape[last:]))
    return [
        c.nest(outer, {name: replace(walk, offset=i * walk.strides[last]) for name, walk in walks.items()})
        for i in range(shape[last])
    ]


register_kernels(Transpose, TransposeKernel())


quantizes("Transpose", moves=True, keeps_scale=True, passes_limits=True)


@onnx_op("Transpose")
def read_onnx(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    x = node.input(0)
    perm = node.ints("perm", tuple(reversed(range(len(x.shape)))))
    return [build.add1(Transpose(perm), [x])]


@tflite_op("TRANSPOSE")
def read_tflite(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    perm = tuple(int(p) for p in node.const(1))
    return [build.add1(Transpose(perm), [node.input(0)])]


@onnx_writer(Transpose)
def write_onnx(op: Transpose, layer: Layer, x: list[str], y: str, out: OnnxWriter) -> None:
    out.node("Transpose", x, y, perm=list(op.perm))
