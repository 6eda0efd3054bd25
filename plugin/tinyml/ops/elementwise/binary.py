# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Binary: element-wise operators with two operands and broadcasting. One row of a table each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from tinyml.base.errors import UnsupportedError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.cores.targets import Target
from tinyml.ir import Array, DType, Layer, Op, Tensor, TensorType, given
from tinyml.ir.hook_types import Affine, RowWindow
from tinyml.ops.elementwise import binary_int8 as integers
from tinyml.ops.elementwise import binary_played
from tinyml.ops.elementwise import compare_int8 as comparisons
from tinyml.ops.elementwise.binary_functions import FUNCTIONS
from tinyml.ops.elementwise.element_loops import (
    ElementwiseKernel,
    apply_clamp,
    broadcast,
    broadcasting,
    emit_loops,
    fill,
)
from tinyml.ops.framework.kernel import Library, Sheet, register_kernels
from tinyml.ops.framework.quantization_facts import quantizes
from tinyml.ops.framework.reading import Builder, OnnxNode, TfliteNode, onnx_op, tflite_op
from tinyml.ops.reshape import with_quant
from tinyml.ops.shared.clamped import Clamped
from tinyml.ops.shared.operands import present
from tinyml.ops.shared.quant import NO_CLAMP, clamp_range, limits_are_exact
from tinyml.ops.shared.real import in_real_numbers


@dataclass(frozen=True)
class Binary(Clamped):
    """y = clamp(function(a, b)); on quantised tensors with the meaning that their parameters give."""

    operands = (present(2), broadcasting)
    elementwise: ClassVar[bool] = True
    function: str = "add"
    round_once: bool = False  # halves to even, as ONNX does; else as TensorFlow Lite does

    def label(self) -> str:
        return self.function

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        compares = FUNCTIONS[self.function].compares
        return (TensorType(broadcast(inputs), DType.BOOL if compares else given(inputs, 0).dtype),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        a, b = given(inputs, 0), given(inputs, 1)
        if layer.output.quant is not None:
            return (integers.evaluate(self.function, self.clamp, layer, a, b, self.round_once),)
        if layer.input(0).quant is not None:
            return (comparisons.evaluate(self.function, layer, a, b),)
        with np.errstate(all="ignore"):
            result = FUNCTIONS[self.function].numpy(a, b).astype(layer.output.dtype.numpy)
        return (apply_clamp(result, self.clamp, layer.output),)

    def row_window(self, layer: Layer, axis: int) -> RowWindow | None:
        y, operands = layer.output, [layer.input(0), layer.input(1)]
        alike = all(not t.is_constant and t.shape == y.shape for t in operands)
        return RowWindow.row_by_row(y.shape[axis]) if alike else None

    def affine(self, layer: Layer) -> Affine | None:
        """One operand is a constant with one value per channel, or with a single value."""
        if self.function not in ("add", "sub", "mul", "div"):
            return None
        if any(t is None or t.dtype is not DType.FLOAT32 or t.quant is not None for t in layer.inputs):
            return None
        constants = [i for i in (0, 1) if layer.input(i).is_constant]
        if len(constants) != 1 or not layer.output.shape:
            return None
        (index,) = constants
        x, c = layer.input(1 - index), layer.input(index)
        channels = layer.output.shape[-1]
        if x.shape != layer.output.shape or c.elements not in (1, c.shape[-1] if c.shape else 1):
            return None
        values = np.broadcast_to(c.value.reshape(-1).astype(np.float64), (channels,))
        one, zero = np.ones(channels), np.zeros(channels)
        if self.function == "mul":
            return Affine(1 - index, values, zero)
        if self.function == "add":
            return Affine(1 - index, one, values)
        if self.function == "sub":
            return Affine(0, one, -values) if index == 1 else Affine(1, -one, values)
        return Affine(0, 1 / values, zero) if index == 1 and np.all(values) else None

    def identity_of(self, layer: Layer) -> int | None:
        """The variable operand of x * 1, x / 1, x + 0 or x - 0."""
        function = FUNCTIONS[self.function]
        if function.neutral is None or layer.output.quant is not None or self.clamp != NO_CLAMP:
            return None
        for index in (1, 0) if function.commutes else (1,):
            constant = layer.input(index)
            if constant.is_constant and not layer.input(1 - index).is_constant:
                return 1 - index if np.all(constant.value == function.neutral) else None
        return None

    def permuted(self, layer: Layer, perm: Sequence[int]) -> Op | None:
        return self if len(layer.output.shape) == len(perm) else None

    def selects(self, inputs: Sequence[Tensor | None]) -> bool:
        return self.function in ("max", "min") and limits_are_exact(self.clamp, given(inputs, 0))

    def quantized(
        self, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]
    ) -> tuple[Op, Sequence[Tensor | None]] | None:
        fits = integers.has_integer_form(self.function, inputs[0], inputs[1], outputs[0])
        return (replace(self, round_once=True), inputs) if fits else None


