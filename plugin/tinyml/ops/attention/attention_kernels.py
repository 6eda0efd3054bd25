# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Kernels of attention on floats in the runtime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from tinyml.cores.targets import Target
from tinyml.ir import Constraint, DType, Layer
from tinyml.ops.attention import attention_work
from tinyml.ops.attention.attention import Attention
from tinyml.ops.attention.attention_sheet import call, places, structure
from tinyml.ops.attention.heads import BIAS, MASK, POSITION, K, Q, V
from tinyml.ops.framework.kernel import Kernel, Library, Sheet, register_kernels
from tinyml.ops.framework.play_sheet import NotPlayableError
from tinyml.ops.framework.work import Work


def unbiased(layer: Layer[Attention]) -> bool:
    """There is no bias besides a mask, and later keys never count."""
    return not biased(layer)


class AttentionFloat(Kernel[Attention]):
    """Query by query; a row of scores is scratch."""

    name = "tinyml_attention_f32"
    library = Library.PORTABLE
    sources = ("attention/attention_f32.c",)
    constraints: ClassVar[tuple[Constraint, ...]] = (unbiased,)
    function: ClassVar[str] = name

    def functions(self, layer: Layer[Attention]) -> tuple[str, ...]:
        return (self.function,)

    def scratch_bytes(self, layer: Layer[Attention], target: Target) -> int:
        return 4 * layer.op.keys

    def loop_counts(self, layer: Layer[Attention], target: Target) -> Work | None:
        return attention_work.floats(layer)

    def emit(self, layer: Layer[Attention], sheet: Sheet) -> None:
        record = sheet.record("struct tinyml_attention_f32", "params", self._members(layer, sheet))
        word = "visible" if _hides(layer) else "mask"
        tensors = {word: sheet.x(MASK)} if layer.has_input(MASK) else {}
        if layer.has_input(POSITION):
            op = layer.op
            limited = sheet.limited(f"{sheet.x(POSITION)}[0]", *op.positions)
            sheet.line(f"const int32_t past = {limited + op.past if op.past else limited};")
            tensors["past"] = "&past"
        others = [f"&{record}", *self._bias(layer, sheet)]
        call(sheet, self.function, others, "struct tinyml_attention_floats", tensors)

    def _bias(self, layer: Layer[Attention], sheet: Sheet) -> list[str]:
        return []

    def play(self, layer: Layer[Attention], sheet: Sheet) -> None:
        if layer.has_input(POSITION):
            raise NotPlayableError("the player has no attention whose number of keys is computed")
        members = {
            **self._members(layer, sheet),
            ".hides": int(_hides(layer)) * (2 if layer.op.inverted else 1),
        }
        members.pop(".inverted", None)
        mask = sheet.x(MASK) if layer.has_input(MASK) else "NULL"
        operands = (sheet.x(Q), sheet.x(K), sheet.x(V), mask, sheet.y(), sheet.scratch)
        self._noted(layer, sheet, members, operands)

    def _noted(
        self, layer: Layer[Attention], sheet: Sheet, members: dict[str, object], operands: Sequence[str]
    ) -> None:
        sheet.note(self.function, members, *operands)

    def _members(self, layer: Layer[Attention], sheet: Sheet) -> dict[str, object]:
        op = layer.op
        members = {
            **places(op, sheet),
            ".scale": sheet.number(op.scale),
            ".softcap": sheet.number(op.softcap),
        }
        if op.empty:
            members[".empty"] = "true"
        if layer.has_input(MASK):
            members[".mask_starts"] = sheet.table("mask_starts", np.asarray(op.mask_starts, np.int32))
            members[".mask_step"] = op.mask_step
        if _hides(layer):
            members[".low"] = sheet.number(op.low)
            if op.inverted:
                members[".inverted"] = "true"
        return members


def biased(layer: Layer[Attention]) -> bool:
    """There is a bias besides a mask or a position, or later keys count for a query that sees no other."""
    return layer.has_input(BIAS) or layer.op.later != 0.0


class AttentionBiased(AttentionFloat):
    """The same with a bias besides a mask, or with later keys that may count."""

    function = "tinyml_attention_biased_f32"
    sources = ("attention/attention_biased_f32.c",)
    constraints = (biased,)

    def _bias(self, layer: Layer[Attention], sheet: Sheet) -> list[str]:
        structure(sheet, "const struct tinyml_attention_bias bias", self._added(layer, sheet))
        return ["&bias"]

    def _noted(
        self, layer: Layer[Attention], sheet: Sheet, members: dict[str, object], operands: Sequence[str]
    ) -> None:
        added = self._added(layer, sheet)
        bias = str(added.pop(".values", "NULL"))
        noted = {f".all{name}": value for name, value in members.items()}
        noted |= {f".bias_{name[1:]}": added.pop(name) for name in (".starts", ".step") if name in added}
        sheet.note(self.function, noted | added, *operands, bias)

    def _added(self, layer: Layer[Attention], sheet: Sheet) -> dict[str, object]:
        """What is added to scores."""
        op = layer.op
        members: dict[str, object] = {}
        if layer.has_input(BIAS):
            starts = np.asarray(op.bias_starts, np.int32)
            members = {
                ".values": sheet.x(BIAS),
                ".starts": sheet.table("bias_starts", starts, holds="for each head"),
                ".step": op.bias_step,
            }
        if op.later:
            members[".later"] = sheet.number(op.later)
        if op.later_replaces:
            members[".later_replaces"] = "true"
        return members


def _hides(layer: Layer[Attention]) -> bool:
    """Whether the mask says which keys are seen; else it is added to the scores."""
    return layer.has_input(MASK) and layer.input(MASK).dtype is DType.BOOL


register_kernels(Attention, AttentionFloat(), AttentionBiased())
