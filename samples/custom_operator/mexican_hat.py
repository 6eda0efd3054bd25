# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""An operator of our own: MexicanHat, the wavelet (1 - t*t) * exp(-t*t / 2) with t = x / width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tinyml.plugin import (
    Array,
    Builder,
    DType,
    InPlace,
    Layer,
    OnnxNode,
    Op,
    Sheet,
    Tensor,
    TensorType,
    UnsupportedError,
    given,
    onnx_op,
    present,
    register_kernels,
)


@dataclass(frozen=True)
class MexicanHat(Op):
    """What it computes. Constant inputs are folded, and tests compare with ``evaluate``."""

    operands = (present(1),)
    elementwise = True
    width: float = 1.0

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x = given(inputs, 0)
        return (TensorType(x.shape, x.dtype),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        t = given(inputs, 0) / np.float32(self.width)
        return ((1 - t * t) * np.exp(-t * t / 2),)


def is_float(layer: Layer[MexicanHat]) -> bool:
    """float32"""
    return layer.input(0).dtype is DType.FLOAT32


class MexicanHatLoop(InPlace[MexicanHat]):
    """How it is computed: by a function in mexican_hat.c, over its own input if nothing else reads it."""

    name = "mexican_hat_f32"
    c_files = ("mexican_hat.c",)
    constraints = (is_float,)

    def emit(self, layer: Layer[MexicanHat], sheet: Sheet) -> None:
        width = sheet.number(layer.op.width, DType.FLOAT32)
        sheet.line(f"mexican_hat_f32({sheet.x()}, {layer.output.elements}, {width}, {sheet.y()});")


register_kernels(MexicanHat, MexicanHatLoop())


@onnx_op("MexicanHat", domain="com.example")
def read(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    """How ONNX files write it."""
    width = float(node.attr("width", 1.0))
    if width <= 0:
        raise UnsupportedError(f"a width of {width:g}", "a width above 0")
    return [build.add1(MexicanHat(width), [node.input(0)])]
