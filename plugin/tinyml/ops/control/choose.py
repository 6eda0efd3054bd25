# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Choose: the result of one of two branches, as a condition of the run decides (ONNX's If, TFLite's IF).

The layers of the branch that is not taken do not run: see ``ir/branches.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from tinyml.base.errors import ModelError, UnsupportedError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.base.naming import shape_text
from tinyml.ir import Array, DType, Layer, Op, Tensor, TensorType, given
from tinyml.ops.framework.kernel import Kernel, Overlay, Sheet, over_inputs, register_kernels
from tinyml.ops.framework.play_sheet import PlaySheet
from tinyml.ops.framework.reading import Builder
from tinyml.ops.shared.operands import of_type, present, same_type


def one_condition(layer: Layer) -> bool:
    """The condition has one element."""
    return layer.input(0).elements == 1


def equal_shapes(layer: Layer) -> bool:
    """Both branches give the same shape."""
    return layer.input(1).shape == layer.input(2).shape


@dataclass(frozen=True)
class Choose(Op):
    """y = condition ? a : b, as a whole."""

    operands = (present(3), of_type(0, DType.BOOL), one_condition, same_type(1, 2), equal_shapes)
    chooses: ClassVar[bool] = True

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        return (given(inputs, 1).type,)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        return (given(inputs, 1 if given(inputs, 0).reshape(()) else 2),)

    def identity_of(self, layer: Layer) -> int | None:
        condition = layer.input(0).data
        return None if condition is None else 1 if condition.reshape(()) else 2

    def quantized(
        self, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]
    ) -> tuple[Op, Sequence[Tensor | None]] | None:
        a, b, y = given(inputs, 1), given(inputs, 2), outputs[0]
        same = a.quant == b.quant == y.quant and a.dtype is b.dtype is y.dtype
        return (self, inputs) if same else None


class ChooseCopy(Kernel[Choose]):
    """A copy, unless the result is already where the branch left it."""

    name = "copy of a branch"

    def overlays(self, layer: Layer[Choose]) -> tuple[Overlay, ...]:
        return over_inputs(layer, 1, 2)

    def emit(self, layer: Layer[Choose], sheet: Sheet) -> None:
        y = layer.output
        sheet.include("<string.h>")
        sheet.line(f"const {y.dtype.c} *branch = {sheet.x(0)}[0] ? {sheet.x(1)} : {sheet.x(2)};")
        sheet.line()
        with sheet.block(f"if (branch != {sheet.y()}) {{"):
            sheet.line(f"memmove({sheet.y()}, branch, {y.bytes});")

    def play(self, layer: Layer[Choose], sheet: Sheet) -> None:
        assert isinstance(sheet, PlaySheet)
        for index in (1, 2):
            with sheet.when(sheet.x(0), index == 1):
                sheet.copy(sheet.x(index), sheet.y(), layer.output.bytes)


register_kernels(Choose, ChooseCopy())


def chosen(
    build: Builder, condition: Tensor, then: Sequence[Tensor], other: Sequence[Tensor]
) -> list[Tensor]:
    """The results of an If; both branches give as many, of the same shapes and types."""
    if len(then) != len(other):
        raise ModelError(f"the branches of an If give {len(then)} and {len(other)} results")
    if condition.dtype is not DType.BOOL or condition.elements != 1:
        raise ModelError(f"the condition {condition.name!r} of an If is not one truth value")
    found = []
    for a, b in zip(then, other, strict=True):
        if a.dtype is not b.dtype or a.quant != b.quant:
            raise UnsupportedError(
                f"an If whose branches give {a.dtype.value} and {b.dtype.value}", "both need one type"
            )
        if a.shape != b.shape:
            raise UnsupportedError(
                f"an If whose branches give two shapes, {shape_text(a.shape)} and {shape_text(b.shape)}",
                "shapes are fixed: make its condition a constant, or both branches of one shape",
            )
        found.append(a if a.name == b.name else build.add1(Choose(), [condition, a, b]))
    return found
