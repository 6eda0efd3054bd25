# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Kernels of attention on bytes in the runtime: for any core, DSP instructions and Helium, each also with a
mask and with a bias."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from tinyml.base import c
from tinyml.cores.targets import Target
from tinyml.ir import Array, Constraint, Layer
from tinyml.ops.attention import attention_play, attention_work
from tinyml.ops.attention.attention_int8 import EVERY, ONCE, AttentionInt8, factors, has_form, sum_in_one_step
from tinyml.ops.attention.attention_sheet import call, places, structure
from tinyml.ops.attention.heads import BIAS, MASK, POSITION, K, Q, V
from tinyml.ops.framework.kernel import Kernel, Library, Sheet, register_kernels
from tinyml.ops.framework.play_sheet import NotPlayableError
from tinyml.ops.framework.work import Work
from tinyml.ops.shared.quant import quant_of
from tinyml.ops.softmax import int8


def plain(layer: Layer[AttentionInt8]) -> bool:
    """There is no bias and no mask: a causal one, which hides later keys, is none."""
    return not layer.has_input(MASK) and not layer.has_input(BIAS)


def masked(layer: Layer[AttentionInt8]) -> bool:
    """There is a mask that hides other keys than later ones, and no bias."""
    return layer.has_input(MASK) and not layer.has_input(BIAS)


def given(layer: Layer[AttentionInt8]) -> bool:
    """There is a mask that arrives at run time, and no bias."""
    return _at_run_time(layer) and not layer.has_input(BIAS)


def with_bias(layer: Layer[AttentionInt8]) -> bool:
    """A bias is added to the scores."""
    return layer.has_input(BIAS)


def _at_run_time(layer: Layer[AttentionInt8]) -> bool:
    return layer.has_input(MASK) and not layer.input(MASK).is_constant


def _blind_row(layer: Layer[AttentionInt8]) -> bool:
    """Whether a query that sees no key needs a row of bytes that say which ones it computes with."""
    return _at_run_time(layer) and layer.op.blind_keys == ONCE


