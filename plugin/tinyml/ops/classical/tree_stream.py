# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Trees as a stream of bytes, in which a node is as short as its numbers allow.

A node begins with its head. A head below the number of features is the feature that is compared; the limit
and the distance from this node to the one after a "no" follow, and the node after a "yes" comes next. Other
heads are the numbers of leaves; where there are too many for that, the last head means that the number
follows. Leaves are numbered by how often they occur, so that most of them need no more than their head.
Numbers are little-endian and not aligned.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array

LEAF = -1


@dataclass(frozen=True, eq=False)
class Stream:
    """The bytes of all trees, the widths of their fields, and the tables of leaves."""

    nodes: Array
    roots: Array  # where each tree begins
    head_bytes: int
    limit_bytes: int
    distance_bytes: int
    number_bytes: int  # of a leaf's number after the last head; 0: every number fits into a head
    last_head: int
    starts: Array | None  # of each leaf's weights; None: every leaf has one
    targets: Array
    weights: Array
    levels: int  # nodes above the deepest leaf


def packed(inputs: Sequence[Array], features: int, missing: Array | None) -> Stream:
    """The tables of ``Trees`` after its input as a stream; ``features``: of the input."""
    roots, compared, limits, others, starts, targets, weights = inputs
    leaf = compared == LEAF
    order, rank = _by_frequency(others[leaf], len(starts) - 1)
    head_bytes = 1 if features < np.iinfo(np.uint8).max else 2
    last_head = int(np.iinfo(np.uint8 if head_bytes == 1 else np.uint16).max)
    fits = features + len(order) <= last_head + 1
    number_bytes = 0 if fits else _width(len(order))
    limit_bytes = limits.dtype.itemsize
    distance_bytes = 2
    while True:  # longer distances make the nodes longer, too
        sizes = np.where(leaf, head_bytes, head_bytes + limit_bytes + distance_bytes)
        if not fits:
            numbers = np.zeros(len(leaf), np.int64)
            numbers[leaf] = rank[others[leaf]]
            sizes = sizes + np.where(leaf & (features + numbers >= last_head), number_bytes, 0)
        places = np.concatenate([[0], np.cumsum(sizes)])
        distances = np.where(leaf, 0, places[np.where(leaf, 0, others)] - places[:-1])
        if distances.max(initial=0) < 1 << (8 * distance_bytes - 1):  # the highest bit is ``missing``
            break
        distance_bytes = 4
    marks = np.zeros(len(leaf), np.int64) if missing is None else missing.astype(np.int64)
    nodes = bytearray()
    typed = limits.astype(limits.dtype.newbyteorder("<"))
    for node in range(len(leaf)):
        if leaf[node]:
            number = int(rank[others[node]])
            short = fits or features + number < last_head
            nodes += (features + number if short else last_head).to_bytes(head_bytes, "little")
            nodes += b"" if short else number.to_bytes(number_bytes, "little")
            continue
        nodes += int(compared[node]).to_bytes(head_bytes, "little") + typed[node].tobytes()
        distance = int(distances[node]) | int(marks[node]) << (8 * distance_bytes - 1)
        nodes += distance.to_bytes(distance_bytes, "little")
    return Stream(
        np.frombuffer(bytes(nodes), np.uint8),
        _smallest(places[roots]),
        head_bytes,
        limit_bytes,
        distance_bytes,
        number_bytes,
        last_head,
        *_leaves(order, starts, targets, weights),
        _levels(roots, compared, others),
    )


def sorting_keys(values: Array) -> Array:
    """Limits as int32 of the same order (``tinyml_trees_key`` in C); nothing is at most a NaN."""
    bits = values.astype(np.float32).view(np.int32)
    limits = np.iinfo(np.int32)
    keys = np.where(bits < 0, -(bits & limits.max), bits)
    return np.where(np.isnan(values), limits.min, keys).astype(np.int32)


def _by_frequency(numbers: Array, count: int) -> tuple[Array, Array]:
    """The leaves, the most frequent first, and the place of each in that order."""
    order = np.argsort(-np.bincount(numbers, minlength=count), kind="stable")
    rank = np.empty(count, np.int64)
    rank[order] = np.arange(count)
    return order, rank


def _leaves(order: Array, starts: Array, targets: Array, weights: Array) -> tuple[Array | None, Array, Array]:
    """Starts, targets and weights of the leaves in another order."""
    sizes = np.diff(starts.astype(np.int64))[order]
    chosen = np.concatenate([np.arange(starts[leaf], starts[leaf + 1]) for leaf in order]).astype(np.int64)
    if np.all(sizes == 1):
        return None, targets[chosen], weights[chosen]
    if not len(chosen):  # C has no empty tables
        chosen = np.zeros(1, np.int64)
    return _smallest(np.concatenate([[0], np.cumsum(sizes)])), targets[chosen], weights[chosen]


def _width(count: int) -> int:
    return 2 if count <= 1 << 16 else 4


def _smallest(values: Array) -> Array:
    kind = next(k for k in (np.uint8, np.uint16, np.uint32) if values.max(initial=0) <= np.iinfo(k).max)
    return values.astype(kind)


def _levels(roots: Array, compared: Array, others: Array) -> int:
    """The most nodes from a root to a leaf, which is not counted."""
    waiting = [(int(root), 0) for root in roots]
    most = 0
    while waiting:
        node, above = waiting.pop()
        if compared[node] == LEAF:
            most = max(most, above)
        else:
            waiting += [(node + 1, above + 1), (int(others[node]), above + 1)]
    return most
