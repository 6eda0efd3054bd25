# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""MatMul: matrix products as numpy defines them; a constant right side becomes Dense."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tinyml.base import c
from tinyml.base.errors import UnsupportedError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Layer, Op, Tensor, TensorType, given
from tinyml.ops.dense import matmul_int8 as integers
from tinyml.ops.dense.dense import Dense
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.elementwise.cast import cast
from tinyml.ops.framework.kernel import Kernel, Sheet, register_kernels
from tinyml.ops.framework.play_loops import array, merged
from tinyml.ops.framework.play_sheet import NotPlayableError
from tinyml.ops.framework.quantization_facts import quantizes
from tinyml.ops.framework.reading import Builder, OnnxNode, TfliteNode, onnx_op, tflite_op
from tinyml.ops.framework.writing import OnnxWriter, onnx_writer
from tinyml.ops.reshape import Reshape, with_quant
from tinyml.ops.shared.operands import at_least_rank, present
from tinyml.ops.shared.quant import NO_CLAMP
from tinyml.ops.shared.real import in_real_numbers, layer_bias, layer_weights, real_weights
from tinyml.ops.transpose import Transpose

if TYPE_CHECKING:  # operators can be read from TFLite without importing onnx
    import onnx


def matrices_fit(layer: Layer[MatMul]) -> bool:
    """The first input's rows are as long as the second's columns."""
    return layer.input(0).shape[-1] == layer.input(1).shape[-2]


@dataclass(frozen=True)
class MatMul(Op):
    """(..., m, k) x (..., k, n); leading axes broadcast."""

    operands = (present(2), at_least_rank(0, 2), at_least_rank(1, 2), matrices_fit)
    depends_on_cpu = True
    round_once: bool = False  # as ONNX does; else as TensorFlow Lite does

    def carried_axis(self, layer: Layer, index: int, axis: int) -> tuple[int, ...] | None:
        """Rows of the first matrix, and columns of the second, are computed one by one."""
        behind = len(layer.input(index).shape) - axis
        return (len(layer.output.shape) - behind,) if behind != (1 if index == 0 else 2) else None

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        a, b = given(inputs, 0), given(inputs, 1)
        lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        return (TensorType((*lead, a.shape[-2], b.shape[-1]), a.dtype),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        a, b = given(inputs, 0), given(inputs, 1)
        if layer.output.quant is not None:
            return (integers.evaluate(layer, a, b, self.round_once),)
        return (np.matmul(a, b).astype(layer.output.dtype.numpy),)

    def macs(self, layer: Layer) -> int:
        return layer.output.elements * layer.input(0).shape[-1]

    def quantized(
        self, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]
    ) -> tuple[Op, Sequence[Tensor | None]] | None:
        fits = integers.has_integer_form(inputs[0], inputs[1], outputs[0])
        return (replace(self, round_once=True), inputs) if fits else None


def output_walks(layer: Layer) -> tuple[tuple[int, ...], dict[str, c.Walk]]:
    """Loops over the output; ``a`` is the first element of a row, ``b`` of a column."""
    a, b, y = layer.input(0), layer.input(1), layer.output
    m, k, n = a.shape[-2], a.shape[-1], b.shape[-1]
    lead = y.shape[:-2]
    a_lead = c.broadcast_strides(a.shape[:-2], lead)
    b_lead = c.broadcast_strides(b.shape[:-2], lead)
    return (*lead, m, n), {
        "y": c.Walk(c.contiguous(y.shape)),
        "a": c.Walk((*(s * m * k for s in a_lead), k, 0)),
        "b": c.Walk((*(s * k * n for s in b_lead), 0, 1)),
    }


def output_nest(layer: Layer) -> c.Nest:
    return c.nest(*output_walks(layer))


def integer_form(layer: Layer) -> bool:
    """All tensors are int8, or int16 with zero points of 0, and quantised per tensor."""
    return integers.has_integer_form(layer.input(0), layer.input(1), layer.output)


class MatMulQuantized(Kernel[MatMul]):
    """Integer sums of products, rescaled once."""

    name = "integer matmul loops"
    constraints = (integer_form,)

    def emit(self, layer: Layer[MatMul], sheet: Sheet) -> None:
        op, b = layer.op, layer.input(1)
        integers.emit(layer, sheet, output_nest(layer), b.shape[-2], b.shape[-1], op.round_once)

    def play(self, layer: Layer[MatMul], sheet: Sheet) -> None:
        if layer.output.dtype not in (DType.INT8, DType.INT16):
            raise NotPlayableError(f"the player has no product of matrices of {layer.output.dtype.value}")
        integers.play(layer, sheet, played_loops(layer), layer.op.round_once)