class AttentionBytes(Kernel[AttentionInt8]):
    """Query by query; a row of scores, a query and the sums of an output are scratch."""

    name = "tinyml_attention_s8"
    library = Library.PORTABLE
    sources = ("attention/attention_s8.c",)
    constraints: ClassVar[tuple[Constraint, ...]] = (has_form, plain)
    function: ClassVar[str] = name
    played_by: ClassVar[str] = "tinyml_attention_biased_s8"  # with a bias, or a mask that arrives at run time

    def functions(self, layer: Layer[AttentionInt8]) -> tuple[str, ...]:
        return (self.function,)

    def scratch_bytes(self, layer: Layer[AttentionInt8], target: Target) -> int:
        op = layer.op
        return 4 * op.values + 2 * op.depth + op.keys + _blind_row(layer) * op.keys

    def loop_counts(self, layer: Layer[AttentionInt8], target: Target) -> Work | None:
        return attention_work.bytes_one_by_one(layer)

    def emit(self, layer: Layer[AttentionInt8], sheet: Sheet) -> None:
        members = {**places(layer.op, sheet), **self._members(layer, sheet)}
        if layer.op.by_table:
            members[".numerator"] = f"UINT64_C({layer.op.plan.numerator})"
        record = sheet.record("struct tinyml_attention_s8", "params", members)
        if layer.has_input(POSITION):
            record = self._placed(layer, sheet, record)
        others = [f"&{record}"]
        if layer.has_input(MASK):
            structure(sheet, "const struct tinyml_attention_mask mask", self._mask(layer, sheet))
            others.append("&mask")
        if layer.has_input(BIAS):
            structure(sheet, "const struct tinyml_attention_s8_bias bias", self._bias(layer, sheet))
            others += ["&bias"] if layer.has_input(MASK) else ["NULL", "&bias"]
        call(sheet, self.function, others, "struct tinyml_attention_bytes", {})

    def _placed(self, layer: Layer[AttentionInt8], sheet: Sheet, record: str) -> str:
        """A copy of the parameters with the keys of this run: later ones are not even read."""
        op = layer.op
        limited = sheet.limited(f"{sheet.x(POSITION)}[0]", *op.positions)
        sheet.line(f"const int32_t past = {limited + op.past if op.past else limited};")
        sheet.line(f"struct tinyml_attention_s8 here = {record};")
        sheet.line()
        sheet.line("here.at.past = past;")
        last = op.keys - op.queries
        sheet.line(f"here.at.keys = past < {last} ? past + {op.queries} : {op.keys};")
        return "here"

    def play(self, layer: Layer[AttentionInt8], sheet: Sheet) -> None:
        if layer.has_input(POSITION):
            raise NotPlayableError("the player has no attention whose number of keys is computed")
        members = self._members(layer, sheet)
        if layer.op.by_table:
            numerator = layer.op.plan.numerator
            members |= {".numerator": numerator & 0xFFFFFFFF, ".numerator_high": numerator >> 32}
        operands = (sheet.x(Q), sheet.x(K), sheet.x(V), sheet.y(), sheet.scratch)
        if layer.has_input(BIAS) or given(layer):
            members = places(layer.op, sheet) | members
            mask = self._mask(layer, sheet) if layer.has_input(MASK) else {}
            bias = self._bias(layer, sheet) if layer.has_input(BIAS) else {}
            noted, added = attention_play.added(mask, bias)
            noted |= {f".all{name}": value for name, value in members.items()}
            sheet.note(self.played_by, noted, *operands, *added)
            return
        for noted in self._noted(layer, sheet, members):
            sheet.note(self.function, noted, *operands)

    def _noted(
        self, layer: Layer[AttentionInt8], sheet: Sheet, members: Mapping[str, object]
    ) -> Iterator[dict[str, object]]:
        """The members of the records that players have, one for each call."""
        yield {**places(layer.op, sheet), **members}

    def _mask(self, layer: Layer[AttentionInt8], sheet: Sheet) -> dict[str, object]:
        """What says which keys are seen."""
        op, mask = layer.op, layer.input(MASK)
        found: dict[str, object] = {
            ".visible": _visible(sheet, mask.value) if mask.is_constant else sheet.x(MASK)
        }
        if any(op.mask_starts):
            starts = np.asarray(op.mask_starts, np.int32)
            found[".starts"] = sheet.table("visible_starts", starts, holds="for each head")
        if op.mask_step:
            found[".step"] = op.mask_step
        if op.inverted:
            found[".inverted"] = "true"
        if not mask.is_constant:
            found[".blind"] = f"TINYML_ATTENTION_{op.blind.upper()}"
            if op.blind_keys != EVERY:
                found[".blind_keys"] = f"TINYML_ATTENTION_{op.blind_keys.upper()}"
        return found

    def _bias(self, layer: Layer[AttentionInt8], sheet: Sheet) -> dict[str, object]:
        """What is added to the scores."""
        op, form = layer.op, sum_in_one_step(layer)
        assert form is not None
        found: dict[str, object] = {".values": sheet.x(BIAS)}
        if any(op.bias_starts):
            starts = np.asarray(op.bias_starts, np.int32)
            found[".starts"] = sheet.table("bias_starts", starts, holds="for each head")
        if op.bias_step:
            found[".step"] = op.bias_step
        score, value = form.factors
        return found | {
            ".score_factor": score,
            ".value_factor": value,
            ".offset": form.offset,
            ".shift": form.shift,
        }

    def _members(self, layer: Layer[AttentionInt8], sheet: Sheet) -> dict[str, object]:
        op = layer.op
        (score, score_shift), (out, out_shift) = factors(layer)
        members: dict[str, object] = {
            f".{word}_zero": quant_of(layer.input(index)).zero_point
            for word, index in (("q", Q), ("k", K), ("v", V))
        }
        members |= {
            ".score_multiplier": score,
            ".score_shift": score_shift,
            ".score_zero": op.scores.zero_point,
        }
        if op.table:
            members[".table"] = sheet.table("scores", np.asarray(op.table, np.int8), holds="scaled scores")
        members[".exps"] = sheet.table("exps", exponentials(op), holds="exp of differences, from 0 to -255")
        if op.by_table:
            members |= {".numerator": 0, ".shift": op.plan.shift}
        members |= {
            ".weight_zero": op.weights.zero_point,
            ".out_multiplier": out,
            ".out_shift": out_shift,
            ".out_zero": quant_of(layer.output).zero_point,
            ".by_table": c.boolean(op.by_table),
            ".once": c.boolean(op.round_once),
        }
        return members


def fours(layer: Layer[AttentionInt8]) -> bool:
    """A key has a multiple of four elements."""
    return layer.op.depth % 4 == 0


def pairs(layer: Layer[AttentionInt8]) -> bool:
    """There are two queries or more: one alone would be computed twice."""
    return layer.op.queries > 1


class AttentionMasked(AttentionBytes):
    """The same with a mask: hidden keys are passed over."""

    sources = ("attention/attention_masked_s8.c",)
    constraints = (has_form, masked)
    function = "tinyml_attention_masked_s8"

    def _noted(
        self, layer: Layer[AttentionInt8], sheet: Sheet, members: Mapping[str, object]
    ) -> Iterator[dict[str, object]]:
        """A call for the heads that see the same keys."""
        op, mask = layer.op, layer.input(MASK).value.reshape(-1)
        starts = op.mask_starts or (0,) * op.heads
        for number, start in enumerate(sorted(set(starts))):
            part = _of_heads(op, [head for head, place in enumerate(starts) if place == start])
            suffix = f"_{number}" if op.mask_starts else ""
            others = {**places(part, sheet, f"starts{suffix}"), **members}
            visible = _visible(sheet, mask[start : start + op.queries * op.keys], f"visible{suffix}")
            yield {**{f".all{name}": value for name, value in others.items()}, ".visible": visible}


