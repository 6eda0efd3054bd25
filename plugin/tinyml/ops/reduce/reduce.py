# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Reduce: many elements along some axes become one. The axes stay, with extent 1."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from tinyml.base import c
from tinyml.base.errors import UnsupportedError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Layer, Op, Tensor, TensorType, given
from tinyml.ops.elementwise.element_loops import fill, include_for
from tinyml.ops.framework.kernel import Kernel, Sheet, register_kernels
from tinyml.ops.framework.play_loops import nests
from tinyml.ops.framework.play_sheet import NotPlayableError
from tinyml.ops.framework.quantization_facts import quantizes
from tinyml.ops.framework.reading import Builder, OnnxNode, TfliteNode, onnx_op, tflite_op
from tinyml.ops.framework.writing import OnnxWriter, element_type, onnx_writer
from tinyml.ops.reduce import reduce_int8 as integers
from tinyml.ops.reshape import Reshape
from tinyml.ops.shared.axes import Split, count, inner_loop, kept_shape, normalized
from tinyml.ops.shared.operands import axes_exist, present
from tinyml.ops.shared.quant import is_quantized
from tinyml.ops.shared.real import in_real_numbers


@dataclass(frozen=True)
class Function:
    """In numpy, and in C: the initial value, the step that includes ``x``, the final expression."""

    numpy: Callable[[Array, tuple[int, ...]], Array]
    start: str = "0"
    step: str = "acc += {x}"
    finish: str = "{acc}"
    types: str = "real whole"


def _plain(function: Callable[..., Array]) -> Callable[[Array, tuple[int, ...]], Array]:
    return lambda x, axes: function(x, axis=axes, keepdims=True, dtype=x.dtype)


def _mean(x: Array, axes: tuple[int, ...]) -> Array:
    total = np.sum(x, axis=axes, keepdims=True, dtype=x.dtype)
    number = count(x.shape, axes)
    return total / x.dtype.type(number) if x.dtype.kind == "f" else np.fix(total / number)


def _extreme(function: Callable[..., Array], worst: float) -> Callable[[Array, tuple[int, ...]], Array]:
    def reduce(x: Array, axes: tuple[int, ...]) -> Array:
        if x.dtype.kind == "b":
            return function(x, axis=axes, keepdims=True, initial=worst > 0)
        if x.dtype.kind == "f":
            return function(x, axis=axes, keepdims=True, initial=worst)
        low, high = DType.of(x).limits
        return function(x, axis=axes, keepdims=True, initial=high if worst > 0 else low)

    return reduce


def _log_sum_exp(x: Array, axes: tuple[int, ...]) -> Array:
    largest = np.max(x, axis=axes, keepdims=True, initial=-np.inf)
    shift = np.where(np.isfinite(largest), largest, 0)
    return np.log(np.sum(np.exp(x - shift), axis=axes, keepdims=True)) + shift


FUNCTIONS = {
    "sum": Function(_plain(np.sum)),
    "mean": Function(_mean, finish="{acc} / {count}"),
    "prod": Function(_plain(np.prod), "1", "acc *= {x}"),
    "l1": Function(lambda x, axes: _plain(np.sum)(np.abs(x), axes), step="acc += {abs}"),
    "l2": Function(
        lambda x, axes: np.sqrt(_plain(np.sum)(np.square(x), axes)),
        step="acc += {x} * {x}",
        finish="{sqrt}({acc})",
    ),
    "sum_square": Function(lambda x, axes: _plain(np.sum)(np.square(x), axes), step="acc += {x} * {x}"),
    "log_sum": Function(lambda x, axes: np.log(_plain(np.sum)(x, axes)), finish="{log}({acc})", types="real"),
    "log_sum_exp": Function(
        _log_sum_exp, step="acc += {exp}({x} - shift)", finish="{log}({acc}) + shift", types="real"
    ),
    "max": Function(_extreme(np.max, -np.inf), types="real whole truth"),
    "min": Function(_extreme(np.min, np.inf), types="real whole truth"),
    "any": Function(
        lambda x, axes: np.any(x, axis=axes, keepdims=True), "false", "acc = acc || {x}", types="truth"
    ),
    "all": Function(
        lambda x, axes: np.all(x, axis=axes, keepdims=True), "true", "acc = acc && {x}", types="truth"
    ),
}
EXTREMES = ("max", "min")
PLAYED_WHOLE = {"max": 0, "any": 0, "min": 1, "all": 1, "sum": 2, "prod": 3, "l1": 4, "sum_square": 5}
"""Reductions of integers and truth values: enum tinyml_play_whole_reduction."""
LONG_SUM_TERMS = 1024
"""With this many terms, a plain float sum would lose more than 1e-5 of the result."""