def integer_form(layer: Layer[Binary]) -> bool:
    """All tensors are quantised per tensor, int8 or int16, and the function has an integer form."""
    return integers.has_integer_form(layer.op.function, layer.input(0), layer.input(1), layer.output)


class BinaryQuantized(ElementwiseKernel[Binary]):
    """Fixed-point arithmetic inside a loop nest."""

    name = "fixed-point loops"
    in_bands = True
    constraints = (integer_form,)

    def emit(self, layer: Layer[Binary], sheet: Sheet) -> None:
        integers.emit(layer.op.function, layer.op.clamp, layer, sheet, layer.op.round_once)

    def play(self, layer: Layer[Binary], sheet: Sheet) -> None:
        binary_played.play(layer.op.function, layer.op.clamp, layer, sheet, layer.op.round_once)


def one_step(layer: Layer[Binary]) -> bool:
    """The layer adds int8 tensors of the same shape, and one rescaling step gives the same bytes as three."""
    a, b, y = layer.input(0), layer.input(1), layer.output
    if not a.shape == b.shape == y.shape or y.dtype is not DType.INT8:
        return False
    return integers.linear_sum(layer.op.function, layer.op.clamp, layer, layer.op.round_once) is not None


class AddHelium(ElementwiseKernel[Binary]):
    """Four sums at a time."""

    name = "tinyml_add_mve_s8"
    library = Library.PORTABLE
    sources = ("elementwise/add_mve_s8.c",)
    in_bands = True
    constraints = (integer_form, one_step)

    def runs_on(self, target: Target) -> bool:
        return target.mve

    def emit(self, layer: Layer[Binary], sheet: Sheet) -> None:
        form = integers.linear_sum(layer.op.function, layer.op.clamp, layer, layer.op.round_once)
        assert form is not None
        low, high = clamp_range(layer.op.clamp, layer.output)
        sheet.include("<tinyml/add.h>")
        members = binary_played.linear_members(form, layer.output.elements, (low, high))
        name = sheet.record("struct tinyml_add_s8", "params", members)
        sheet.call(self.name, name, sheet.x(0), sheet.x(1), sheet.y())


def comparable_bytes(layer: Layer[Binary]) -> bool:
    """The layer compares int8 tensors that are quantised per tensor, with scales below 1."""
    return comparisons.has_integer_form(layer.op.function, layer.input(0), layer.input(1))


class CompareQuantized(ElementwiseKernel[Binary]):
    """Both operands on one scale, in fixed point."""

    name = "fixed-point comparison loops"
    constraints = (comparable_bytes,)

    def emit(self, layer: Layer[Binary], sheet: Sheet) -> None:
        comparisons.emit(layer.op.function, layer, sheet)

    def play(self, layer: Layer[Binary], sheet: Sheet) -> None:
        comparisons.play(layer.op.function, layer, sheet)


def same_types(layer: Layer[Binary]) -> bool:
    """Both operands have the same type, and the operation is defined for it."""
    op, a, b = layer.op, layer.input(0), layer.input(1)
    defined = FUNCTIONS[op.function].c.choose(a.dtype)
    return a.dtype is b.dtype and bool(defined)


def not_quantized(layer: Layer) -> bool:
    """The tensors are floating point, or integers without quantisation."""
    return all(t is None or t.quant is None for t in (*layer.inputs, *layer.outputs))


class BinaryLoops(ElementwiseKernel[Binary]):
    """The expression inside a loop nest."""

    name = "element-wise loops"
    in_bands = True
    constraints = (not_quantized, same_types)

    def emit(self, layer: Layer[Binary], sheet: Sheet) -> None:
        op, a = layer.op, layer.input(0)
        template = FUNCTIONS[op.function].c.choose(a.dtype)

        def value(operands: Sequence[str]) -> str:
            return fill(sheet, template, a.dtype, {"a": operands[0], "b": operands[1]})

        emit_loops(layer, sheet, value, op.clamp)

    def play(self, layer: Layer[Binary], sheet: Sheet) -> None:
        if layer.output.dtype is DType.FLOAT32 and layer.op.function in binary_played.FLOAT:
            binary_played.play_float(layer.op.function, layer.op.clamp, layer, sheet)
        elif layer.output.dtype is DType.BOOL and layer.op.function in binary_played.COMPARISONS:
            binary_played.play_compare(layer.op.function, layer, sheet)
        else:
            binary_played.play_whole(layer.op.function, layer.op.clamp, layer, sheet)


register_kernels(Binary, AddHelium(), BinaryQuantized(), CompareQuantized(), BinaryLoops())


