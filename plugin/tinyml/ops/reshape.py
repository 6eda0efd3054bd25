# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Reshape and its family: another shape for the same bytes. Input and output share memory: no code."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from tinyml.base import c
from tinyml.base.errors import ModelError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, Layer, Op, Quant, Shape, Tensor, TensorType, View, given
from tinyml.ir.constraints import quantisation_problem
from tinyml.ops.framework.kernel import Kernel, Sheet, register_kernels
from tinyml.ops.framework.play_loops import play_copies
from tinyml.ops.framework.quantization_facts import quantizes
from tinyml.ops.framework.reading import MALFORMED, Builder, OnnxNode, TfliteNode, onnx_op, tflite_op
from tinyml.ops.framework.writing import OnnxWriter, onnx_writer
from tinyml.ops.shared.axis import from_front
from tinyml.ops.shared.operands import present


@dataclass(frozen=True)
class Reshape(Op):
    """The elements of x, in order, with another shape."""

    operands = (present(1),)
    movement: ClassVar[bool] = True
    shape: Shape = ()

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x = given(inputs, 0)
        if int(np.prod(self.shape, dtype=np.int64)) != x.elements:
            raise ModelError(f"cannot reshape {x.name!r} from {x.shape} to {self.shape}")
        return (TensorType(self.shape, x.dtype, self._quant(x)),)

    def _quant(self, x: Tensor) -> Quant | None:
        """Per-channel parameters stay valid if the reshape keeps their axis in one piece."""
        if x.quant is None or x.quant.axis is None:
            return x.quant
        before = np.prod(x.shape[: x.quant.axis], dtype=np.int64)
        for axis, extent in enumerate(self.shape):
            if extent == x.shape[x.quant.axis] and np.prod(self.shape[:axis], dtype=np.int64) == before:
                return replace(x.quant, axis=axis)
        return None

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        return (given(inputs, 0).reshape(self.shape),)

    def identity_of(self, layer: Layer) -> int | None:
        return 0

    def carried_channels(self, layer: Layer) -> Sequence[Array] | None:
        """Several positions become channels of one, if the new number of channels is a multiple."""
        x = layer.input(0)
        if not self.shape or not x.shape or x.elements == 0 or self.shape[-1] % x.shape[-1]:
            return None
        return (np.arange(self.shape[-1]).reshape(-1, x.shape[-1]),)

    def with_channels(self, channels: int) -> Op:
        return Reshape((*self.shape[:-1], channels))

    def carried_axis(self, layer: Layer, index: int, axis: int) -> tuple[int, ...] | None:
        """The axis is still one, after as many elements."""
        x = layer.input(0).shape
        before = math.prod(x[:axis])
        for place, extent in enumerate(self.shape):
            if extent == x[axis] and math.prod(self.shape[:place]) == before:
                return (place,)
        return None

    def views(self, layer: Layer) -> tuple[View, ...]:
        return (View(layer.output.name, layer.input(0).name),)


class CopyKernel(Kernel[Reshape]):
    """For the rare reshape whose two sides cannot share memory (an input that is also an output)."""

    name = "memcpy"

    def emit(self, layer: Layer[Reshape], sheet: Sheet) -> None:
        sheet.include("<string.h>")
        if sheet.plays:
            whole = c.Walk((1,))
            play_copies(sheet, (layer.output.elements,), whole, whole, sheet.x(), sheet.y())
            return
        sheet.line(f"memcpy({sheet.y()}, {sheet.x()}, {layer.output.bytes});")


register_kernels(Reshape, CopyKernel())


def with_quant(build: Builder, x: Tensor, quant: Quant | None) -> Tensor:
    """The same stored integers, interpreted with ``quant``."""
    if x.quant == quant:
        return x
    problem = quantisation_problem(TensorType(x.shape, x.dtype, quant))
    if problem is not None:
        raise ModelError(f"tensor {x.name!r} {problem}", MALFORMED)
    if x.is_constant:
        return build.constant(x.value, f"{x.name}/as", quant)
    if x.quant is None and quant is not None:
        return _given_meaning(build, x, quant)
    return build.add1(Reshape(x.shape), [x], TensorType(x.shape, x.dtype, quant))


def _given_meaning(build: Builder, x: Tensor, quant: Quant) -> Tensor:
    """Plain integers that are quantised from here on, with those that they were moved from.

    A Dequantize can then pass the operators that moved them, up to an input of the model. What an operator
    computed as plain integers, or reads as such, stays plain: only a copy of it has the meaning.
    """
    chain, tensor = [x], x
    movers: set[int] = set()
    while (node := build.producer(tensor)) is not None:
        tensor = build.tensors[node.inputs[0]] if node.inputs[0] else tensor
        plain = tensor.quant is None and not tensor.is_constant and len(node.outputs) == 1
        if not node.op.movement or quant.per_channel or not plain:
            return build.add1(Reshape(x.shape), [x], TensorType(x.shape, x.dtype, quant))
        chain.append(tensor)
        movers.add(id(node))
    names = {tensor.name for tensor in chain}
    if any(id(node) not in movers and not names.isdisjoint(node.inputs) for node in build.nodes):
        return build.add1(Reshape(x.shape), [x], TensorType(x.shape, x.dtype, quant))
    for tensor in chain:
        build.tensors[tensor.name] = replace(tensor, quant=quant)
    return build.tensors[x.name]


