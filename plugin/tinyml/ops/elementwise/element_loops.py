# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What all element-wise operators share: C templates that fit any type, and the loops around them.

A template is a C expression with these words in braces: ``{x}``, ``{a}``, ``{b}`` operands; ``{t}`` the
C type; ``{s}`` the suffix of float literals (``f`` or nothing); ``{exp}``, ``{floor}`` … functions of
<math.h>; ``{w}`` the unsigned type in which integers wrap; ``{n}`` the suffix of <tinyml/scalar.h>;
``{p0}`` … parameters as literals.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tinyml.base import c
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Layer, Tensor
from tinyml.ops.framework.kernel import Kernel, O_contra, Overlay, Sheet, over_inputs
from tinyml.ops.shared.quant import NO_CLAMP, Clamp, clamp_range

Expression = Callable[[Sequence[str]], str]
"""From C expressions for the operands' elements to the value of the output's element."""


@dataclass(frozen=True)
class Templates:
    """C for each class of element types; an empty one is not defined for that class."""

    real: str = ""
    whole: str = ""
    truth: str = ""
    unsigned: str = ""  # where it differs from ``whole``: compilers warn about x < 0

    def choose(self, dtype: DType) -> str:
        if dtype.is_float:
            return self.real
        if dtype.is_integer and not dtype.is_signed and self.unsigned:
            return self.unsigned
        return self.truth if dtype is DType.BOOL else self.whole


def suffix(dtype: DType) -> str:
    """The suffix of the functions in <tinyml/scalar.h> for an integer type."""
    return f"{'s' if dtype.is_signed else 'u'}{64 if dtype.bytes == 8 else 32}"


class _Words(dict[str, str]):
    """The words of a template. One that is not among them is a function of <math.h>."""

    def __init__(self, sheet: Sheet, dtype: DType, known: Mapping[str, str]) -> None:
        super().__init__(known)
        self.sheet, self.dtype = sheet, dtype

    def __missing__(self, name: str) -> str:
        if name == "infinity":
            return self.sheet.number(math.inf)
        return self.sheet.maths(name, self.dtype)


def fill(
    sheet: Sheet,
    template: str,
    dtype: DType,
    operands: Mapping[str, str],
    parameters: Sequence[float] = (),
) -> str:
    """The C of a template for elements of ``dtype``; ``sheet`` includes the headers it needs."""
    words = _Words(sheet, dtype, {"t": dtype.c, "s": "f" if dtype is DType.FLOAT32 else "", **operands})
    words.update({f"p{i}": sheet.number(value, dtype) for i, value in enumerate(parameters)})
    if dtype.is_integer:
        words.update(w="uint64_t" if dtype.bytes == 8 else "uint32_t", n=suffix(dtype))
        words["bits"] = str(dtype.bytes * 8)
    return template.format_map(words)


def include_for(sheet: Sheet, code: str) -> None:
    """Headers that an expression needs, besides those of functions."""
    if re.search(r"\btinyml_\w+_(?:[su](?:32|64)|float|double)\(", code):
        sheet.include("<tinyml/scalar.h>")


def element(sheet: Sheet, index: int, place: c.Operand) -> str:
    """One element of an operand; a constant of one element is written as a literal."""
    tensor = sheet.layer.input(index)
    if tensor.is_constant and tensor.elements == 1:
        return literal(sheet, tensor)
    return f"{sheet.x(index)}[{place}]"


def literal(sheet: Sheet, tensor: Tensor) -> str:
    """The value of a constant of one element; a negative one in parentheses."""
    text = sheet.number(tensor.value.reshape(-1)[0], tensor.dtype)
    return f"({text})" if text.startswith("-") else text


def emit_loops(layer: Layer, sheet: Sheet, expression: Expression, clamp: Clamp = NO_CLAMP) -> None:
    """Loops over the output; every operand is broadcast to its shape."""
    y = layer.output
    walks = {"y": c.Walk(c.contiguous(y.shape))}
    for index in range(len(layer.inputs)):
        x = layer.input(index)
        if not (x.is_constant and x.elements == 1):
            walks[str(index)] = c.Walk(c.broadcast_strides(x.shape, y.shape))
    with sheet.loops(c.nest(y.shape, walks)) as places:
        operands = [element(sheet, i, places.get(str(i), "0")) for i in range(len(layer.inputs))]
        include_for(sheet, expression(operands))
        for index, operand in enumerate(operands):
            if expression(operands).count(operand) > 1 and str(index) in places:
                operands[index] = f"v{index}" if len(operands) > 1 else "v"
                sheet.line(f"const {layer.input(index).dtype.c} {operands[index]} = {operand};")
        value = expression(operands)
        if clamp != NO_CLAMP:
            sheet.line(f"const {y.dtype.c} result = {value};")
            value = clamp_code(sheet, "result", clamp, y)
        sheet.line(f"{sheet.y()}[{places['y']}] = {value};")


def stored_limits(clamp: Clamp, tensor: Tensor) -> tuple[float, float]:
    """A clamp in real numbers as limits on what is stored in ``tensor``."""
    if tensor.quant is not None:
        return clamp_range(clamp, tensor)
    if tensor.dtype.is_integer:
        lowest, highest = tensor.dtype.limits
        return max(clamp[0], lowest), min(clamp[1], highest)
    return clamp


def apply_clamp(values: Array, clamp: Clamp, tensor: Tensor) -> Array:
    """``values`` of ``tensor`` within a clamp; the upper limit is applied last."""
    if clamp == NO_CLAMP:
        return values
    low, high = stored_limits(clamp, tensor)
    return np.minimum(np.maximum(values, low), high).astype(values.dtype)


def clamp_code(sheet: Sheet, value: str, clamp: Clamp, tensor: Tensor) -> str:
    """The C of a clamp on ``value``, a name; comparisons that can never be true are left out."""
    low, high = stored_limits(clamp, tensor)
    dtype = tensor.dtype
    lowest, highest = (-np.inf, np.inf) if dtype.is_float else dtype.limits
    code = value
    if low > lowest:
        below = sheet.number(low, dtype)
        code = f"{value} < {below} ? {below} : {code}"
    if high < highest:
        above = sheet.number(high, dtype)
        code = f"{value} > {above} ? {above} : {code}"
    return code


def broadcasting(layer: Layer) -> bool:
    """The shapes of its operands broadcast to one."""
    try:
        broadcast(layer.inputs)
    except ValueError:
        return False
    return True


def broadcast(inputs: Sequence[Tensor | None]) -> tuple[int, ...]:
    """The common shape of all operands."""
    return np.broadcast_shapes(*(t.shape for t in inputs if t is not None))


class ElementwiseKernel(Kernel[O_contra]):
    """A kernel that computes the output element by element, each from its own operands."""

    def overlays(self, layer: Layer[O_contra]) -> tuple[Overlay, ...]:
        return over_inputs(layer, *replaceable(layer))


def replaceable(layer: Layer) -> tuple[int, ...]:
    """Inputs that the output may be computed in place of: same type, same shape."""
    y = layer.output
    return tuple(
        i
        for i, x in enumerate(layer.inputs)
        if x is not None and not x.is_constant and x.shape == y.shape and x.dtype is y.dtype
    )
