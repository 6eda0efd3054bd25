# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What attention on floats and on integers have in common: where the rows of each head are in memory.

Queries, keys and values are read where a layer before has written them: as parts of one tensor, with
heads side by side, or with one head of keys for several of queries. No copy puts them in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, ClassVar

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, Constraint, Layer, Op, Shape, given
from tinyml.ops.shared.operands import numbers_from, present, within_limits

Q, K, V, MASK, POSITION, BIAS = range(6)
MOST_HEADS = 1024
"""That have their places in a table."""
FURTHEST = 1 << 24
"""From a position to the last key that it stands for."""


@dataclass(frozen=True)
class Rows:
    """Places of the rows of all heads: where each head starts, and from one row to the next."""

    starts: tuple[int, ...]
    step: int

    def numbers(self, rows: int, elements: int) -> Array:
        """The place of each element: (heads, rows, elements)."""
        starts = np.asarray(self.starts, np.int64)[:, None, None]
        return np.asarray(starts + np.arange(rows)[:, None] * self.step + np.arange(elements))

    def fit(self, size: int, rows: int, elements: int) -> bool:
        """Whether all places are inside ``size`` elements."""
        last = (rows - 1) * self.step + elements
        return self.step >= 0 and all(start >= 0 and start + last <= size for start in self.starts)


def rows_of(places: Array) -> Rows | None:
    """The rows whose elements are at these places, (heads, rows, elements), one after the other."""
    _, rows, _ = places.shape
    starts = tuple(int(start) for start in places[:, 0, 0])
    step = int(places[0, 1, 0] - places[0, 0, 0]) if rows > 1 else 0
    found = Rows(starts, step)
    return found if step >= 0 and np.array_equal(found.numbers(*places.shape[1:]), places) else None


def rows_inside(layer: Layer[Heads]) -> bool:
    """The rows of queries, keys and values lie inside their tensors, and those of the output fill it."""
    op = layer.op
    ends = zip(op.read, ((op.queries, op.depth), (op.keys, op.depth), (op.keys, op.values)), strict=True)
    if not 0 < len(op.y_starts) <= MOST_HEADS:
        return False
    if any(len(rows.starts) != len(op.y_starts) for rows in op.read):
        return False
    inside = all(rows.fit(layer.input(i).elements, *shape) for i, (rows, shape) in enumerate(ends))
    elements = int(np.prod(op.shape, dtype=np.int64))
    if not inside or elements != len(op.y_starts) * op.queries * op.values:
        return False
    written = op.written
    return written.fit(elements, op.queries, op.values) and _apart(written, op.queries, op.values)


def position_known(layer: Layer[Heads]) -> bool:
    """A position is one number and makes the layer causal; without one, the past is not negative."""
    op = layer.op
    if not layer.has_input(POSITION):
        return op.past >= 0
    return op.causal and -FURTHEST < op.past < FURTHEST and layer.input(POSITION).elements == 1


def _apart(rows: Rows, count: int, elements: int) -> bool:
    """Whether no two rows share an element."""
    places = rows.numbers(count, elements)
    return np.unique(places).size == places.size