def resolve_shape(x: Tensor, wanted: Sequence[int], zero_copies: bool = True) -> Shape:
    """A shape request with at most one -1 and (ONNX) zeros that mean "as in the input"."""
    dims = [
        x.shape[i] if d == 0 and zero_copies and i < len(x.shape) else int(d) for i, d in enumerate(wanted)
    ]
    if dims.count(-1) > 1:
        raise ModelError(f"reshape of {x.name!r} to {tuple(wanted)}: more than one -1")
    if -1 in dims:
        known = int(np.prod([d for d in dims if d != -1], dtype=np.int64))
        dims[dims.index(-1)] = x.elements // known if known else 0
    return tuple(dims)


quantizes("Reshape", "Flatten", "Squeeze", "Unsqueeze", moves=True, keeps_scale=True, passes_limits=True)


@onnx_op("Reshape")
def read_reshape(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    x = node.input(0)
    wanted = node.ints("shape") if node.opset < 5 else node.const(1).tolist()
    shape = resolve_shape(x, wanted, zero_copies=not node.attr("allowzero", 0))
    return [build.add1(Reshape(shape), [x])]


@onnx_op("Flatten")
def read_flatten(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    x = node.input(0)
    axis = int(node.attr("axis", 1))
    axis += len(x.shape) if axis < 0 else 0
    rows = int(np.prod(x.shape[:axis], dtype=np.int64))
    return [build.add1(Reshape((rows, x.elements // rows if rows else 0)), [x])]


def _axes(node: OnnxNode) -> tuple[int, ...] | None:
    """Axes came as an attribute before opset 13 and as an input since."""
    if node.opset < 13:
        return node.ints("axes") if "axes" in node.attributes else None
    return None if node.optional(1) is None else tuple(int(a) for a in node.const(1).reshape(-1))


@onnx_op("Squeeze")
def read_squeeze(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    x = node.input(0)
    rank = len(x.shape)
    axes = _axes(node)
    drop = (
        {from_front(a, rank) for a in axes}
        if axes is not None
        else {i for i, d in enumerate(x.shape) if d == 1}
    )
    if any(x.shape[a] != 1 for a in drop):
        raise ModelError(f"Squeeze node {node.name!r}: axes {sorted(drop)} of shape {x.shape} are not all 1")
    return [build.add1(Reshape(tuple(d for i, d in enumerate(x.shape) if i not in drop)), [x])]


@onnx_op("Unsqueeze")
def read_unsqueeze(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    x = node.input(0)
    axes = _axes(node) or ()
    rank = len(x.shape) + len(axes)
    places = {from_front(a, rank) for a in axes}
    if len(places) != len(axes):
        raise ModelError(f"Unsqueeze node {node.name!r}: axes {axes} name an axis twice")
    rest = iter(x.shape)
    return [build.add1(Reshape(tuple(1 if i in places else next(rest) for i in range(rank))), [x])]


@tflite_op("RESHAPE")
def read_tflite(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    """The shape is an operand, in old files an option; otherwise it is the shape the file declares."""
    x, operand = node.input(0), node.optional(1)
    if operand is not None:
        wanted = node.const(1).reshape(-1).tolist()
    elif node.options is not None and node.options.NewShapeLength():
        wanted = [node.options.NewShape(i) for i in range(node.options.NewShapeLength())]
    else:
        wanted = list(node.outputs[0].shape)
    if wanted == [0] and x.elements == 1:  # how old converters wrote "a scalar"
        wanted = []
    return [build.add1(Reshape(resolve_shape(x, wanted, zero_copies=False)), [x])]


@tflite_op("EXPAND_DIMS")
def read_expand_dims(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    x = node.input(0)
    axis = from_front(node.const(1).reshape(()).item(), len(x.shape) + 1)
    return [build.add1(Reshape((*x.shape[:axis], 1, *x.shape[axis:])), [x])]


@tflite_op("SQUEEZE")
def read_tflite_squeeze(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    x, options = node.input(0), node.options
    count = options.SqueezeDimsLength() if options is not None else 0
    axes = {from_front(options.SqueezeDims(i), len(x.shape)) for i in range(count)}
    dropped = axes or {i for i, d in enumerate(x.shape) if d == 1}
    return [build.add1(Reshape(tuple(d for i, d in enumerate(x.shape) if i not in dropped)), [x])]


@tflite_op("SHAPE")
def read_tflite_shape(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    return [build.constant(np.asarray(node.input(0).shape, node.outputs[0].dtype.numpy))]


@tflite_op("RANK")
def read_rank(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    return [build.constant(np.asarray(len(node.input(0).shape), node.outputs[0].dtype.numpy))]


@onnx_writer(Reshape)
def write_onnx(op: Reshape, layer: Layer, x: list[str], y: str, out: OnnxWriter) -> None:
    out.node("Reshape", [x[0], out.integers(op.shape, "shape")], y)