def played_loops(layer: Layer) -> dict[str, object]:
    """Members of the player's loops over the output, and over the sum of each element."""
    if layer.output.elements == 0 or layer.input(0).shape[-1] == 0:
        raise NotPlayableError("the player has no product of empty matrices")
    shape, walks = output_walks(layer)
    extents, (a, b, _) = merged(shape, walks["a"].strides, walks["b"].strides, walks["y"].strides)
    return {
        **array("extents", extents, 1),
        **array("a_steps", a, 0),
        **array("b_steps", b, 0),
        ".depth": layer.input(0).shape[-1],
        ".b_step": layer.input(1).shape[-1],
    }


def same_plain_type(layer: Layer) -> bool:
    """Both operands and the output have the same type and are not quantised."""
    tensors = (layer.input(0), layer.input(1), layer.output)
    return len({t.dtype for t in tensors}) == 1 and all(t.quant is None for t in tensors)


class MatMulLoops(Kernel[MatMul]):
    """A sum of products for each element of the output."""

    name = "matmul loops"
    constraints = (same_plain_type,)

    def emit(self, layer: Layer[MatMul], sheet: Sheet) -> None:
        k, n, y = layer.input(0).shape[-1], layer.input(1).shape[-1], layer.output
        nest = output_nest(layer)
        zero = sheet.number(0, y.dtype)
        # integers wrap, which C allows only for unsigned types
        sum_type = "uint64_t" if y.dtype.bytes == 8 else "uint32_t"
        wrap, back = ("", "") if y.dtype.is_float else (f"({sum_type})", f"({y.dtype.c})")
        with sheet.loops(nest) as index:
            sheet.line(f"{y.dtype.c if y.dtype.is_float else sum_type} acc = {zero};")
            with sheet.loop("k", k):
                left = f"{sheet.x(0)}[{index['a']} + k]"
                right = f"{sheet.x(1)}[{index['b']} + k * {n}]"
                sheet.line(f"acc += {wrap}{left} * {wrap}{right};")
            sheet.line(f"{sheet.y()}[{index['y']}] = {back}acc;")

    def play(self, layer: Layer[MatMul], sheet: Sheet) -> None:
        kind = {DType.FLOAT32: "f32", DType.INT32: "s32"}.get(layer.output.dtype)
        if kind is None:
            raise NotPlayableError(f"the player has no product of matrices of {layer.output.dtype.value}")
        sheet.note(f"tinyml_play_matmul_{kind}", played_loops(layer), sheet.x(0), sheet.x(1), sheet.y())


register_kernels(MatMul, MatMulQuantized(), MatMulLoops())


def matmul(build: Builder, a: Tensor, b: Tensor, bias: Tensor | None = None) -> Tensor:
    """a x b (+ bias), as Dense wherever the right side is two-dimensional and comes from constants."""
    if len(b.shape) == 2 and b.dtype is DType.FLOAT32 and _from_constants(build, b):
        w = build.add1(Transpose((1, 0)), [b])
        if bias is None or _from_constants(build, bias):
            return build.add1(Dense(), [a, w, bias] if bias is not None else [a, w])
        return build.add1(Binary("add"), [build.add1(Dense(), [a, w]), bias])
    y = build.add1(Binary("mul"), [a, b]) if _is_number(a, b) else build.add1(MatMul(), [a, b])
    return y if bias is None else build.add1(Binary("add"), [y, bias])


def _is_number(a: Tensor, b: Tensor) -> bool:
    """Whether ``a`` is a single number with rows of one element, as in attention over a single token."""
    alone = a.is_constant and a.shape[-2:] == (1, 1) and b.shape[-2] == 1
    return alone and np.ptp(a.value) == 0 and np.broadcast_shapes(a.shape, b.shape) == b.shape


def _from_constants(build: Builder, tensor: Tensor) -> bool:
    """Whether a tensor is a constant, or becomes one as soon as the QDQ fusion has run."""
    if tensor.is_constant:
        return True
    producer = build.producer(tensor)
    return producer is not None and all(
        not name or _from_constants(build, build.tensors[name]) for name in producer.inputs
    )


quantizes("MatMul", channel_axis=lambda node, rank: rank - 1)


