# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The masks between scores and softmax: a position in their place, or one that stays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Shape, Tensor
from tinyml.ops.attention.heads import Rows, rows_of
from tinyml.passes._attention_positions import HIDES, position_of
from tinyml.passes.editor import Editor

NO_ROWS = Rows((), 0)
NO_WEIGHT = 104.0
"""By how much a score is below the largest from where on float32 has no exponential of it."""


@dataclass(frozen=True)
class Mask:
    """What is added to ``scores`` of this shape, or (``truth``) says which of them are kept, not ``low``."""

    name: str
    scores: Shape
    truth: bool
    low: float = -math.inf


@dataclass(frozen=True)
class Scores:
    """What happens to the products: times ``scale``, limited to ``softcap``, masked."""

    scale: float = 1.0
    softcap: float = 0.0
    mask: str = ""
    low: float = -math.inf
    rows: Rows = NO_ROWS
    past: int | None = None  # causal
    position: str = ""  # the past is counted from it
    masked_by: str = ""  # what hides keys, whether it stays or not
    alike: bool = False  # all queries of a head see the keys that the first one does


def masked_scores(edit: Editor, found: Scores, masks: Sequence[Mask]) -> Scores | None:
    """``found`` with all masks; None if they are more than a position and one that stays."""
    for mask in masks:
        tensor = edit.tensors[mask.name]
        if tensor.quant is not None or tensor.dtype is not (DType.BOOL if mask.truth else DType.FLOAT32):
            return None
    if not masks:
        return found
    found = replace(found, masked_by=masks[-1].name)
    if len(masks) == 1:
        return _masked(edit, found, masks[0])
    moved = _moved(edit, found, masks)
    if moved is not None:
        return moved
    for number, mask in enumerate(masks):
        moved = _moved(edit, found, [*masks[:number], *masks[number + 1 :]])
        if moved is not None and not moved.alike and (not mask.truth or mask.low <= HIDES):
            return _stays(edit, moved, mask)
    return None


def _moved(edit: Editor, found: Scores, masks: Sequence[Mask]) -> Scores | None:
    """A position in the place of masks that only hide keys, the same for all heads."""
    for mask in masks:
        keys = mask.scores[-1]
        shape = edit.tensors[mask.name].shape
        hides = math.prod(shape[:-2]) == 1 and shape[-1:] == (keys,)
        if not hides or (mask.truth and mask.low > HIDES):
            return None
    queries, keys = masks[0].scores[-2:]
    names = [mask.name for mask in masks]
    alike = queries > 1 and all(edit.tensors[name].shape[-2:-1] in ((), (1,)) for name in names)
    moving = position_of(edit, names, (1 if alike else queries, keys))
    return None if moving is None else replace(found, position=moving[0], past=moving[1], alike=alike)


def _masked(edit: Editor, found: Scores, mask: Mask) -> Scores | None:
    queries, keys = mask.scores[-2:]
    tensor = edit.tensors[mask.name]
    axes = (1,) * (len(mask.scores) - len(tensor.shape)) + tensor.shape
    same_for_all_heads = axes[:-2] == (1,) * (len(mask.scores) - 2) and axes[-1] == keys
    if same_for_all_heads and (not mask.truth or mask.low <= HIDES):
        past = _past(tensor, (queries, keys)) if axes[-2] == queries else None
        if past is not None:
            return replace(found, past=past)
        moved = _moved(edit, found, [mask])
        if moved is not None:
            return moved
    return _stays(edit, found, mask)


def _stays(edit: Editor, found: Scores, mask: Mask) -> Scores | None:
    """The mask is read at run time."""
    tensor = edit.tensors[mask.name]
    numbers = np.broadcast_to(np.arange(tensor.elements).reshape(tensor.shape), mask.scores)
    rows = rows_of(numbers.reshape(-1, *mask.scores[-2:]))
    low = mask.low if mask.truth else found.low
    return None if rows is None else replace(found, mask=mask.name, rows=rows, low=low)


def visible_keys(
    edit: Editor, found: Scores, shape: tuple[int, int], span: tuple[float, float]
) -> Array | None:
    """Which keys each query sees, (queries, keys): what a constant mask says that is the same for all heads.

    None if those that it hides could have a weight beside scores in this span.
    """
    tensor, (low, high) = edit.tensors[found.mask], span
    if tensor.data is None:
        return None
    values = tensor.data.reshape(-1)[found.rows.numbers(*shape)]
    if values.dtype == np.bool_:
        visible, hides = values, found.low <= low - NO_WEIGHT
    else:
        visible = values == 0
        hides = bool(np.all(visible | (values <= low - high - NO_WEIGHT)))
    return visible[0] if hides and np.all(visible == visible[0]) else None


def causal_past(visible: Array) -> int | None:
    """By how much queries see further than their own place, if they see no key after that."""
    past = int(visible[0].sum()) - 1
    queries, keys = visible.shape
    seen = np.arange(keys)[None, :] <= np.arange(queries)[:, None] + past
    return past if past >= 0 and np.array_equal(visible, seen) else None


def _past(mask: Tensor, shape: tuple[int, int]) -> int | None:
    """By how much a constant mask lets queries see further than their own place, if it is causal."""
    if mask.data is None:
        return None
    values = mask.data.reshape(shape)
    visible = values if values.dtype == np.bool_ else values == 0
    if values.dtype != np.bool_ and not np.all(visible | (values <= HIDES)):
        return None
    return causal_past(visible)
