# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Unary: functions of one element. One row of a table each."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np

from tinyml.base.errors import UnsupportedError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Layer, Op, Tensor, TensorType, given
from tinyml.ops.elementwise import int16_activation, int16_table, lookup
from tinyml.ops.elementwise.element_loops import ElementwiseKernel, Templates, emit_loops, fill
from tinyml.ops.framework.kernel import Sheet, register_kernels
from tinyml.ops.framework.quantization_facts import quantizes
from tinyml.ops.framework.reading import Builder, OnnxNode, onnx_op
from tinyml.ops.framework.writing import OnnxWriter, onnx_writer
from tinyml.ops.shared.operands import present
from tinyml.ops.shared.quant import quant_of

SQRT_HALF = math.sqrt(0.5)
GELU_FACTOR = math.sqrt(2.0 / math.pi)
SELU_ALPHA = 1.67326319217681884765625
SELU_GAMMA = 1.05070102214813232421875


@dataclass(frozen=True)
class Function:
    """What one function does: in numpy (the element and the parameters), and as C of ``x``."""

    numpy: Callable[..., Array]
    c: Templates
    predicate: bool = False  # the result is a truth value


def erf(x: Array) -> Array:
    """numpy has none; in double, one at a time."""
    return np.vectorize(math.erf, otypes=[np.float64])(x)


def sigmoid(x: Array) -> Array:
    return 1.0 / (1.0 + np.exp(-x))


def softplus(x: Array) -> Array:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def _real(numpy: Callable[..., Array], code: str) -> Function:
    return Function(numpy, Templates(real=code))


def _maths(name: str, numpy: Callable[..., Array]) -> Function:
    return _real(numpy, f"{{{name}}}({{x}})")


SOFTPLUS = "({x} > 0 ? {x} : 0) + {log1p}({exp}(-{fabs}({x})))"
NEGATED = "({t})(({w})0 - ({w}){x})"

