# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""AttentionInt8: attention on bytes, in every bit what its products and its softmax compute apart.

A row of scores is quantised, as the model states it, then becomes weights by a table of exponentials: once
over the row for the largest, once for the sum, once for the weights. So no running softmax can replace it,
and the row is all that exists of the scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from functools import cached_property

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Layer, Quant, Tensor, TensorType, given
from tinyml.ops.attention.heads import BIAS, MASK, POSITION, Heads, K, Q, Rows, V, position_known
from tinyml.ops.dense.matmul import MatMul
from tinyml.ops.dense.matmul_int8 import MOST_PRODUCTS, has_integer_form, rescale
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.elementwise.binary_int8 import linear_sum
from tinyml.ops.shared.linear import Linear
from tinyml.ops.shared.operands import integers
from tinyml.ops.shared.quant import NO_CLAMP, is_quantized, quant_of
from tinyml.ops.softmax import int8
from tinyml.ops.softmax.exp_table import Plan, SoftmaxTable, plan_of, rows_by_table
from tinyml.ops.softmax.softmax import Softmax

UNIT = Quant.per_tensor(1.0, 0)

ZEROS, MEAN, ALL = "zeros", "mean", "all"
"""What a query computes that sees no key: zeros, the mean of values, or as if it saw keys."""

EVERY, EARLIER, ONCE = "every", "earlier", "once"
"""Which keys those are: all; those that are not later; those that are not both later and hidden, where what
hides a key twice leaves it nothing beside others."""


def bytes_everywhere(layer: Layer[AttentionInt8]) -> bool:
    """Queries, keys and values are int8, quantised per tensor; so are scores and weights."""
    fits = all(is_quantized(layer.input(i), DType.INT8) for i in (Q, K, V))
    fits = fits and all(not quant_of(layer.input(i)).per_channel for i in (Q, K, V))
    return fits and not any(q.per_channel for q in (layer.op.scores, layer.op.scaled, layer.op.weights))


def products_fit(layer: Layer[AttentionInt8]) -> bool:
    """Sums of products fit 32 bits, and a table of scores has 256 bytes."""
    op = layer.op
    return max(op.depth, op.keys) < MOST_PRODUCTS and len(op.table) in (0, 256)


def mask_of_bools(layer: Layer[AttentionInt8]) -> bool:
    """A mask is of bool, and the softmax is by table. A constant one has an element for every query and key,
    for all heads or for several, and leaves each query a key."""
    op = layer.op
    if not layer.has_input(MASK):
        return not op.mask_starts
    mask = layer.input(MASK)
    if mask.dtype is not DType.BOOL or not op.by_table or layer.has_input(POSITION):
        return False
    if len(op.mask_starts) not in (0, op.heads) or not op.mask_rows.fit(mask.elements, op.queries, op.keys):
        return False
    if mask.data is None:
        return op.blind in (ZEROS, MEAN, ALL) and op.blind_keys in (EVERY, EARLIER, ONCE)
    if not op.mask_starts and mask.elements != op.queries * op.keys:
        return False
    return op.mask_step == op.keys and not op.inverted and bool(op.masked(layer).any(axis=2).all())


def bias_of_bytes(layer: Layer[AttentionInt8]) -> bool:
    """A bias is int8, quantised per tensor, with a row for each query of each head and an element for each
    key; one step adds it to a score in every bit as the sum of both does alone."""
    op = layer.op
    if not layer.has_input(BIAS):
        return not op.bias_starts
    bias, rows = layer.input(BIAS), Rows(op.bias_starts, op.bias_step)
    if not is_quantized(bias, DType.INT8) or quant_of(bias).per_channel or op.unbiased.per_channel:
        return False
    fits = len(op.bias_starts) == op.heads and rows.fit(bias.elements, op.queries, op.keys)
    return fits and sum_in_one_step(layer) is not None