ONNX_NAMES = {
    "Add": "add",
    "Sub": "sub",
    "Mul": "mul",
    "Div": "div",
    "And": "and",
    "Or": "or",
    "Xor": "xor",
    "BitwiseAnd": "bitwise_and",
    "BitwiseOr": "bitwise_or",
    "BitwiseXor": "bitwise_xor",
    "Equal": "equal",
    "Less": "less",
    "LessOrEqual": "less_equal",
    "Greater": "greater",
    "GreaterOrEqual": "greater_equal",
}


quantizes("Add", "Sub", "Mul", "Div", "Max", "Min", "PRelu")


@onnx_op(*ONNX_NAMES)
def read_onnx(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    return [build.add1(Binary(ONNX_NAMES[node.op_type]), [node.input(0), node.input(1)])]


@onnx_op("Mod")
def read_mod(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    return [build.add1(Binary("fmod" if node.attr("fmod", 0) else "mod"), [node.input(0), node.input(1)])]


@onnx_op("BitShift")
def read_shift(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    direction = node.attr("direction", "")
    if direction not in ("LEFT", "RIGHT"):
        raise UnsupportedError(f"BitShift has the unknown direction {direction!r}", "LEFT or RIGHT")
    return [build.add1(Binary(f"shift_{direction.lower()}"), [node.input(0), node.input(1)])]


@onnx_op("PRelu")
def read_prelu(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    return [build.add1(Binary("prelu"), [node.input(0), node.input(1)])]


@onnx_op("Min", "Max", "Sum", "Mean")
def read_variadic(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    """Applied from left to right, two operands at a time."""
    function = {"Min": "min", "Max": "max"}.get(node.op_type, "add")
    y = node.input(0)
    for index in range(1, len(node.inputs)):
        y = build.add1(Binary(function), [y, node.input(index)])
    if node.op_type == "Mean" and len(node.inputs) > 1:
        factor = np.asarray(len(node.inputs), y.dtype.numpy)
        y = build.add1(Binary("div"), [y, build.constant(factor)])
    return [y]


TFLITE_NAMES = {
    "ADD": "add",
    "SUB": "sub",
    "MUL": "mul",
    "DIV": "div",
    "FLOOR_DIV": "floor_div",
    "FLOOR_MOD": "mod",
    "MAXIMUM": "max",
    "MINIMUM": "min",
    "SQUARED_DIFFERENCE": "squared_difference",
    "ATAN2": "atan2",
    "PRELU": "prelu",
    "EQUAL": "equal",
    "NOT_EQUAL": "not_equal",
    "LESS": "less",
    "LESS_EQUAL": "less_equal",
    "GREATER": "greater",
    "GREATER_EQUAL": "greater_equal",
    "LOGICAL_AND": "and",
    "LOGICAL_OR": "or",
    "BITWISE_XOR": "bitwise_xor",
}


@tflite_op(*TFLITE_NAMES)
def read_tflite(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    op = Binary(TFLITE_NAMES[node.op_type], clamp=node.clamp)
    a, b, output = node.input(0), node.input(1), node.outputs[0]
    if node.op_type in ("FLOOR_DIV", "FLOOR_MOD") and a.dtype.is_integer:  # of the stored integers
        return [build.add1(op, [with_quant(build, x, None) for x in (a, b)])]
    _check_powers_of_two(node)
    plain = a.quant is None and b.quant is None and output.quant is None
    whole = integers.has_integer_form(op.function, a, b, output)
    if plain or whole or comparisons.has_integer_form(op.function, a, b):
        return [build.add1(op, [a, b], output)]
    if op.function == "div" and output.dtype is DType.UINT8:
        build.note("DIV of uint8 is computed in float; LiteRT's integers can differ by one step")
    return [in_real_numbers(build, op, [a, b], output)]


def _check_powers_of_two(node: TfliteNode) -> None:
    """int16 with ``pot_scale_int16``, the default of ADD and SUB: scales are powers of two, and only shifted.

    With equal scales nothing is shifted, and both ways give the same.
    """
    if node.op_type not in ("ADD", "SUB") or node.input(0).dtype is not DType.INT16:
        return
    scales = {t.quant.scale for t in (node.input(0), node.input(1), node.outputs[0]) if t.quant is not None}
    if node.options.PotScaleInt16() and len(scales) > 1:
        raise UnsupportedError(
            f"{node.op_type} operator {node.name!r} has pot_scale_int16 and tensors of different scales",
            "convert the model again with a current converter, which writes pot_scale_int16 = false",
        )


@tflite_op("ADD_N")
def read_add_n(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    y = node.input(0)
    for index in range(1, len(node.inputs)):
        y = build.add1(Binary("add"), [y, node.input(index)], node.outputs[0])
    return [y]
