# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""How often the loops of the kernels of attention run: with a position, in the run that sees all keys."""

from __future__ import annotations

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, Layer
from tinyml.ops.attention.attention import Attention
from tinyml.ops.attention.attention_int8 import AttentionInt8
from tinyml.ops.attention.heads import BIAS, MASK, POSITION, Heads
from tinyml.ops.framework.work import Work


@dataclass(frozen=True)
class Views:
    """What the queries see, by head and query; a mask that arrives at run time may hide none."""

    looked_at: Array  # keys that are there without a mask: its byte of each of them is read
    ends: Array  # one more than the last key that is seen
    counts: Array  # keys that are seen

    @property
    def keys(self) -> int:
        """Of a head: those that are there for any query."""
        return int(self.looked_at.max())

    @property
    def gaps(self) -> Array:
        """The keys up to the end where some of them are hidden: each is looked at again."""
        return np.where(self.counts < self.ends, self.ends, 0)

    def work(self, masked: bool) -> Work:
        """What a mask costs beside the keys that are seen."""
        if not masked:
            return {}
        return {"bytes of masks": int(self.looked_at.sum()), "keys between hidden ones": int(self.gaps.sum())}


def _views(layer: Layer[AttentionInt8]) -> Views:
    op = layer.op
    causal = np.broadcast_to(_seen(layer), (op.heads, op.queries))
    if not layer.has_input(MASK) or not layer.input(MASK).is_constant:
        return Views(causal, causal, causal)
    seen = op.masked(layer)
    return Views(causal, np.where(seen, np.arange(1, op.keys + 1), 0).max(axis=2), seen.sum(axis=2))


def _seen(layer: Layer[Heads]) -> Array:
    """How many keys each query of a head sees without a mask."""
    op = layer.op
    return op.seen(op.positions[1] if layer.has_input(POSITION) else 0)


def _ceil(number: Array | int, group: int) -> Array:
    return -(-np.asarray(number) // group)


def floats(layer: Layer[Attention]) -> Work:
    op, seen = layer.op, _seen(layer)
    scores = op.heads * int(seen.sum())
    found = {
        "calls": 1,
        "heads": op.heads,
        "queries": op.heads * op.queries,
        "scores": scores,
        "four products": scores * (op.depth // 4),
        "single products": scores * (op.depth % 4),
        "four values": op.heads * int((seen // 4).sum()),
        "elements of four values": op.heads * int((seen // 4).sum()) * op.values,
        "elements of single values": op.heads * int((seen % 4).sum()) * op.values,
        "outputs": op.heads * op.queries * op.values,
    }
    if op.softcap:
        found["limited scores"] = scores
    if layer.has_input(MASK):
        found["masked scores"] = scores
    if layer.has_input(BIAS):  # takes as long
        found["masked scores"] = found.get("masked scores", 0) + scores
    return found


def bytes_one_by_one(layer: Layer[AttentionInt8]) -> Work:
    op, views = layer.op, _views(layer)
    scores, queries = int(views.counts.sum()), op.heads * op.queries
    return {
        "calls": 1,
        "heads": op.heads,
        "queries": queries,
        "elements of queries": queries * op.depth,
        "scores": scores,
        "products": scores * op.depth,
        "elements of values": scores * op.values,
        "outputs": queries * op.values,
        **views.work(layer.has_input(MASK)),
        **_biased(layer, scores),
        **_seldom(op, scores, queries * op.values),
    }


def bytes_in_pairs(layer: Layer[AttentionInt8]) -> Work:
    """Of two queries, both are computed for the keys up to the last one that either of them sees."""
    op, views = layer.op, _views(layer)
    seconds = [min(query + 1, op.queries - 1) for query in range(0, op.queries, 2)]
    seen = np.maximum(views.ends[:, ::2], views.ends[:, seconds])
    pairs = seen.size
    key_pairs, fours = int(_ceil(seen, 2).sum()), int(_ceil(seen, 4).sum())
    value_pairs = int(_ceil(op.values, 2))
    blocks = int(_ceil(seen, 16).sum()) + pairs * int(_ceil(op.values, 16))
    scores, outputs = 2 * int(seen.sum()), 2 * pairs * op.values
    return {
        "calls": 1,
        "heads": op.heads,
        "pairs": pairs,
        "bytes transposed": op.heads * views.keys * op.values,
        "words of queries": pairs * int(_ceil(op.depth, 4)),
        "blocks": blocks,
        "pairs of rows": key_pairs + pairs * value_pairs,
        "words of rows": key_pairs * int(_ceil(op.depth, 4)) + value_pairs * fours,
        "sums": scores + outputs,
        "four weights": 2 * fours,
        **views.work(layer.has_input(MASK)),
        **_biased(layer, scores),
        **_seldom(op, scores, outputs),
    }


def bytes_in_vectors(layer: Layer[AttentionInt8]) -> Work:
    op, views = layer.op, _views(layer)
    seen, counts, queries = views.ends, views.counts, op.heads * op.queries
    keys, scores = views.keys, int(seen.sum())
    key_rows = int((seen // 4 + seen % 4).sum())
    value_rows = queries * (op.values // 4 + op.values % 4)
    across, down = int(_ceil(op.depth, 16)), int(_ceil(keys, 16))
    return {
        "calls": 1,
        "heads": op.heads,
        "queries": queries,
        "bytes transposed": op.heads * keys * op.values,
        "sums of rows": op.heads * (keys + op.values),
        "vectors of sums": op.heads * (keys * across + op.values * down),
        "four rows": key_rows + value_rows,
        "vectors of rows": key_rows * across + value_rows * down,
        "four weights": int(_ceil(counts, 4).sum()),
        "hidden keys": int((keys - counts).sum()),
        **views.work(layer.has_input(MASK)),
        **_biased(layer, scores),
        **_seldom(op, scores, queries * op.values),
    }


def _biased(layer: Layer[AttentionInt8], scores: int) -> Work:
    return {"biased scores": scores} if layer.has_input(BIAS) else {}


def _seldom(op: AttentionInt8, scores: int, outputs: int) -> Work:
    """What models from ONNX do without: two roundings, and the softmax of TensorFlow Lite."""
    found: dict[str, float] = {}
    if not op.round_once:
        found["rounded twice"] = scores + outputs
    if not op.by_table:
        found["weights without a table"] = scores
    if op.table:
        found["mapped scores"] = scores
    return found