@dataclass(frozen=True)
class Heads(Op):
    """Inputs: q, k, v, in any shapes; the attributes say where the rows of each head are."""

    operands: ClassVar[tuple[Constraint, ...]] = (
        present(3),
        numbers_from(1, "queries", "keys", "depth", "values"),
        numbers_from(0, "shape"),
        within_limits("queries", "keys", "depth", "values", "shape"),
        rows_inside,
    )
    folds = False
    shape: tuple[int, ...] = ()  # of the output
    queries: int = 0  # rows of each head
    keys: int = 0
    depth: int = 0  # elements of a query and of a key
    values: int = 0  # elements of a value
    q_starts: tuple[int, ...] = ()
    k_starts: tuple[int, ...] = ()
    v_starts: tuple[int, ...] = ()
    y_starts: tuple[int, ...] = ()
    q_step: int = 0
    k_step: int = 0
    v_step: int = 0
    y_step: int = 0
    causal: bool = False
    past: int = 0  # causal: query i sees keys up to i + past, and a position further if there is one

    def label(self) -> str:
        return "attention"

    def attributes(self) -> dict[str, Any]:
        """Without places and tables, which are long."""
        left_out = {
            f"{word}_{what}" for word in ("q", "k", "v", "y", "mask", "bias") for what in ("starts", "step")
        }
        named = {f.name: getattr(self, f.name) for f in fields(self)}
        return {"heads": self.heads, **{k: v for k, v in named.items() if k not in left_out | {"table"}}}

    @property
    def heads(self) -> int:
        return len(self.y_starts)

    @property
    def read(self) -> tuple[Rows, Rows, Rows]:
        """The rows of queries, keys and values."""
        pairs = (self.q_starts, self.q_step), (self.k_starts, self.k_step), (self.v_starts, self.v_step)
        q, k, v = (Rows(starts, step) for starts, step in pairs)
        return q, k, v

    @property
    def written(self) -> Rows:
        return Rows(self.y_starts, self.y_step)

    @property
    def output_shape(self) -> Shape:
        return self.shape

    def macs(self, layer: Layer) -> int:
        known = self.causal and not layer.has_input(POSITION)
        seen = int(self.seen().sum()) if known else self.queries * self.keys
        return self.heads * seen * (self.depth + self.values)

    def seen(self, position: int = 0) -> Array:
        """How many keys each query sees."""
        every = np.full(self.queries, self.keys)
        past = self.past + position
        return np.clip(np.arange(self.queries) + past + 1, 0, every) if self.causal else every

    def hidden(self, position: int = 0) -> Array:
        """(queries, keys): which keys a query does not see."""
        return np.arange(self.keys)[None, :] >= self.seen(position)[:, None]

    @property
    def positions(self) -> tuple[int, int]:
        """The positions that differ from each other: others count as the nearest one."""
        raise NotImplementedError

    def position(self, inputs: Sequence[Array | None]) -> int | None:
        """As far as it differs from others; None without a position."""
        if len(inputs) <= POSITION or inputs[POSITION] is None:
            return None
        low, high = self.positions
        return max(low, min(int(given(inputs, POSITION).reshape(-1)[0]), high))

    def told_apart(self, layer: Layer, index: int) -> tuple[int, int] | None:
        return (-self.past, self.keys - self.queries - self.past) if index == POSITION else None

    def operands_by_head(self, inputs: Sequence[Array | None]) -> tuple[Array, Array, Array]:
        """q, k and v, each (heads, rows, elements)."""
        shapes = ((self.queries, self.depth), (self.keys, self.depth), (self.keys, self.values))
        q, k, v = (
            given(inputs, i).reshape(-1)[rows.numbers(*shape)]
            for i, (rows, shape) in enumerate(zip(self.read, shapes, strict=True))
        )
        return q, k, v

    def placed(self, y: Array) -> Array:
        """The output, from (heads, queries, values)."""
        result = np.empty(int(np.prod(self.shape, dtype=np.int64)), y.dtype)
        result[self.written.numbers(self.queries, self.values)] = y
        return result.reshape(self.shape)


def starts_table(op: Heads) -> Array:
    """For each head where its queries, keys, values and outputs start."""
    return np.stack([op.q_starts, op.k_starts, op.v_starts, op.y_starts], axis=1).astype(np.int32)


def layout(op: Heads, starts: str) -> dict[str, object]:
    """Members of the C structure."""
    return {
        ".heads": op.heads,
        ".queries": op.queries,
        ".keys": op.keys,
        ".depth": op.depth,
        ".values": op.values,
        ".starts": starts,
        ".q_step": op.q_step,
        ".k_step": op.k_step,
        ".v_step": op.v_step,
        ".y_step": op.y_step,
        ".past": op.past if op.causal else op.keys,
    }
