# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Normalize: mean 0 and variance 1 along some axes. Layer, instance, group and RMS normalisation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tinyml.base.errors import UnsupportedError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Layer, Op, Shape, Tensor, TensorType, given
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.elementwise.unary import Unary
from tinyml.ops.framework.kernel import InPlace, Sheet, register_kernels
from tinyml.ops.framework.play_loops import nests
from tinyml.ops.framework.play_sheet import NotPlayableError
from tinyml.ops.framework.reading import Builder, OnnxNode, onnx_op
from tinyml.ops.framework.writing import OnnxWriter, onnx_writer
from tinyml.ops.reduce.reduce import Reduce
from tinyml.ops.reshape import Reshape
from tinyml.ops.shared.axes import Split, count, inner_loop, onnx_axis
from tinyml.ops.shared.constraints import real_numbers
from tinyml.ops.shared.operands import axes_exist, present


@dataclass(frozen=True)
class Normalize(Op):
    """(x - mean) / sqrt(variance + epsilon); not ``centred``: x / sqrt(mean of squares + epsilon)."""

    operands = (present(1), axes_exist)
    axes: tuple[int, ...] = ()
    epsilon: float = 1e-5
    centred: bool = True

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x = given(inputs, 0)
        return (TensorType(x.shape, x.dtype),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x = given(inputs, 0)
        if self.centred:
            x = x - x.mean(axis=self.axes, keepdims=True)
        variance = np.square(x).mean(axis=self.axes, keepdims=True)
        return ((x / np.sqrt(variance + self.epsilon)).astype(layer.output.dtype.numpy),)

    def permuted(self, layer: Layer, perm: Sequence[int]) -> Op | None:
        return replace(self, axes=tuple(sorted(perm.index(axis) for axis in self.axes)))


class NormalizeLoops(InPlace[Normalize]):
    """Three passes: the mean, the variance, the result; without centring, two."""

    name = "normalize loops"
    constraints = (real_numbers,)

    def emit(self, layer: Layer[Normalize], sheet: Sheet) -> None:
        op, x = layer.op, layer.input(0)
        split = Split(x.shape, op.axes)
        kind, s = x.dtype.c, "f" if x.dtype is DType.FLOAT32 else ""
        number = sheet.number(count(x.shape, op.axes), x.dtype)
        sqrt = sheet.maths("sqrt", x.dtype)
        with sheet.loops(split.outer()) as index:
            if op.centred:
                sheet.line(f"{kind} mean = 0;")
                with inner_loop(sheet, split, index["x"]) as place:
                    sheet.line(f"mean += {sheet.x()}[{place}];")
                sheet.line(f"mean /= {number};")
            centred = " - mean" if op.centred else ""
            sheet.line(f"{kind} squares = 0;")
            with inner_loop(sheet, split, index["x"]) as place:
                sheet.line(f"const {kind} d = {sheet.x()}[{place}]{centred};")
                sheet.line("squares += d * d;")
            epsilon = sheet.number(op.epsilon, x.dtype)
            sheet.line(f"const {kind} factor = 1.0{s} / {sqrt}(squares / {number} + {epsilon});")
            with inner_loop(sheet, split, index["x"]) as place:
                value = f"({sheet.x()}[{place}]{centred})" if centred else f"{sheet.x()}[{place}]"
                sheet.line(f"{sheet.y()}[{place}] = {value} * factor;")

    def play(self, layer: Layer[Normalize], sheet: Sheet) -> None:
        op, x = layer.op, layer.input(0)
        if x.dtype is not DType.FLOAT32 or x.elements == 0:
            raise NotPlayableError(f"the player has no normalisation of {x.dtype.value}")
        members = {
            **nests(x.shape, op.axes),
            ".count": sheet.number(count(x.shape, op.axes)),
            ".epsilon": sheet.number(op.epsilon),
            ".centred": int(op.centred),
        }
        sheet.note("tinyml_play_normalize_f32", members, sheet.x(), sheet.y())


register_kernels(Normalize, NormalizeLoops())


def scaled(build: Builder, y: Tensor, scale: Tensor, bias: Tensor | None) -> Tensor:
    """y * scale + bias."""
    y = build.add1(Binary("mul"), [y, scale])
    return y if bias is None else build.add1(Binary("add"), [y, bias])


def per_channel(build: Builder, values: Tensor, rank: int) -> Tensor:
    """One value per channel, ready to be broadcast over (N, C, …)."""
    return build.add1(Reshape((values.elements, *(1,) * (rank - 2))), [values])


@onnx_op("BatchNormalization")
def read_batch(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    """x * factor + offset, both known now in every trained model."""
    # before the attribute existed, asking for the statistics meant training
    asked = node.opset < 14 and any(node.output_names[1:]) and not node.attr("is_test", 0)
    training = asked or node.attr("training_mode", 0)
    if training or (node.opset < 9 and not node.attr("spatial", 1)):
        raise UnsupportedError(
            f"BatchNormalization node {node.name!r} is in training mode or not per channel",
            "export the model for inference: model.eval()",
        )
    x, scale, bias, mean, variance = (node.input(i) for i in range(5))
    epsilon = np.asarray(node.attr("epsilon", 1e-5), variance.dtype.numpy)
    deviation = build.add1(Unary("sqrt"), [build.add1(Binary("add"), [variance, build.constant(epsilon)])])
    factor = build.add1(Binary("div"), [scale, deviation])
    offset = build.add1(Binary("sub"), [bias, build.add1(Binary("mul"), [mean, factor])])
    rank = len(x.shape)
    if rank < 2:
        return [scaled(build, x, factor, offset)]
    return [scaled(build, x, per_channel(build, factor, rank), per_channel(build, offset, rank))]


@onnx_op("LayerNormalization")
def read_layer(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    x = node.input(0)
    axes = _from_axis(node, x.shape)
    epsilon = float(node.attr("epsilon", 1e-5))
    y = build.add1(Normalize(axes, epsilon), [x])
    results = [scaled(build, y, node.input(1), node.optional(2))]
    if node.wants(1) or node.wants(2):
        results += _statistics(build, x, axes, epsilon)
    return results


def _from_axis(node: OnnxNode, shape: Shape) -> tuple[int, ...]:
    return tuple(range(onnx_axis(node, len(shape), -1), len(shape)))


def _statistics(build: Builder, x: Tensor, axes: tuple[int, ...], epsilon: float) -> list[Tensor]:
    """Mean and inverse standard deviation, which few models use."""
    mean = build.add1(Reduce("mean", axes), [x])
    apart = build.add1(Binary("sub"), [x, mean])
    variance = build.add1(Reduce("mean", axes), [build.add1(Binary("mul"), [apart, apart])])
    shifted = build.add1(Binary("add"), [variance, build.constant(np.asarray(epsilon, x.dtype.numpy))])
    return [mean, build.add1(Unary("rsqrt"), [shifted])]


@onnx_op("RMSNormalization")
def read_rms(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    x = node.input(0)
    op = Normalize(_from_axis(node, x.shape), float(node.attr("epsilon", 1e-5)), centred=False)
    return [scaled(build, build.add1(op, [x]), node.input(1), None)]


@onnx_op("SimplifiedLayerNormalization")
def read_simplified(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    """What onnxruntime's optimiser calls RMS normalisation."""
    if node.wants(1):
        raise UnsupportedError("the second output of SimplifiedLayerNormalization is not supported")
    return read_rms(node, build)


@onnx_op("InstanceNormalization")
def read_instance(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    x = node.input(0)
    rank = len(x.shape)
    y = build.add1(Normalize(tuple(range(2, rank)), float(node.attr("epsilon", 1e-5))), [x])
    return [
        scaled(build, y, per_channel(build, node.input(1), rank), per_channel(build, node.input(2), rank))
    ]


@onnx_op("GroupNormalization")
def read_group(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    """Scale and bias: one per group in opset 18, one per channel since opset 21."""
    x, groups = node.input(0), int(node.attr("num_groups"))
    batch, channels, *rest = x.shape
    if channels % groups:
        raise UnsupportedError(f"GroupNormalization cannot divide {channels} channels into {groups} groups")
    split = (batch, groups, channels // groups, *rest)
    y = build.add1(Reshape(split), [x])
    y = build.add1(Normalize(tuple(range(2, len(split))), float(node.attr("epsilon", 1e-5))), [y])
    scale, bias = node.input(1), node.input(2)
    if scale.elements == groups and node.opset < 21:
        y = scaled(build, y, per_channel(build, scale, len(split)), per_channel(build, bias, len(split)))
        return [build.add1(Reshape(x.shape), [y])]
    y = build.add1(Reshape(x.shape), [y])
    rank = len(x.shape)
    return [scaled(build, y, per_channel(build, scale, rank), per_channel(build, bias, rank))]


RMS_OPSET = 23
"""The first with RMSNormalization."""


@onnx_writer(Normalize)
def write_onnx(op: Normalize, layer: Layer, x: list[str], y: str, out: OnnxWriter) -> None:
    """One operator over the last axes, so that a quantiser finds no steps of it that would have few bits."""
    shape = layer.input(0).shape
    rank, axes = len(shape), [axis % len(shape) for axis in op.axes]
    others = [axis for axis in range(rank) if axis not in axes]
    perm = [*others, *sorted(axes)]
    ones = np.ones([shape[axis] for axis in sorted(axes)], layer.input(0).dtype.numpy)
    if not op.centred:
        out.since(RMS_OPSET)
    kind = "LayerNormalization" if op.centred else "RMSNormalization"
    settings: dict[str, Any] = {"axis": len(others), "epsilon": op.epsilon}
    if perm == list(range(rank)):
        out.node(kind, [x[0], out.constant(ones, "ones")], y, **settings)
        return
    moved = out.node("Transpose", [x[0]], perm=perm)
    result = out.node(kind, [moved, out.constant(ones, "ones")], **settings)
    out.node("Transpose", [result], y, perm=[perm.index(axis) for axis in range(rank)])