FUNCTIONS = {
    "abs": Function(np.abs, Templates("{fabs}({x})", "{x} < 0 ? " + NEGATED + " : {x}", unsigned="{x}")),
    "neg": Function(np.negative, Templates("-{x}", NEGATED)),
    "sign": Function(
        lambda x: np.where(np.isnan(x), x, (x > 0).astype(np.int8) - (x < 0).astype(np.int8)),
        Templates(
            "{x} != {x} ? {x} : ({t})(({x} > 0) - ({x} < 0))",
            "({t})(({x} > 0) - ({x} < 0))",
            unsigned="{x} > 0",
        ),
    ),
    "ceil": _maths("ceil", np.ceil),
    "floor": _maths("floor", np.floor),
    "round": _maths("rint", np.rint),  # halves to even
    "sqrt": _maths("sqrt", np.sqrt),
    "rsqrt": _real(lambda x: 1.0 / np.sqrt(x), "1.0{s} / {sqrt}({x})"),
    "square": Function(np.square, Templates("{x} * {x}", "({t})(({w}){x} * ({w}){x})")),
    "reciprocal": _real(lambda x: 1.0 / x, "1.0{s} / {x}"),
    "exp": _maths("exp", np.exp),
    "log": _maths("log", np.log),
    "sin": _maths("sin", np.sin),
    "cos": _maths("cos", np.cos),
    "tan": _maths("tan", np.tan),
    "asin": _maths("asin", np.arcsin),
    "acos": _maths("acos", np.arccos),
    "atan": _maths("atan", np.arctan),
    "sinh": _maths("sinh", np.sinh),
    "cosh": _maths("cosh", np.cosh),
    "tanh": _maths("tanh", np.tanh),
    "asinh": _maths("asinh", np.arcsinh),
    "acosh": _maths("acosh", np.arccosh),
    "atanh": _maths("atanh", np.arctanh),
    "erf": _maths("erf", erf),
    "sigmoid": _real(sigmoid, "1.0{s} / (1.0{s} + {exp}(-{x}))"),
    "softplus": _real(softplus, SOFTPLUS),
    "softsign": _real(lambda x: x / (1 + np.abs(x)), "{x} / (1.0{s} + {fabs}({x}))"),
    "mish": _real(lambda x: x * np.tanh(softplus(x)), "{x} * {tanh}(" + SOFTPLUS + ")"),
    "gelu": _real(
        lambda x: 0.5 * x * (1 + erf(x * SQRT_HALF)),
        f"0.5{{s}} * {{x}} * (1.0{{s}} + {{erf}}({{x}} * {SQRT_HALF:.17g}{{s}}))",
    ),
    "gelu_tanh": _real(
        lambda x: 0.5 * x * (1 + np.tanh(GELU_FACTOR * (x + 0.044715 * x**3))),
        f"0.5{{s}} * {{x}} * (1.0{{s}} + {{tanh}}({GELU_FACTOR:.17g}{{s}} * "
        "({x} + 0.044715{s} * {x} * {x} * {x})))",
    ),
    "swish": _real(lambda x, alpha: x * sigmoid(alpha * x), "{x} / (1.0{s} + {exp}(-{p0} * {x}))"),
    "hard_sigmoid": _real(
        lambda x, alpha, beta: np.clip(alpha * x + beta, 0, 1),
        "{x} != {x} ? {x} : {fmin}({fmax}({p0} * {x} + {p1}, 0.0{s}), 1.0{s})",
    ),
    "hard_swish": _real(
        lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
        "{x} * {fmin}({fmax}({x} * (1.0{s} / 6.0{s}) + 0.5{s}, 0.0{s}), 1.0{s})",
    ),
    "leaky_relu": _real(lambda x, alpha: np.where(x < 0, alpha * x, x), "{x} < 0 ? {p0} * {x} : {x}"),
    "elu": _real(
        lambda x, alpha: np.where(x < 0, alpha * np.expm1(x), x), "{x} < 0 ? {p0} * {expm1}({x}) : {x}"
    ),
    "celu": _real(
        lambda x, alpha: np.where(x < 0, alpha * np.expm1(x / alpha), x),
        "{x} < 0 ? {p0} * {expm1}({x} / {p0}) : {x}",
    ),
    "selu": _real(
        lambda x, alpha, gamma: gamma * np.where(x < 0, alpha * np.expm1(x), x),
        "{p1} * ({x} < 0 ? {p0} * {expm1}({x}) : {x})",
    ),
    "thresholded_relu": _real(lambda x, alpha: np.where(x > alpha, x, 0), "{x} > {p0} ? {x} : 0"),
    "shrink": Function(
        lambda x, bias, lambd: np.where(x < -lambd, x + bias, np.where(x > lambd, x - bias, 0)),
        Templates("{x} < -{p1} ? {x} + {p0} : {x} > {p1} ? {x} - {p0} : 0"),
    ),
    "not": Function(np.logical_not, Templates(truth="!{x}")),
    "bitwise_not": Function(np.bitwise_not, Templates(whole="({t})~{x}")),
    "is_nan": Function(np.isnan, Templates("{x} != {x}"), predicate=True),
    "is_inf": Function(np.isinf, Templates("{fabs}({x}) == ({t}){infinity}"), predicate=True),
    "is_positive_inf": Function(np.isposinf, Templates("{x} == ({t}){infinity}"), predicate=True),
    "is_negative_inf": Function(np.isneginf, Templates("{x} == -({t}){infinity}"), predicate=True),
}