@dataclass(frozen=True)
class Reduce(Op):
    """y = function(x along axes)."""

    operands = (present(1), axes_exist)
    depends_on_cpu = True
    function: str = "sum"
    axes: tuple[int, ...] = ()
    round_once: bool = False  # halves to even, as ONNX does; else as TensorFlow Lite does

    def label(self) -> str:
        return f"reduce_{self.function}"

    def channelwise(self, layer: Layer) -> bool:
        return len(layer.output.shape) - 1 not in self.axes

    def carried_axis(self, layer: Layer, index: int, axis: int) -> tuple[int, ...] | None:
        return None if axis in self.axes else (axis,)

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x = given(inputs, 0)
        quant = x.quant if self.function in EXTREMES else None
        return (TensorType(kept_shape(x.shape, self.axes), x.dtype, quant),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        if layer.output.quant is not None and self.function not in EXTREMES:
            return (integers.evaluate(self.function, self.axes, layer, given(inputs, 0), self.round_once),)
        with np.errstate(all="ignore"):
            result = FUNCTIONS[self.function].numpy(given(inputs, 0), self.axes)
        return (result.astype(layer.output.dtype.numpy),)

    def permuted(self, layer: Layer, perm: Sequence[int]) -> Op | None:
        return replace(self, axes=tuple(sorted(perm.index(axis) for axis in self.axes)))

    def selects(self, inputs: Sequence[Tensor | None]) -> bool:
        return self.function in EXTREMES and given(inputs, 0).elements > 0

    def quantized(
        self, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]
    ) -> tuple[Op, Sequence[Tensor | None]] | None:
        x, y = inputs[0], outputs[0]
        same = x is not None and x.quant == y.quant and x.dtype is y.dtype
        order_kept = self.function in EXTREMES and is_quantized(x, DType.INT8, DType.UINT8, DType.INT16)
        fits = (same and order_kept) or integers.has_integer_form(self.function, self.axes, x, y)
        return (replace(self, round_once=True), inputs) if fits else None


def defined(layer: Layer[Reduce]) -> bool:
    """The reduction is defined for this element type (for quantised tensors, only max and min)."""
    op, x, y = layer.op, layer.input(0), layer.output
    if x.quant is not None:
        return op.function in EXTREMES and x.quant == y.quant and not x.quant.per_channel
    kind = "real" if x.dtype.is_float else "truth" if x.dtype is DType.BOOL else "whole"
    return kind in FUNCTIONS[op.function].types.split()


def integer_form(layer: Layer[Reduce]) -> bool:
    """The layer is a sum or mean of int8 or int16 tensors, quantised per tensor; accumulators fit into 32
    bits."""
    return integers.has_integer_form(layer.op.function, layer.op.axes, layer.input(0), layer.output)


class ReduceQuantized(Kernel[Reduce]):
    """Integer sums, rescaled once."""

    name = "integer reduce loops"
    constraints = (integer_form,)

    def emit(self, layer: Layer[Reduce], sheet: Sheet) -> None:
        integers.emit(layer.op.function, layer.op.axes, layer, sheet, layer.op.round_once)

    def play(self, layer: Layer[Reduce], sheet: Sheet) -> None:
        integers.play(layer.op.function, layer.op.axes, layer, sheet, layer.op.round_once)