class AttentionBytesBiased(AttentionBytes):
    """The same with a bias and perhaps a mask."""

    sources = ("attention/attention_biased_s8.c",)
    constraints = (has_form, with_bias)
    function = "tinyml_attention_biased_s8"


class AttentionDsp(AttentionBytes):
    """Two queries at a time; the values of a head, transposed, are scratch as well."""

    name = "tinyml_attention_dsp_s8"
    function = name
    played_by = "tinyml_attention_biased_dsp_s8"
    sources = ("attention/attention_dsp_s8.c",)
    constraints = (has_form, fours, pairs, plain)

    def runs_on(self, target: Target) -> bool:
        return target.dsp

    def scratch_bytes(self, layer: Layer[AttentionInt8], target: Target) -> int:
        op = layer.op
        keys = -(-op.keys // 4) * 4
        return 4 * max(op.depth, keys) + (2 + 2 * _blind_row(layer)) * keys + op.values * keys

    def loop_counts(self, layer: Layer[AttentionInt8], target: Target) -> Work | None:
        return attention_work.bytes_in_pairs(layer)


class AttentionMaskedDsp(AttentionDsp):
    """The same with a mask that arrives at run time."""

    function = "tinyml_attention_masked_dsp_s8"
    sources = ("attention/attention_masked_dsp_s8.c",)
    constraints = (has_form, fours, pairs, given)


class AttentionBiasedDsp(AttentionDsp):
    """The same with a bias and perhaps a mask."""

    function = "tinyml_attention_biased_dsp_s8"
    sources = ("attention/attention_biased_dsp_s8.c",)
    constraints = (has_form, fours, pairs, with_bias)


class AttentionMve(AttentionBytes):
    """Sixteen elements of four rows at a time; the values of a head, transposed, are scratch as well."""

    name = "tinyml_attention_mve_s8"
    function = name
    played_by = "tinyml_attention_biased_mve_s8"
    sources = ("attention/attention_mve_s8.c",)
    constraints = (has_form, plain)

    def runs_on(self, target: Target) -> bool:
        return target.mve

    def scratch_bytes(self, layer: Layer[AttentionInt8], target: Target) -> int:
        op = layer.op
        keys = -(-op.keys // 16) * 16
        return 4 * (keys + op.values) + keys + op.values * keys + _blind_row(layer) * op.keys

    def loop_counts(self, layer: Layer[AttentionInt8], target: Target) -> Work | None:
        return attention_work.bytes_in_vectors(layer)


class AttentionMaskedMve(AttentionMve):
    """The same with a mask that arrives at run time."""

    function = "tinyml_attention_masked_mve_s8"
    sources = ("attention/attention_masked_mve_s8.c",)
    constraints = (has_form, given)


class AttentionBiasedMve(AttentionMve):
    """The same with a bias and perhaps a mask."""

    function = "tinyml_attention_biased_mve_s8"
    sources = ("attention/attention_biased_mve_s8.c",)
    constraints = (has_form, with_bias)


def exponentials(op: AttentionInt8) -> Array:
    """By how far a score is below the largest: 256 numbers."""
    if op.by_table:
        return np.pad(op.plan.exps, (0, 256 - op.plan.exps.size))
    return int8.exponentials(op.softmax((1, 256)), op.beta, -np.arange(256)).astype(np.uint32)


def _visible(sheet: Sheet, mask: Array, table: str = "visible") -> str:
    values = mask.astype(np.uint8).reshape(-1)
    return sheet.table(table, values, holds="for each query, which keys it sees")


def _of_heads(op: AttentionInt8, heads: Sequence[int]) -> AttentionInt8:
    """Of some heads, which see the same keys."""
    starts = {
        f"{word}_starts": tuple(getattr(op, f"{word}_starts")[head] for head in heads) for word in "qkvy"
    }
    return replace(op, mask_starts=(), **starts)  # type: ignore[arg-type]


register_kernels(
    AttentionInt8,
    AttentionMve(),
    AttentionMaskedMve(),
    AttentionBiasedMve(),
    AttentionDsp(),
    AttentionMaskedDsp(),
    AttentionBiasedDsp(),
    AttentionBytes(),
    AttentionMasked(),
    AttentionBytesBiased(),
)