@dataclass(frozen=True)
class Unary(Op):
    """y = function(x, parameters)."""

    operands = (present(1),)
    depends_on_cpu: ClassVar[bool] = True
    elementwise: ClassVar[bool] = True
    function: str = "abs"
    parameters: tuple[float, ...] = ()

    def label(self) -> str:
        return self.function

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x = given(inputs, 0)
        return (TensorType(x.shape, DType.BOOL if FUNCTIONS[self.function].predicate else x.dtype),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        return (self.real(given(inputs, 0)).astype(layer.output.dtype.numpy),)

    def real(self, x: Array) -> Array:
        """The function on an array of its natural type."""
        with np.errstate(all="ignore"):
            return np.asarray(FUNCTIONS[self.function].numpy(x, *self.parameters))

    def permuted(self, layer: Layer, perm: Sequence[int]) -> Op | None:
        return self

    def quantized(
        self, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]
    ) -> tuple[Op, Sequence[Tensor | None]] | None:
        x, y = inputs[0], outputs[0]
        if x is None:
            return None
        if lookup.takes(x, y):
            return lookup.from_function(self.function, self.real, x, y), inputs
        form = self._on_int16(x, y) if int16_activation.takes(x, y) else None
        return None if form is None else (form, inputs)

    def _on_int16(self, x: Tensor, y: Tensor) -> Op | None:
        """On int16: as TensorFlow Lite where it has such a form, else a table if that is close enough."""
        if self.function in ("sigmoid", "tanh") and int16_activation.is_unit(y):
            return int16_activation.SigmoidInt16(self.function == "tanh")
        if self.function == "leaky_relu" and self.parameters[0] > 0:
            return int16_activation.LeakyInt16(self.parameters[0], round_once=True)
        if self.function in ("abs", "neg"):
            return int16_activation.LeakyInt16(-1.0, 1.0 if self.function == "abs" else -1.0, round_once=True)
        if self.function == "hard_sigmoid" and self.parameters[0] > 0:
            alpha, beta = self.parameters
            if abs(beta) < int16_activation.LARGEST_OFFSET * quant_of(y).scale:
                return int16_activation.LeakyInt16(alpha, alpha, beta, clamp=(0.0, 1.0), round_once=True)
        return int16_table.from_function(self.function, self.real, x, y)


def defined(layer: Layer[Unary]) -> bool:
    """The function is defined for this element type."""
    op = layer.op
    return layer.input(0).quant is None and bool(FUNCTIONS[op.function].c.choose(layer.input(0).dtype))


PLAYED = frozenset(
    name
    for name, function in FUNCTIONS.items()
    if function.c.real and not function.predicate and name != "shrink"
)
"""Functions that the player has for float32."""


class UnaryLoop(ElementwiseKernel[Unary]):
    """The expression inside a loop."""

    name = "element-wise loop"
    in_bands = True
    constraints = (defined,)

    def emit(self, layer: Layer[Unary], sheet: Sheet) -> None:
        op, dtype = layer.op, layer.input(0).dtype
        template = FUNCTIONS[op.function].c.choose(dtype)
        emit_loops(
            layer, sheet, lambda operands: fill(sheet, template, dtype, {"x": operands[0]}, op.parameters)
        )

    def play(self, layer: Layer[Unary], sheet: Sheet) -> None:
        x = layer.input(0)
        if x.dtype is DType.FLOAT32 and layer.op.function in PLAYED and x.quant is None:
            numbers = (sheet.number(value) for value in layer.op.parameters)
            members = {".count": x.elements, **dict(zip((".low", ".high"), numbers, strict=False))}
            sheet.note(f"tinyml_play_{layer.op.function}_f32", members, sheet.x(), sheet.y())
        else:
            self.emit(layer, sheet)


register_kernels(Unary, UnaryLoop())


@dataclass(frozen=True)
class _Reading:
    """How ONNX spells a function: its name, and its parameters with their defaults."""

    function: str
    parameters: tuple[tuple[str, float], ...] = ()


