# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Attention: softmax(scale · q · k + mask) · v on floats, one row of scores at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Layer, Tensor, TensorType, given
from tinyml.ops.attention.heads import BIAS, MASK, POSITION, Heads, K, Q, Rows, V, position_known
from tinyml.ops.shared.operands import integers


def floats(layer: Layer[Attention]) -> bool:
    """Queries, keys and values are float32; a mask is float32 or bool."""
    plain = all(layer.input(i).dtype is DType.FLOAT32 and layer.input(i).quant is None for i in (Q, K, V))
    if not layer.has_input(MASK):
        return plain
    mask = layer.input(MASK)
    return plain and mask.quant is None and mask.dtype in (DType.FLOAT32, DType.BOOL)


def bias_inside(layer: Layer[Attention]) -> bool:
    """A bias of float32 has a row for each query of each head, and an element for each key."""
    op = layer.op
    if not layer.has_input(BIAS):
        return not op.bias_starts
    bias, rows = layer.input(BIAS), Rows(op.bias_starts, op.bias_step)
    plain = bias.dtype is DType.FLOAT32 and bias.quant is None and len(op.bias_starts) == op.heads
    return plain and rows.fit(bias.elements, op.queries, op.keys)


def later_known(layer: Layer[Attention]) -> bool:
    """What lowers the scores of later keys is negative; keys are later by their places alone."""
    op = layer.op
    return op.later == 0.0 or (op.later < 0.0 and op.causal and not layer.has_input(POSITION))


def mask_inside(layer: Layer[Attention]) -> bool:
    """The mask has a row for each query of each head, and an element for each key."""
    op = layer.op
    if not layer.has_input(MASK):
        return not op.mask_starts
    rows = Rows(op.mask_starts, op.mask_step)
    return len(op.mask_starts) == op.heads and rows.fit(layer.input(MASK).elements, op.queries, op.keys)


@dataclass(frozen=True)
class Attention(Heads):
    """Scores are multiplied by ``scale``, limited to ``softcap`` (if not 0) by tanh, and added to the bias
    and the mask; a mask of bool hides the keys where it is false.

    A position that arrives at run time, as in a decoder with a cache of keys and values, is added to
    ``past``: later keys are not read. A query that sees no key then gives zeros; one that a mask of floats
    hides from all the keys it sees gives NaN, as in ONNX, unless ``empty``. Where numbers hide keys, not
    -inf, a query that sees none computes with those that are hidden least, of which some may be later ones.

    Results differ from those of the operators apart by the order of additions: by less than 1e-5 of the
    largest value.
    """

    operands = (
        *Heads.operands,
        integers(POSITION),
        position_known,
        floats,
        mask_inside,
        bias_inside,
        later_known,
    )
    depends_on_cpu = True
    scale: float = 1.0
    softcap: float = 0.0
    low: float = -math.inf  # the score of a key that a mask of bool hides
    inverted: bool = False  # such a mask hides keys where it is true
    empty: bool = False  # a query all of whose scores are -inf gives zeros
    mask_starts: tuple[int, ...] = ()
    mask_step: int = 0
    later: float = 0.0  # added to the scores of later keys, which count where it is near what others have
    later_replaces: bool = False  # it takes their place
    bias_starts: tuple[int, ...] = ()
    bias_step: int = 0

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        return (TensorType(self.output_shape, DType.FLOAT32),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        q, k, v = self.operands_by_head(inputs)
        real = q.dtype.type
        scores = np.matmul(q, np.swapaxes(k, 1, 2)) * real(self.scale)
        if self.softcap:
            scores = np.tanh(scores / real(self.softcap)) * real(self.softcap)
        if self.bias_starts:
            rows = Rows(self.bias_starts, self.bias_step).numbers(self.queries, self.keys)
            scores = scores + given(inputs, BIAS).reshape(-1)[rows]
        if self.mask_starts:
            mask = given(inputs, MASK).reshape(-1)[
                Rows(self.mask_starts, self.mask_step).numbers(self.queries, self.keys)
            ]
            if mask.dtype == np.bool_:
                scores = np.where(mask != self.inverted, scores, real(self.low))
            else:
                scores = scores + mask
        position = self.position(inputs)
        blind: Array = np.zeros((self.queries, 1), np.bool_)
        if self.causal:
            hidden = self.hidden(position or 0)
            blind = np.asarray(hidden.all(axis=-1, keepdims=True))
            with np.errstate(over="ignore"):
                lowered = real(self.later) if self.later_replaces else scores + real(self.later)
            scores = np.where(hidden, -np.inf, scores)
            if self.later:
                counts = scores.max(axis=-1, keepdims=True) <= self.later / 2
                scores = np.where(hidden & counts, lowered, scores)
        with np.errstate(invalid="ignore"):
            exps = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights = exps / exps.sum(axis=-1, keepdims=True)
        if self.empty:
            blind = blind | (scores.max(axis=-1, keepdims=True) == -np.inf)
        weights = np.where(blind, real(0), weights)
        return (self.placed(np.matmul(weights, v).astype(np.float32)),)

    @property
    def positions(self) -> tuple[int, int]:
        """Positions at which no query sees a key, and every query all of them."""
        return -self.past - self.queries, self.keys - self.past
