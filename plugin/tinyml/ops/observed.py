# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Observed and Rescaled: what a model that learns on the device does with a tensor of every run."""

from __future__ import annotations

from collections.abc import Sequence

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, Layer, Op, Tensor, TensorType, given
from tinyml.ops.framework.kernel import InPlace, Sheet, register_kernels
from tinyml.ops.shared.operands import present


@dataclass(frozen=True)
class Observed(Op):
    """Inputs: x, and optionally what it is compared with. ``learner`` is the C name of the description."""

    operands = (present(1),)
    learner: str = ""
    source: str = ""  # in runtime/
    function: str = ""

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        return (given(inputs, 0).type,)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        return (given(inputs, 0),)


@dataclass(frozen=True)
class Rescaled(Op):
    """An input with the mean and scale of the training, once the device knows those of its own."""

    operands = (present(1),)
    learner: str = ""

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        return (given(inputs, 0).type,)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        return (given(inputs, 0),)


class RescaledInPlace(InPlace[Rescaled]):
    """Feature by feature."""

    name = "tinyml_adapt_rescale"
    sources = ("adapt/scaling.c",)

    def emit(self, layer: Layer[Rescaled], sheet: Sheet) -> None:
        sheet.line(f"tinyml_adapt_rescale(&{layer.op.learner}, {sheet.x()}, {sheet.y()});")


class ObservedInPlace(InPlace[Observed]):
    """A call that reads the tensor, which stays where it is."""

    name = "tinyml_adapt_observe"

    def runtime_sources(self, layer: Layer[Observed]) -> tuple[str, ...]:
        return (layer.op.source,)

    def emit(self, layer: Layer[Observed], sheet: Sheet) -> None:
        operands = [sheet.x(i) for i in range(len(layer.inputs))]
        sheet.line(f"{layer.op.function}({', '.join([f'&{layer.op.learner}', *operands])});")
        if 0 not in sheet.shared_inputs:
            sheet.include("<string.h>")
            sheet.line(f"memcpy({sheet.y()}, {sheet.x()}, {layer.output.bytes});")


register_kernels(Observed, ObservedInPlace())
register_kernels(Rescaled, RescaledInPlace())
