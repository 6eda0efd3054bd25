# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Several masks of floats, or one that is computed for every query and key: a bias, a mask and later keys
that are hidden are apart again, so that what is computed grows with the number of keys."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tinyml.ir import DType
from tinyml.ops.attention.attention_int8 import ALL, EARLIER, EVERY, MEAN
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.shared.quant import NO_CLAMP
from tinyml.passes._attention_masks import Later, Mask, Scores, Span, causal_mask, rows_that_meet, stays
from tinyml.passes._attention_shown import shown_keys
from tinyml.passes.editor import Editor

MOST_TERMS = 4


def is_wide(edit: Editor, scores: Scores) -> bool:
    """Whether the mask that stays is computed, and for more than every key."""
    name = scores.mask
    return (
        bool(name) and edit.producer(name) is not None and edit.tensors[name].elements > max(1, scores.keys)
    )


def apart(edit: Editor, found: Scores, masks: Sequence[Mask], span: Span) -> Scores | None:
    """``found`` with a bias, a mask and a limit of later keys in the place of ``masks``."""
    found = replace(found, masked_by=masks[-1].name, span=span)
    taken = _apart(edit, found, masks, span)
    terms = [term for mask in masks for term in _terms(edit, mask)]
    if taken is None and len(terms) > len(masks):
        taken = _apart(edit, found, terms, span)
    return taken


def _apart(edit: Editor, found: Scores, masks: Sequence[Mask], span: Span) -> Scores | None:
    pasts = {number: causal_mask(edit, mask, span) for number, mask in enumerate(masks)}
    limits = [past for past in pasts.values() if past is not None]
    rest = [mask for number, mask in enumerate(masks) if pasts[number] is None]
    if limits:
        found = replace(found, past=min(limits))
    if not rest:
        return found
    whole = _mask(edit, found, rest, span, alone=not limits)
    if whole is not None:
        return _with_later(edit, whole, masks, pasts, rest, span)
    for bias in sorted(rest, key=lambda mask: not edit.tensors[mask.name].is_constant):
        others = [mask for mask in rest if mask is not bias]
        rows = None if bias.truth or not others else rows_that_meet(edit, bias)
        taken = None if rows is None else _mask(edit, found, others, span, alone=False)
        if rows is None or taken is None or (taken.mask and others[0].truth and _after(masks, bias, others)):
            continue
        taken = _with_later(edit, taken, masks, pasts, others, span)
        if taken is not None:
            return replace(taken, bias=bias.name, bias_rows=rows)
    return None


def _after(masks: Sequence[Mask], mask: Mask, others: Sequence[Mask]) -> list[Mask]:
    """Which of others come before this mask."""
    place = next(number for number, other in enumerate(masks) if other is mask)
    return [other for other in masks[:place] if any(other is one for one in others)]


def _with_later(
    edit: Editor,
    found: Scores,
    masks: Sequence[Mask],
    pasts: dict[int, int | None],
    others: Sequence[Mask],
    span: Span,
) -> Scores | None:
    """What the limit of later keys among ``masks`` leaves of a query from which ``others`` hide all keys."""
    limits = [mask for number, mask in enumerate(masks) if pasts[number] is not None]
    if not limits:
        return found
    if len(limits) > 1 or (found.shown is not None and found.shown.past is not None):
        return None
    (limit,) = limits
    data = edit.tensors[limit.name].data
    assert data is not None
    lows = {limit.low} if limit.truth else {float(low) for low in np.unique(data[data != 0])}
    if not lows:
        return found
    if len(lows) > 1:
        return None
    (low,) = lows
    coarse = -low * 2.0**-24 > max(abs(span.low), abs(span.high))  # added to a score it is this number
    following = [mask for mask in masks if mask is not limit and _after(masks, mask, [limit])]
    if limit.truth and following and not coarse:
        return None
    over = [mask.low for mask in others if mask.truth and any(mask is one for one in following)]
    if over:  # these take its place
        if not coarse or any(other != low for other in over):
            return None
        later = Later(low, True)
    else:
        later = Later(low, limit.truth and not following)
    return replace(found, later=None if low == -math.inf else later)


def _mask(edit: Editor, found: Scores, masks: Sequence[Mask], span: Span, alone: bool) -> Scores | None:
    """With masks that hide keys, or with one, unless that is ``alone`` and thus no other form.

    Scores of hidden keys become one number, which must be what is left of all that one query has.
    """
    shown = shown_keys(edit, masks, span)
    if shown is not None and shown.blind.form != ALL:
        limits = [past for past in (found.past, shown.past) if past is not None]
        counts = shown.past is not None and shown.blind.form == MEAN and shown.blind.keys != EARLIER
        later = Later(shown.blind.low, shown.blind.keys == EVERY) if counts else None
        return replace(found, shown=shown, past=min(limits) if limits else None, later=later)
    if len(masks) > 1 or alone or not span.hidden_by(masks[0]):
        return None
    return stays(edit, found, masks[0])


def _terms(edit: Editor, mask: Mask) -> list[Mask]:
    """The masks of which a mask is the sum."""
    found: list[Mask] = []
    waiting = [mask.name]
    while waiting:
        name = waiting.pop(0)
        node = edit.producer(name)
        op = None if node is None or mask.truth else node.op
        sums = isinstance(op, Binary) and op.function == "add" and op.clamp == NO_CLAMP
        if (
            node is None
            or not sums
            or len(found) + len(waiting) > MOST_TERMS
            or not _floats(edit, node.inputs)
        ):
            found.append(replace(mask, name=name))
        else:
            waiting += node.inputs
    return found


def _floats(edit: Editor, names: Sequence[str]) -> bool:
    return all(edit.tensors[n].dtype is DType.FLOAT32 and edit.tensors[n].quant is None for n in names)
