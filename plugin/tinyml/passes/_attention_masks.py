# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The masks between scores and softmax: a position in their place, or one that stays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Shape
from tinyml.ops.attention.heads import Rows, rows_of
from tinyml.passes._attention_positions import position_of
from tinyml.passes.editor import Editor

NO_ROWS = Rows((), 0)
NO_WEIGHT = 104.0
"""By how much a score is below the largest from where on float32 has no exponential of it."""
NO_BYTE = 32.0
"""The same for weights that become bytes: their steps are larger than 2^-16, and 65,535 such exponentials are
less than float32 resolves in a sum with 1."""
LARGEST = (1e9 - NO_WEIGHT) / 2
"""Scores of floats are taken to be no larger than this times their scale, as nothing says how large they are:
exporters hide keys by -1e9, by the lowest number of float32 or by -inf."""


@dataclass(frozen=True)
class Span:
    """What scores can be before masks, and by how much one must be below all others to have no weight."""

    low: float = -LARGEST
    high: float = LARGEST
    margin: float = NO_WEIGHT

    def hidden_by(self, mask: Mask) -> bool:
        """Whether what replaces scores leaves them no weight; of a mask that is added, its values tell."""
        return not mask.truth or mask.low <= self.low - self.margin

    @property
    def hides(self) -> float:
        """This or less added to a score leaves it no weight."""
        return self.low - self.high - self.margin


def span_of(scale: float, softcap: float, beta: float, numbers: tuple[float, float] | None) -> Span:
    """Of scores times ``scale``, limited to ``softcap``, for a softmax of ``beta`` times them.

    ``numbers`` are the smallest and the largest before that, if scores and weights are bytes.
    """
    margin = NO_WEIGHT if numbers is None else NO_BYTE
    margin = margin / beta if beta > 0 else math.nan  # else nothing hides
    if softcap:
        return Span(-softcap, softcap, margin)
    if numbers is not None:
        return Span(min(numbers) * scale, max(numbers) * scale, margin)
    largest = LARGEST * max(1.0, abs(scale))
    return Span(-largest, largest, margin)


@dataclass(frozen=True)
class Mask:
    """What is added to ``scores`` of this shape, or (``truth``) says which of them are kept, not ``low``, or
    (``flipped``) which are not kept."""

    name: str
    scores: Shape
    truth: bool
    low: float = -math.inf
    flipped: bool = False


@dataclass(frozen=True)
class Blind:
    """What a query computes that sees no key, and of which keys, as ``AttentionInt8`` has it; and in floats
    what is left of the scores of keys that a mask hides."""

    form: str
    keys: str
    low: float


@dataclass(frozen=True)
class Later:
    """What happens, after a mask, to the scores of later keys, which count where a query sees none: a number
    is added, or (``replaces``) takes their place."""

    low: float
    replaces: bool


@dataclass(frozen=True)
class Shown:
    """A tensor of bits whose element, in these rows, says whether a query sees a key, or (``inverted``) does
    not; and what a query computes that sees none."""

    name: str
    rows: Rows
    inverted: bool
    past: int | None  # queries see no keys further than this after their own place
    blind: Blind


@dataclass(frozen=True)
class Scores:
    """What happens to the products: times ``scale``, limited to ``softcap``, masked."""

    scale: float = 1.0
    softcap: float = 0.0
    mask: str = ""
    low: float = -math.inf
    inverted: bool = False  # a mask of truths says which keys are hidden
    rows: Rows = NO_ROWS
    past: int | None = None  # causal
    position: str = ""  # the past is counted from it
    masked_by: str = ""  # what hides keys, whether it stays or not
    span: Span = Span()
    alike: bool = False  # all queries of a head see the keys that the first one does
    shown: Shown | None = None  # in place of masks that arrive at run time
    later: Later | None = None  # of floats: None if later keys never count
    bias: str = ""  # of floats: what is added besides
    bias_rows: Rows = NO_ROWS
    keys: int = 0


def masked_scores(edit: Editor, found: Scores, masks: Sequence[Mask], span: Span) -> Scores | None:
    """``found`` with all masks; None if they are more than a position and one that stays."""
    for mask in masks:
        tensor = edit.tensors[mask.name]
        if tensor.quant is not None or tensor.dtype is not (DType.BOOL if mask.truth else DType.FLOAT32):
            return None
    if not masks:
        return found
    found = replace(found, masked_by=masks[-1].name, span=span, keys=masks[-1].scores[-1])
    if len(masks) == 1:
        return _masked(edit, found, masks[0])
    moved = _moved(edit, found, masks)
    if moved is not None:
        return moved
    for number, mask in enumerate(masks):
        moved = _moved(edit, found, [*masks[:number], *masks[number + 1 :]])
        if moved is not None and not moved.alike and span.hidden_by(mask):
            return stays(edit, moved, mask)
    return None


