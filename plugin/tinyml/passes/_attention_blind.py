# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What a query computes that masks hide all keys from: what hides them adds up, or replaces what was there.

Padding before the first token and a limit of later keys leave such queries: their own keys are hidden once,
later ones once or twice.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array
from tinyml.ops.attention.attention_int8 import ALL, EARLIER, EVERY, MEAN, ONCE, ZEROS
from tinyml.passes._attention_masks import Blind, Mask, Span

SAMPLES = 9
FINE = 2.0**-6
"""By how much scores that a number hides may lose of their differences."""


@dataclass(frozen=True)
class Step:
    """A mask and its elements, (heads, queries, keys), where no bit hides anything, and where all bits do."""

    mask: Mask
    opened: Array
    closed: Array


def blind_form(steps: Sequence[Step], never: Array, span: Span) -> Blind | None:
    """What a query computes, and of which keys; ``never``: the keys that it does not see whatever the bits
    say. None if no form says it."""
    hidden = _left(steps, span, closed=True, where=~never)
    later = _left(steps, span, closed=False, where=never)
    both = _left(steps, span, closed=True, where=never)
    if not len(hidden):
        return Blind(ZEROS, EVERY, -np.inf)  # every query sees a key
    if len(hidden) > 1 or len(later) > 1 or len(both) > 1:
        return None
    (own,) = hidden
    if np.all(own == -np.inf):
        nothing = np.all(later == -np.inf) and np.all(both == -np.inf)
        return Blind(ZEROS, EVERY, -np.inf) if nothing else None
    form, low = MEAN if np.ptp(own) == 0 else ALL, float(own.max())
    scores = _scores(span)
    if form == ALL and not np.all(np.abs(own - own[0] - (scores - scores[0])) < FINE):
        return None  # the steps of float32 near such a number are too large

    def same(others: Array) -> bool:
        return bool(np.all(others == own))

    def nothing_beside(others: Array) -> bool:
        return bool(np.all(others <= own.min() - span.margin))

    if same(later) and same(both):
        return Blind(form, EVERY, low)
    if same(later) and nothing_beside(both):
        return Blind(form, ONCE, low)
    if nothing_beside(later) and nothing_beside(both):
        return Blind(form, EARLIER, low)
    return None


def _scores(span: Span) -> Array:
    return np.linspace(span.low, span.high, SAMPLES).astype(np.float32)


def _left(steps: Sequence[Step], span: Span, closed: bool, where: Array) -> Array:
    """What is left of some scores (columns), in the ways in which masks change them (rows)."""
    codes = np.zeros(int(where.sum()), np.int64)
    columns = []
    for step in steps:
        column = np.broadcast_to(step.closed if closed else step.opened, where.shape)[where]
        values, places = np.unique(column, return_inverse=True)
        codes = codes * values.size + places.reshape(-1)
        columns.append(column)
    _, first = np.unique(codes, return_index=True)
    left = np.tile(_scores(span), (first.size, 1))
    with np.errstate(over="ignore", invalid="ignore"):
        for step, column in zip(steps, columns, strict=True):
            own, mask = column[first][:, None], step.mask
            left = np.where(own != mask.flipped, left, np.float32(mask.low)) if mask.truth else left + own
    return np.unique(left.astype(np.float64), axis=0)