@onnx_op("MatMul")
def read_matmul(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    """A vector on the left is a row, on the right a column; the added axis is removed again."""
    return [_product(build, node.input(0), node.input(1))]


def _product(build: Builder, a: Tensor, b: Tensor) -> Tensor:
    row, column = len(a.shape) == 1, len(b.shape) == 1
    if row:
        a = build.add1(Reshape((1, *a.shape)), [a])
    if column:
        b = build.add1(Reshape((*b.shape, 1)), [b])
    y = matmul(build, a, b)
    if not row and not column:
        return y
    shape = (*y.shape[:-2], *(() if row else y.shape[-2:-1]), *(() if column else y.shape[-1:]))
    return build.add1(Reshape(shape), [y])


@onnx_op("MatMulInteger")
def read_matmul_integer(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    """In int32, with zero points subtracted: one, or one per row of the left or column of the right."""
    operands = []
    for index, zero in ((0, node.optional(2)), (1, node.optional(3))):
        x = cast(build, node.input(index), DType.INT32)
        if zero is not None:
            zero = cast(build, zero, DType.INT32)
            if index == 0 and zero.elements > 1 and len(zero.shape) == 1:
                zero = build.add1(Reshape((*zero.shape, 1)), [zero])
            x = build.add1(Binary("sub"), [x, zero])
        operands.append(x)
    return [_product(build, *operands)]


def _gemm_channels(node: onnx.NodeProto, rank: int) -> int:
    return 0 if any(a.name == "transB" and a.i for a in node.attribute) else 1


quantizes("Gemm", channel_axis=_gemm_channels)


@onnx_op("Gemm")
def read_gemm(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    a, b, bias = node.input(0), node.input(1), node.optional(2)
    if node.attr("transA", 0):
        a = build.add1(Transpose((1, 0)), [a])
    if node.attr("transB", 0):
        b = build.add1(Transpose((1, 0)), [b])
    alpha, beta = float(node.attr("alpha", 1.0)), float(node.attr("beta", 1.0))
    if alpha != 1.0:
        b = build.add1(Binary("mul"), [b, build.constant(np.asarray(alpha, b.dtype.numpy))])
    if bias is not None and beta != 1.0:
        bias = build.add1(Binary("mul"), [bias, build.constant(np.asarray(beta, bias.dtype.numpy))])
    if bias is not None and bias.shape != (b.shape[1],):  # a full matrix, or something to broadcast
        return [build.add1(Binary("add"), [matmul(build, a, b), bias])]
    return [matmul(build, a, b, bias)]


@tflite_op("BATCH_MATMUL")
def read_tflite(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    a, b, options, output = node.input(0), node.input(1), node.options, node.outputs[0]
    if options.AdjX():
        a = swapped(build, a)
    if options.AdjY():
        b = swapped(build, b)
    if output.dtype is DType.INT32 and a.quant is not None and b.quant is not None:
        stored = [cast(build, with_quant(build, x, None), DType.INT32) for x in (a, b)]
        return [build.add1(MatMul(), stored)]  # of the stored integers, whatever their zero points are
    return [product(build, a, b, output)]


def swapped(build: Builder, x: Tensor) -> Tensor:
    """The last two axes in the other order."""
    rank = len(x.shape)
    return build.add1(Transpose((*range(rank - 2), rank - 1, rank - 2)), [x])


def product(build: Builder, a: Tensor, b: Tensor, output: TensorType) -> Tensor:
    """a x b as TFLite has it: quantised, float, or float with quantised constants."""
    a, b = (real_weights(build, other, x) for x, other in ((a, b), (b, a)))
    if output.quant is None and a.quant is None and b.quant is None:
        return matmul(build, a, b) if a.dtype is DType.FLOAT32 else build.add1(MatMul(), [a, b], output)
    if integers.has_integer_form(a, b, output):
        return build.add1(MatMul(), [a, b], output)
    return in_real_numbers(build, MatMul(), [a, b], output)


@tflite_op("FULLY_CONNECTED")
def read_fully_connected(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    x, w, bias, options = node.input(0), node.input(1), node.optional(2), node.options
    if options.WeightsFormat():
        raise UnsupportedError(f"{node.op_type} operator {node.name!r} has shuffled weights")
    if not options.KeepNumDims():  # leading axes are flattened into rows
        x = build.add1(Reshape((x.elements // w.shape[1], w.shape[1])), [x])
    w = layer_weights(node, build, x, w)
    plain = bias is None and node.clamp == NO_CLAMP
    if w.is_constant or (w.quant is not None and not plain):
        return [build.add1(Dense(clamp=node.clamp), [x, w, layer_bias(build, x, bias)], node.outputs[0])]
    result = product(build, x, swapped(build, w), node.outputs[0] if plain else TensorType((), DType.FLOAT32))
    if plain:
        return [result]
    bias = bias or build.constant(np.zeros(w.shape[0], np.float32))
    return [build.add1(Binary("add", clamp=node.clamp), [result, bias])]


@onnx_writer(MatMul)
def write_onnx(op: MatMul, layer: Layer, x: list[str], y: str, out: OnnxWriter) -> None:
    out.node("MatMul", x[:2], y)