@dataclass(frozen=True)
class AttentionInt8(Heads):
    """softmax(q · k) · v, with the scores as int8 (``scores``), perhaps mapped by a ``table`` to ``scaled``,
    and their softmax as int8 (``weights``).

    A position that arrives at run time is added to ``past``; the first query always sees a key. A mask says
    which keys each query sees, or (``inverted``) does not see: the same ones in all heads, unless it has a
    place for each head. If it arrives at run time, a query may see none, and computes what ``blind`` says
    of the keys that ``blind_keys`` says.

    A bias is added before the mask: ``unbiased`` is what it is added to, ``scaled`` the sum.
    """

    operands = (
        *Heads.operands,
        integers(POSITION),
        position_known,
        bytes_everywhere,
        products_fit,
        mask_of_bools,
        bias_of_bytes,
    )
    scores: Quant = field(default=UNIT)
    table: tuple[int, ...] = ()
    scaled: Quant = field(default=UNIT)
    weights: Quant = field(default=UNIT)
    beta: float = 1.0
    by_table: bool = True  # as SoftmaxTable; else as TensorFlow Lite's softmax
    round_once: bool = False
    mask_starts: tuple[int, ...] = ()  # for each head
    mask_step: int = 0
    inverted: bool = False
    blind: str = ZEROS
    blind_keys: str = EVERY
    unbiased: Quant = field(default=UNIT)
    add_once: bool = False  # as Binary.round_once
    bias_starts: tuple[int, ...] = ()  # for each head
    bias_step: int = 0

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        return (TensorType(self.output_shape, DType.INT8),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        q, k, v = self.operands_by_head(inputs)
        first, second = self.products(layer)
        (scores,) = first.op.evaluate(first, [q, np.swapaxes(k, 1, 2)])
        if self.table:
            scores = np.asarray(self.table, np.int8)[scores.astype(np.int64) + 128]
        if self.bias_starts:
            rows = Rows(self.bias_starts, self.bias_step).numbers(self.queries, self.keys)
            sums = self.sums(layer, scores.shape)
            (scores,) = sums.op.evaluate(sums, [scores, given(inputs, BIAS).reshape(-1)[rows]])
        mask = inputs[MASK] if len(inputs) > MASK else None
        if mask is None:
            weights = self._weights(scores, self.position(inputs) or 0)
        else:
            weights = self._masked_weights(scores, self._visible(mask))
        (y,) = second.op.evaluate(second, [weights, v])
        return (self.placed(y),)

    def masked(self, layer: Layer) -> Array:
        """(heads, queries, keys): which keys a query sees with the mask of the layer."""
        return self._visible(layer.input(MASK).value) & ~self.hidden()

    @property
    def mask_rows(self) -> Rows:
        return Rows(self.mask_starts or (0,) * self.heads, self.mask_step)

    def _visible(self, mask: Array) -> Array:
        return np.asarray(mask.reshape(-1)[self.mask_rows.numbers(self.queries, self.keys)] != self.inverted)

    def macs(self, layer: Layer) -> int:
        if not layer.has_input(MASK) or not layer.input(MASK).is_constant:
            return super().macs(layer)
        return int(self.masked(layer).sum()) * (self.depth + self.values)

    @property
    def positions(self) -> tuple[int, int]:
        """Positions at which the first query sees one key, and every query all of them."""
        return -self.past, self.keys - self.past

    def _by_table(self, scores: Array, hidden: Array) -> Array:
        y = Tensor("", scores.shape, DType.INT8, self.weights)
        return rows_by_table(self.plan, scores, y, -1, np.broadcast_to(hidden, scores.shape))

    def _masked_weights(self, scores: Array, shown: Array) -> Array:
        """``shown``: which keys the mask leaves."""
        earlier = ~self.hidden()
        visible = shown & earlier
        blind = ~visible.any(axis=2, keepdims=True)
        if self.blind == MEAN:
            scores = np.where(blind, np.int8(0), scores)
        instead = {EVERY: np.ones_like(earlier), EARLIER: earlier, ONCE: shown | earlier}[self.blind_keys]
        weights = self._by_table(scores, ~np.where(blind, instead, visible))
        if self.blind == ZEROS:
            weights = np.where(blind, np.int8(self.weights.zero_point), weights)
        return weights

    def _weights(self, scores: Array, position: int) -> Array:
        if self.by_table:
            return self._by_table(scores, self.hidden(position))
        weights = np.full_like(scores, self.weights.zero_point)
        for row, seen in enumerate(self.seen(position)):
            layer = self.softmax((scores.shape[0], int(seen)))
            weights[:, row, :seen] = layer.op.evaluate(layer, [scores[:, row, :seen]])[0]
        return weights

    def softmax(self, shape: tuple[int, ...]) -> Layer[Softmax]:
        """TensorFlow Lite's, of scores in this shape."""
        x, y = (Tensor("", shape, DType.INT8, quant) for quant in (self.scaled, self.weights))
        return Layer("", Softmax(beta=self.beta), (x,), (y,))

    def products(self, layer: Layer) -> tuple[Layer, Layer]:
        """Queries by keys, and weights by values."""
        op, heads = MatMul(self.round_once), self.heads
        sizes = {
            "q": (self.queries, self.depth),
            "k": (self.depth, self.keys),
            "v": (self.keys, self.values),
            "scores": (self.queries, self.keys),
            "y": (self.queries, self.values),
        }
        quants = {
            "q": layer.input(Q).quant,
            "k": layer.input(K).quant,
            "v": layer.input(V).quant,
            "scores": self.scores,
            "weights": self.weights,
            "y": layer.output.quant,
        }

        def tensor(name: str, size: str = "") -> Tensor:
            return Tensor(name, (heads, *sizes[size or name]), DType.INT8, quants[name])

        first = Layer("", op, (tensor("q"), tensor("k")), (tensor("scores"),))
        return first, Layer("", op, (tensor("weights", "scores"), tensor("v")), (tensor("y"),))

    def sums(self, layer: Layer, shape: tuple[int, ...]) -> Layer[Binary]:
        """Of scores and a bias in this shape."""
        quants = (self.unbiased, quant_of(layer.input(BIAS)), self.scaled)
        scores, bias, y = (Tensor("", shape, DType.INT8, quant) for quant in quants)
        return Layer("", Binary("add", round_once=self.add_once), (scores, bias), (y,))

    @cached_property
    def plan(self) -> Plan:
        """Of the softmax by table."""
        x, y = (Tensor("", (1, self.keys), DType.INT8, quant) for quant in (self.scaled, self.weights))
        return plan_of(SoftmaxTable(1, self.beta), x, y)


def sum_in_one_step(layer: Layer[AttentionInt8]) -> Linear | None:
    """How a bias is added to a score."""
    return linear_sum("add", NO_CLAMP, layer.op.sums(layer, (1,)), layer.op.add_once)


def has_form(layer: Layer[AttentionInt8]) -> bool:
    """The output is int8; the softmax has an integer form; rows have fewer than 65,536 keys."""
    op = layer.op
    if layer.output.quant is None or layer.output.quant.per_channel or layer.output.dtype is not DType.INT8:
        return False
    first, second = op.products(layer)
    if not all(has_integer_form(p.input(0), p.input(1), p.output) for p in (first, second)):
        return False
    if op.by_table:
        return op.weights.scale > 2.0**-16 and op.keys < 1 << 16
    whole = op.softmax((1, op.keys))
    return int8.has_integer_form(whole.input(0), whole.output, op.beta)


def factors(layer: Layer[AttentionInt8]) -> tuple[tuple[int, int], tuple[int, int]]:
    """From sums to scores, and from sums to outputs: multipliers and shifts."""
    first, second = layer.op.products(layer)
    return rescale(first, layer.op.round_once), rescale(second, layer.op.round_once)
