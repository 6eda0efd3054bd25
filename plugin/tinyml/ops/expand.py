# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Expand and Tile: elements repeated along axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from tinyml.base import c
from tinyml.base.errors import ModelError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, Layer, Op, Tensor, TensorType, View, given
from tinyml.ops.framework.kernel import Kernel, Sheet, register_kernels
from tinyml.ops.framework.quantization_facts import quantizes
from tinyml.ops.framework.reading import Builder, OnnxNode, TfliteNode, onnx_op, tflite_op
from tinyml.ops.framework.writing import OnnxWriter, onnx_writer
from tinyml.ops.reshape import Reshape
from tinyml.ops.shared.operands import numbers_from, one_per_axis, present
from tinyml.ops.slice import copy_strided


@dataclass(frozen=True)
class Tile(Op):
    """The whole tensor repeated ``repeats`` times along each axis."""

    operands = (present(1), one_per_axis("repeats"), numbers_from(0, "repeats"))
    movement: ClassVar[bool] = True
    repeats: tuple[int, ...] = ()

    def carried_axis(self, layer: Layer, index: int, axis: int) -> tuple[int, ...] | None:
        return (axis,) if self.repeats[axis] == 1 else None

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x = given(inputs, 0)
        shape = tuple(d * r for d, r in zip(x.shape, self.repeats, strict=True))
        quant = x.quant
        if quant is not None and quant.axis is not None and self.repeats[quant.axis] != 1:
            quant = None
        return (TensorType(shape, x.dtype, quant),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        return (np.tile(given(inputs, 0), self.repeats),)

    def views(self, layer: Layer) -> tuple[View, ...]:
        x, y = layer.input(0), layer.output
        return (View(y.name, x.name),) if x.shape == y.shape else ()

    def permuted(self, layer: Layer, perm: Sequence[int]) -> Op | None:
        return Tile(tuple(self.repeats[p] for p in perm))


class TileLoops(Kernel[Tile]):
    """Loops over the output; the input does not advance along repeated axes."""

    name = "tile loops"

    def emit(self, layer: Layer[Tile], sheet: Sheet) -> None:
        op, x = layer.op, layer.input(0)
        if layer.output.elements == 0:
            return
        shape, strides = [], []
        for repeat, extent, stride in zip(op.repeats, x.shape, c.contiguous(x.shape), strict=True):
            shape += [repeat, extent]
            strides += [0, stride]
        copy_strided(sheet, tuple(shape), c.Walk(tuple(strides)), c.Walk(c.contiguous(shape)))


register_kernels(Tile, TileLoops())


def expand(build: Builder, x: Tensor, shape: Sequence[int]) -> Tensor:
    """``x`` broadcast to ``shape``, or to what both broadcast to."""
    try:
        wanted = np.broadcast_shapes(x.shape, tuple(shape))
    except ValueError:
        raise ModelError(f"{x.name!r} {x.shape} cannot be broadcast to {tuple(shape)}") from None
    if len(wanted) != len(x.shape):
        x = build.add1(Reshape((1,) * (len(wanted) - len(x.shape)) + x.shape), [x])
    repeats = tuple(w if d == 1 else 1 for w, d in zip(wanted, x.shape, strict=True))
    return x if x.shape == wanted else build.add1(Tile(repeats), [x])


quantizes("Expand", "Tile", moves=True, keeps_scale=True)


@onnx_op("Expand")
def read_expand(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    return [expand(build, node.input(0), [int(d) for d in node.const(1).reshape(-1)])]


@onnx_op("Tile")
def read_tile(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    x = node.input(0)
    repeats = tuple(int(r) for r in node.const(1).reshape(-1))
    if len(repeats) != len(x.shape):
        raise ModelError(f"Tile node {node.name!r}: {len(repeats)} repeats for {len(x.shape)} axes")
    return [x if set(repeats) <= {1} else build.add1(Tile(repeats), [x])]


@tflite_op("BROADCAST_TO")
def read_broadcast_to(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    return [expand(build, node.input(0), [int(d) for d in node.const(1).reshape(-1)])]


@tflite_op("BROADCAST_ARGS")
def read_broadcast_args(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    """The shape that two shapes have in common."""
    shapes = [tuple(int(d) for d in node.const(i).reshape(-1)) for i in (0, 1)]
    common = np.asarray(np.broadcast_shapes(*shapes), node.outputs[0].dtype.numpy)
    return [build.constant(common, f"{node.name}/shape")]


@tflite_op("TILE")
def read_tflite_tile(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    x, repeats = node.input(0), tuple(int(r) for r in node.const(1).reshape(-1))
    return [x if set(repeats) <= {1} else build.add1(Tile(repeats), [x])]


@onnx_writer(Tile)
def write_onnx(op: Tile, layer: Layer, x: list[str], y: str, out: OnnxWriter) -> None:
    out.node("Tile", [x[0], out.integers(op.repeats, "repeats")], y)
