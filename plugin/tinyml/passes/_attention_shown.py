# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Masks that arrive at run time and do nothing but hide keys: the bits that decide take their place."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType
from tinyml.ops.attention.heads import rows_of
from tinyml.passes._attention_bits import Reach, cases_of
from tinyml.passes._attention_blind import Step, blind_form
from tinyml.passes._attention_masks import Mask, Shown, Span, causal_past
from tinyml.passes.editor import Editor


@dataclass(frozen=True)
class _Part:
    """What one mask hides, (heads, queries, keys)."""

    never: Array
    name: str = ""
    numbers: Array | None = None  # of the bits
    inverted: bool = False
    values: tuple[Array, ...] = ()  # where no bit is set, and where all are; or constants


def shown_keys(edit: Editor, masks: Sequence[Mask], span: Span) -> Shown | None:
    """None if the masks may do anything else, or hide keys that could have a weight."""
    parts = [_part(edit, mask, span) for mask in masks]
    found = [part for part in parts if part is not None]
    given = [part for part in found if part.numbers is not None]
    if len(found) < len(parts) or not given:
        return None
    first = given[0]
    assert first.numbers is not None
    if not all(
        (part.name, part.inverted) == (first.name, first.inverted)
        and part.numbers is not None
        and np.array_equal(part.numbers, first.numbers)
        for part in given
    ):
        return None
    rows = rows_of(first.numbers)
    never = np.logical_or.reduce([part.never for part in found])
    past = causal_past(~never[0]) if never.any() and np.all(never == never[0]) else None
    if rows is None or (never.any() and past is None):
        return None
    opened, closed = (0, -1) if first.inverted else (-1, 0)
    steps = [
        Step(mask, part.values[opened], part.values[closed]) for mask, part in zip(masks, found, strict=True)
    ]
    blind = blind_form(steps, never, span)
    return None if blind is None else Shown(first.name, rows, first.inverted, past, blind)


def _part(edit: Editor, mask: Mask, span: Span) -> _Part | None:
    """The smallest tensor of bits that decides."""
    tensor = edit.tensors[mask.name]
    if tensor.quant is not None or tensor.dtype is not (DType.BOOL if mask.truth else DType.FLOAT32):
        return None
    if mask.truth and not span.hidden_by(mask):
        return None
    if tensor.data is not None:
        return _of_values(mask, span, "", None, (tensor.data,))
    best: _Part | None = None
    for reach in Reach:
        cases = cases_of(edit, mask.name, reach)
        if cases is None or len(cases.bits) != 1:
            continue
        ((name, numbers),) = cases.bits
        part = _of_values(mask, span, name, numbers, cases.values)
        if part is not None and (
            best is None or edit.tensors[name].elements < edit.tensors[best.name].elements
        ):
            best = part
    return best


def _of_values(
    mask: Mask, span: Span, name: str, numbers: Array | None, values: Sequence[Array]
) -> _Part | None:
    """``values`` of the mask where no bit is set, and where all are."""
    arrays = [_by_head(mask, array) for array in values]
    seen = [array != mask.flipped if mask.truth else array == 0 for array in arrays]
    if not mask.truth:
        hidden = [array[~visible] for array, visible in zip(arrays, seen, strict=True)]
        low = max((float(lows.max()) for lows in hidden if lows.size), default=-np.inf)
        if not low <= span.hides:  # or not a number
            return None
    if numbers is None:
        return _Part(~seen[0], values=tuple(arrays))
    without, set_ = seen
    opens, closes = bool(np.any(set_ & ~without)), bool(np.any(without & ~set_))
    if opens == closes or bool(np.any(set_ & without)):
        return None
    return _Part(~(set_ | without), name, _by_head(mask, numbers), closes, tuple(arrays))


def _by_head(mask: Mask, array: Array) -> Array:
    return np.asarray(np.broadcast_to(array, mask.scores).reshape(-1, *mask.scores[-2:]))
