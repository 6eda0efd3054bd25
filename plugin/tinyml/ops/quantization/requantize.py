# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Requantize: integers to integers with another scale, zero point or type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from tinyml.base import c
from tinyml.base.errors import ModelError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Layer, Op, Tensor, TensorType, given
from tinyml.ir.hook_types import RowWindow
from tinyml.ops.framework import fixed_point as fp
from tinyml.ops.framework.kernel import InPlace, Sheet, register_kernels
from tinyml.ops.framework.play_sheet import NotPlayableError
from tinyml.ops.framework.reading import MALFORMED, Builder, TfliteNode, tflite_op
from tinyml.ops.quantization.quantize import Quantize
from tinyml.ops.shared.operands import integers, present
from tinyml.ops.shared.quant import quant_of


@dataclass(frozen=True)
class Requantize(Op):
    """Rescales by x.scale / y.scale in fixed point, as TFLite's QUANTIZE does."""

    operands = (present(1), integers(0))
    elementwise: ClassVar[bool] = True
    round_once: bool = False  # halves to even, as ONNX does; else as TensorFlow Lite does

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        return (given(inputs, 0).type,)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x, y = quant_of(layer.input(0)), quant_of(layer.output)
        centred = given(inputs, 0).astype(np.int64) - x.zero_point
        if x.scale != y.scale:
            multiply = fp.multiply_by_quantized_multiplier
            if self.round_once:
                multiply = fp.multiply_by_quantized_multiplier_to_even
            centred = multiply(centred, *fp.quantize_multiplier(x.scale / y.scale))
        return (np.clip(centred + y.zero_point, *layer.output.dtype.limits).astype(layer.output.dtype.numpy),)

    def row_window(self, layer: Layer, axis: int) -> RowWindow | None:
        """At the beginning of a model, where bytes change their type."""
        same = layer.input(0).dtype is layer.output.dtype
        return None if same else RowWindow.row_by_row(layer.output.shape[axis])

    def identity_of(self, layer: Layer) -> int | None:
        return 0  # if the quantisations are the same


class RequantizeLoop(InPlace[Requantize]):
    """A rescale and a clamp per element; only an addition where the scales are equal."""

    name = "requantize loop"
    in_bands = True

    def emit(self, layer: Layer[Requantize], sheet: Sheet) -> None:
        x, y = quant_of(layer.input(0)), quant_of(layer.output)
        low, high = layer.output.dtype.limits
        function = "tinyml_rescale_to_even" if layer.op.round_once else "tinyml_rescale"
        sheet.include("<tinyml/fixed_point.h>")
        walk = c.Walk(c.contiguous(layer.output.shape))
        with sheet.loops(c.nest(layer.output.shape, {"i": walk})) as index:
            i = index["i"]
            value = f"({sheet.x()}[{i}] - ({x.zero_point}))"
            if x.scale != y.scale:
                multiplier, shift = fp.quantize_multiplier(x.scale / y.scale)
                value = f"{function}({value}, {multiplier}, {shift})"
            sheet.line(
                f"{sheet.y()}[{i}] = ({layer.output.dtype.c})tinyml_clamp("
                f"{value} + ({y.zero_point}), {low}, {high});"
            )

    def play(self, layer: Layer[Requantize], sheet: Sheet) -> None:
        """A table of all bytes, where there are only bytes."""
        x, y = layer.input(0), layer.output
        if x.dtype.bytes != 1 or y.dtype.bytes != 1:
            self._play_words(layer, sheet)
            return
        stored = np.arange(256, dtype=np.uint8).view(x.dtype.numpy)
        (entries,) = layer.op.evaluate(layer, [stored])
        members = {".count": y.elements, ".table": sheet.table("table", entries)}
        sheet.note("tinyml_play_lookup", members, sheet.x(), sheet.y())

    def _play_words(self, layer: Layer[Requantize], sheet: Sheet) -> None:
        x, y = layer.input(0), layer.output
        known = (DType.INT8, DType.UINT8, DType.INT16)
        if x.dtype not in known or y.dtype not in known:
            raise NotPlayableError(f"the player has no requantize from {x.dtype.value} to {y.dtype.value}")
        a, b = quant_of(x), quant_of(y)
        multiplier, shift = (0, 0) if a.scale == b.scale else fp.quantize_multiplier(a.scale / b.scale)
        members = {
            ".count": y.elements,
            ".multiplier": multiplier,
            ".shift": shift,
            ".in_zero": a.zero_point,
            ".out_zero": b.zero_point,
            ".to_even": int(layer.op.round_once),
            ".from": x.dtype.code,
            ".to": y.dtype.code,
        }
        sheet.note("tinyml_play_requantize", members, sheet.x(), sheet.y())


register_kernels(Requantize, RequantizeLoop())


@tflite_op("QUANTIZE")
def read_tflite(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    x, output = node.input(0), node.outputs[0]
    if output.quant is None or (x.quant is None and not x.dtype.is_float):
        raise ModelError(f"QUANTIZE operator {node.name!r}: a tensor lacks its scale", MALFORMED)
    if x.dtype is DType.FLOAT32:
        return [build.add1(Quantize(output.dtype, output.quant, halves_to_even=False), [x])]
    return [build.add1(Requantize(), [x], output)]


def rescaled(build: Builder, x: Tensor, wanted: TensorType) -> Tensor:
    """``x`` with the quantisation of ``wanted``; ``x`` itself if it has that, or if there is none."""
    if x.quant is None or wanted.quant is None or (x.quant == wanted.quant and x.dtype is wanted.dtype):
        return x
    return build.add1(Requantize(), [x], TensorType(x.shape, wanted.dtype, wanted.quant))