ONNX_NAMES = {
    **{
        name: _Reading(name.lower())
        for name in (
            *("Abs", "Neg", "Sign", "Ceil", "Floor", "Round", "Sqrt", "Reciprocal", "Exp", "Log", "Erf"),
            *("Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Tanh", "Asinh", "Acosh", "Atanh"),
            *("Sigmoid", "Softplus", "Softsign", "Mish", "Not"),
        )
    },
    "BitwiseNot": _Reading("bitwise_not"),
    "IsNaN": _Reading("is_nan"),
    "HardSwish": _Reading("hard_swish"),
    "Swish": _Reading("swish", (("alpha", 1.0),)),
    "HardSigmoid": _Reading("hard_sigmoid", (("alpha", 0.2), ("beta", 0.5))),
    "LeakyRelu": _Reading("leaky_relu", (("alpha", 0.01),)),
    "Elu": _Reading("elu", (("alpha", 1.0),)),
    "Celu": _Reading("celu", (("alpha", 1.0),)),
    "Selu": _Reading("selu", (("alpha", SELU_ALPHA), ("gamma", SELU_GAMMA))),
    "ThresholdedRelu": _Reading("thresholded_relu", (("alpha", 1.0),)),
    "Shrink": _Reading("shrink", (("bias", 0.0), ("lambd", 0.5))),
}


quantizes("LeakyRelu", "Elu", "Selu", "Celu", "HardSigmoid", "HardSwish", "Softplus", "Softsign", "Mish")
quantizes("Gelu", "Exp", "Log", "Sqrt", "Reciprocal", "Abs", "Neg", "Erf")
quantizes("Sigmoid", "Tanh", scales={"int16": (1 / 32768, 0)})


@onnx_op(*ONNX_NAMES)
def read_onnx(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    reading = ONNX_NAMES[node.op_type]
    parameters = tuple(float(node.attr(name, default)) for name, default in reading.parameters)
    return [build.add1(Unary(reading.function, parameters), [node.input(0)])]


@onnx_op("Gelu")
def read_gelu(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    return [build.add1(Unary("gelu_tanh" if node.attr("approximate") == "tanh" else "gelu"), [node.input(0)])]


@onnx_op("Gelu", domain="com.microsoft")
def read_microsoft_gelu(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    return [build.add1(Unary("gelu"), [node.input(0)])]


@onnx_op("IsInf")
def read_is_inf(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    positive, negative = bool(node.attr("detect_positive", 1)), bool(node.attr("detect_negative", 1))
    x = node.input(0)
    if not positive and not negative:
        return [build.constant(np.zeros(x.shape, np.bool_))]
    which = "is_inf" if positive and negative else "is_positive_inf" if positive else "is_negative_inf"
    return [build.add1(Unary(which), [x])]


WRITTEN = {reading.function: name for name, reading in ONNX_NAMES.items() if name != "Swish"}
"""Function -> its ONNX name. Swish is newer than the opset that is written."""


@onnx_writer(Unary)
def write_onnx(op: Unary, layer: Layer, x: list[str], y: str, out: OnnxWriter) -> None:
    if op.function == "rsqrt":
        out.node("Reciprocal", [out.node("Sqrt", x)], y)
    elif op.function == "square":
        out.node("Mul", [x[0], x[0]], y)
    elif op.function == "swish":
        (alpha,) = op.parameters
        scaled = (
            x
            if alpha == 1.0
            else [out.node("Mul", [x[0], out.constant(np.asarray(alpha, np.float32), "alpha")])]
        )
        out.node("Mul", [x[0], out.node("Sigmoid", scaled)], y)
    elif op.function in ("gelu", "gelu_tanh"):
        out.node("Gelu", x, y, approximate="tanh" if op.function == "gelu_tanh" else "none")
    elif op.function in WRITTEN:
        name = WRITTEN[op.function]
        words = [word for word, _ in ONNX_NAMES[name].parameters]
        out.node(name, x, y, **dict(zip(words, op.parameters, strict=True)))
    else:
        raise UnsupportedError(f"the function {op.function} cannot be quantised")