class ReduceLoops(Kernel[Reduce]):
    """An accumulator inside the loops over what stays."""

    name = "reduce loops"
    constraints = (defined,)

    def emit(self, layer: Layer[Reduce], sheet: Sheet) -> None:
        op, x = layer.op, layer.input(0)
        split = Split(x.shape, op.axes)
        with sheet.loops(split.outer()) as index:
            if op.function in EXTREMES:
                largest(sheet, split, index["x"], x.dtype, "acc", op.function)
                result = "acc"
            else:
                if op.function == "log_sum_exp":
                    largest(sheet, split, index["x"], x.dtype, "top", "max")
                    finite = f"{sheet.maths('fabs', x.dtype)}(top) < ({x.dtype.c}){sheet.number(np.inf)}"
                    sheet.line(f"const {x.dtype.c} shift = {finite} ? top : 0;")
                result = _accumulate(sheet, split, index["x"], FUNCTIONS[op.function], x.dtype)
            sheet.line(f"{sheet.y()}[{index['y']}] = {result};")

    def play(self, layer: Layer[Reduce], sheet: Sheet) -> None:
        op, x = layer.op, layer.input(0)
        if x.elements == 0:
            raise NotPlayableError(f"the player has no {op.label()} of nothing")
        if not x.dtype.is_float and x.dtype is not DType.UINT64 and op.function in PLAYED_WHOLE:
            members = {
                **nests(x.shape, op.axes),
                ".type": x.dtype.code,
                ".function": PLAYED_WHOLE[op.function],
            }
            sheet.note("tinyml_play_reduce_whole", members, sheet.x(), sheet.y())
            return
        if x.dtype is not DType.FLOAT32:
            raise NotPlayableError(f"the player has no {op.label()} of {x.dtype.value}")
        number = count(x.shape, op.axes)
        members = {
            **nests(x.shape, op.axes),
            ".count": sheet.number(number),
            ".compensated": int(number >= LONG_SUM_TERMS),
        }
        sheet.note(f"tinyml_play_reduce_{op.function}_f32", members, sheet.x(), sheet.y())


def largest(sheet: Sheet, split: Split, base: c.Operand, dtype: DType, name: str, which: str = "max") -> None:
    """Lines that leave the largest (or smallest) gathered element in a variable."""
    if dtype is DType.BOOL:
        start, operator = ("false", "||") if which == "max" else ("true", "&&")
        sheet.line(f"bool {name} = {start};")
        with inner_loop(sheet, split, base) as place:
            sheet.line(f"{name} = {name} {operator} {sheet.x()}[{place}];")
        return
    low, high = (-np.inf, np.inf) if dtype.is_float else dtype.limits
    sheet.line(f"{dtype.c} {name} = {sheet.number(low if which == 'max' else high, dtype)};")
    with inner_loop(sheet, split, base) as place:
        sheet.line(f"const {dtype.c} v = {sheet.x()}[{place}];")
        better = f"v {'>' if which == 'max' else '<'} {name}"
        none = " || v != v" if dtype.is_float else ""  # NaN wins, and then stays
        sheet.line(f"{name} = {better}{none} ? v : {name};")


def _accumulate(sheet: Sheet, split: Split, base: c.Operand, function: Function, dtype: DType) -> str:
    """Lines of the loop; returns the expression of the result."""
    if dtype.is_integer:
        return _accumulate_whole(sheet, split, base, function, dtype)
    start = sheet.number(float(function.start), dtype) if dtype.is_float else function.start
    sheet.line(f"{dtype.c} acc = {start};")
    compensated = (
        dtype.is_float
        and function.step.startswith("acc += ")
        and count(split.shape, split.axes) >= LONG_SUM_TERMS
    )
    if compensated:
        sheet.line(f"{dtype.c} lost = {start};")
    with inner_loop(sheet, split, base) as place:
        x = f"{sheet.x()}[{place}]"
        if function.step.count("{x}") > 1:
            sheet.line(f"const {dtype.c} v = {x};")
            x = "v"
        absolute = fill(sheet, "{fabs}({x})", dtype, {"x": x}) if dtype.is_float else ""
        step = fill(sheet, function.step, dtype, {"x": x, "abs": absolute})
        include_for(sheet, step)
        if compensated:
            # compensated summation
            sheet.line(f"const {dtype.c} term = {step.removeprefix('acc += ')} - lost;")
            sheet.line(f"const {dtype.c} next = acc + term;")
            sheet.line()
            sheet.line("lost = (next - acc) - term;")
            sheet.line("acc = next;")
        else:
            sheet.line(f"{step};")
    number = sheet.number(count(split.shape, split.axes), dtype)
    result = fill(sheet, function.finish, dtype, {"acc": "acc", "count": number})
    include_for(sheet, result)
    return result