def _moved(edit: Editor, found: Scores, masks: Sequence[Mask]) -> Scores | None:
    """A position in the place of masks that only hide keys, the same for all heads."""
    for mask in masks:
        keys = mask.scores[-1]
        shape = edit.tensors[mask.name].shape
        hides = math.prod(shape[:-2]) == 1 and shape[-1:] == (keys,)
        if not hides or not found.span.hidden_by(mask):
            return None
    queries, keys = masks[0].scores[-2:]
    alike = queries > 1 and all(edit.tensors[mask.name].shape[-2:-1] in ((), (1,)) for mask in masks)
    flipped = {mask.name: mask.flipped for mask in masks}
    moving = position_of(edit, flipped, (1 if alike else queries, keys), found.span.hides)
    return None if moving is None else replace(found, position=moving[0], past=moving[1], alike=alike)


def _masked(edit: Editor, found: Scores, mask: Mask) -> Scores | None:
    keys = mask.scores[-1]
    tensor = edit.tensors[mask.name]
    axes = (1,) * (len(mask.scores) - len(tensor.shape)) + tensor.shape
    same_for_all_heads = axes[:-2] == (1,) * (len(mask.scores) - 2) and axes[-1] == keys
    if same_for_all_heads and found.span.hidden_by(mask):
        past = causal_mask(edit, mask, found.span)
        if past is not None:
            return replace(found, past=past)
        moved = _moved(edit, found, [mask])
        if moved is not None:
            return moved
    return stays(edit, found, mask)


def causal_mask(edit: Editor, mask: Mask, span: Span) -> int | None:
    """By how much a constant mask lets queries see further than their own place, if it is causal, and the
    same for all heads."""
    shape = mask.scores[-2:]
    tensor = edit.tensors[mask.name]
    alike = tensor.shape[-2:] == shape and tensor.elements == math.prod(shape)
    if not alike or tensor.data is None or not span.hidden_by(mask):
        return None
    visible = _visible(tensor.data.reshape(shape), span, mask.flipped)
    return None if visible is None else causal_past(visible)


def rows_that_meet(edit: Editor, mask: Mask) -> Rows | None:
    """Where the rows of each head are that meet those of the scores."""
    tensor = edit.tensors[mask.name]
    numbers = np.broadcast_to(np.arange(tensor.elements).reshape(tensor.shape), mask.scores)
    return rows_of(numbers.reshape(-1, *mask.scores[-2:]))


def stays(edit: Editor, found: Scores, mask: Mask) -> Scores | None:
    """The mask is read at run time."""
    rows = rows_that_meet(edit, mask)
    low = mask.low if mask.truth else found.low
    if rows is None:
        return None
    return replace(found, mask=mask.name, rows=rows, low=low, inverted=mask.flipped)


def visible_keys(edit: Editor, found: Scores, shape: tuple[int, int]) -> Array | None:
    """Which keys each query sees, (heads, queries, keys), or one such table if it is the same for all heads.

    None if those that it hides could have a weight.
    """
    tensor = edit.tensors[found.mask]
    if tensor.data is None:
        return None
    values = tensor.data.reshape(-1)[found.rows.numbers(*shape)]
    mask = Mask(found.mask, values.shape, values.dtype == np.bool_, found.low)
    visible = _visible(values, found.span, found.inverted) if found.span.hidden_by(mask) else None
    return visible[:1] if visible is not None and np.all(visible == visible[0]) else visible


def causal_past(visible: Array) -> int | None:
    """By how much queries see further than their own place, if they see no key after that."""
    past = int(visible[0].sum()) - 1
    queries, keys = visible.shape
    seen = np.arange(keys)[None, :] <= np.arange(queries)[:, None] + past
    return past if past >= 0 and np.array_equal(visible, seen) else None


def _visible(values: Array, span: Span, flipped: bool) -> Array | None:
    """Which keys are seen; None if what is added is neither nothing nor enough to hide them."""
    if values.dtype == np.bool_:
        return np.asarray(values != flipped)
    visible = values == 0
    return visible if bool(np.all(visible | (values <= span.hides))) else None