def _accumulate_whole(sheet: Sheet, split: Split, base: c.Operand, function: Function, dtype: DType) -> str:
    """The same for integers, in the unsigned type in which they wrap."""
    wide = "uint64_t" if dtype.bytes == 8 else "uint32_t"
    sheet.line(f"{wide} acc = {function.start};")
    with inner_loop(sheet, split, base) as place:
        sheet.line(f"const {wide} v = ({wide}){sheet.x()}[{place}];")
        absolute = f"({sheet.x()}[{place}] < 0 ? 0 - v : v)" if dtype.is_signed else "v"
        sheet.line(f"{function.step.format(x='v', abs=absolute)};")
    if "{sqrt}" in function.finish:
        return f"({dtype.c}){sheet.maths('sqrt', DType.FLOAT64)}((double)acc)"
    words = {"acc": f"({dtype.c})acc", "count": count(split.shape, split.axes)}
    return f"({dtype.c})({function.finish.format_map(words)})"


register_kernels(Reduce, ReduceQuantized(), ReduceLoops())


ONNX_NAMES = {
    "ReduceSum": "sum",
    "ReduceMean": "mean",
    "ReduceMax": "max",
    "ReduceMin": "min",
    "ReduceProd": "prod",
    "ReduceL1": "l1",
    "ReduceL2": "l2",
    "ReduceLogSum": "log_sum",
    "ReduceLogSumExp": "log_sum_exp",
    "ReduceSumSquare": "sum_square",
}


quantizes("ReduceMean", "ReduceMax", "ReduceMin")


@onnx_op(*ONNX_NAMES)
def read_onnx(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    x = node.input(0)
    axes = node.attr("axes") if node.optional(1) is None else node.const(1).reshape(-1).tolist()
    if not axes:
        axes = () if node.attr("noop_with_empty_axes", 0) else range(len(x.shape))
    return [reduced(build, x, ONNX_NAMES[node.op_type], axes, bool(node.attr("keepdims", 1)))]


def reduced(build: Builder, x: Tensor, function: str, axes: Sequence[int], keep: bool) -> Tensor:
    """``x`` reduced; without ``keep`` the axes go."""
    axes = normalized(axes, len(x.shape))
    y = build.add1(Reduce(function, axes), [x])
    if keep:
        return y
    rest = tuple(extent for axis, extent in enumerate(x.shape) if axis not in axes)
    return build.add1(Reshape(rest), [y])


TFLITE_NAMES = {
    "MEAN": "mean",
    "SUM": "sum",
    "REDUCE_PROD": "prod",
    "REDUCE_MAX": "max",
    "REDUCE_MIN": "min",
    "REDUCE_ANY": "any",
    "REDUCE_ALL": "all",
}


@tflite_op(*TFLITE_NAMES)
def read_tflite(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    x, output = node.input(0), node.outputs[0]
    axes = normalized(node.const(1).reshape(-1).tolist(), len(x.shape))
    op = Reduce(TFLITE_NAMES[node.op_type], axes)
    order_kept = op.function in EXTREMES and x.quant == output.quant
    if output.quant is None or order_kept or integers.has_integer_form(op.function, axes, x, output):
        y = build.add1(op, [x], output)
    else:
        y = in_real_numbers(build, op, [x], output)
    if node.options.KeepDims():
        return [y]
    return [build.add1(Reshape(tuple(d for a, d in enumerate(x.shape) if a not in axes)), [y])]


WRITTEN = {function: name for name, function in ONNX_NAMES.items()}


@onnx_writer(Reduce)
def write_onnx(op: Reduce, layer: Layer, x: list[str], y: str, out: OnnxWriter) -> None:
    function, source = op.function, x[0]
    truth = {"any": "max", "all": "min"}.get(function)
    if truth is not None:  # of bytes, which are 0 or 1
        function, source = truth, out.node("Cast", x, to=element_type(DType.UINT8))
    if function not in WRITTEN or not op.axes:  # onnxruntime has other functions of no axes than ONNX
        raise UnsupportedError(f"the reduction {op.function} cannot be quantised")
    operands = [source, out.integers(op.axes, "axes")]
    result = out.node(WRITTEN[function], operands, "" if truth else y, keepdims=1)
    if truth is not None:
        out.node("Cast", [result], y, to=element_type(DType.BOOL))
