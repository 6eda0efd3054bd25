# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""How often each loop of a layer of trees runs, from which its instructions are estimated.

Data decides how many nodes a row of features passes. The estimate takes every leaf of a tree to be as likely
as any other. Shares of leaves are close to shares of data, because training splits where data are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.ir import Array
from tinyml.ops.classical.tree_stream import LEAF, Stream
from tinyml.ops.framework.work import Work


def tree_work(
    shape: Sequence[int], outputs: int, tables: Sequence[Array], stream: Stream, comparison: str
) -> Work:
    """``shape``: of the input; ``tables``: from the roots to the starts; ``comparison``: what nodes do."""
    rows, features = shape
    passed, added = averages(tables)
    if stream.head_bytes > 1 or stream.distance_bytes > 2:
        comparison += ", wide"
    kind = "integer" if stream.weights.dtype.kind in "iu" else "float"
    trees = float(rows * len(stream.roots))
    return {
        "call": 1.0,
        "rows": float(rows),
        "keys": float(rows * features) if comparison.startswith("key") else 0.0,
        f"{kind} outputs": float(rows * outputs),
        "trees": trees,
        "long numbers of leaves": trees if stream.number_bytes else 0.0,
        "leaves with several weights": trees if stream.starts is not None else 0.0,
        f"nodes: {comparison}": rows * passed,
        f"{kind} weights": rows * added,
        "weights of one of several outputs": rows * added if outputs > 1 else 0.0,
    }


def averages(tables: Sequence[Array]) -> tuple[float, float]:
    """How many nodes a row passes in all trees, and how many weights it adds up."""
    roots, compared, _, others, starts = tables
    sizes = np.diff(starts.astype(np.int64))
    leaves, depths, weights = (np.zeros(len(compared)) for _ in range(3))
    for node in range(len(compared) - 1, -1, -1):  # children come after their parents
        other = int(others[node])
        if compared[node] == LEAF:
            leaves[node], weights[node] = 1, sizes[other]
            continue
        leaves[node] = leaves[node + 1] + leaves[other]
        depths[node] = depths[node + 1] + depths[other] + leaves[node]
        weights[node] = weights[node + 1] + weights[other]
    at = roots.astype(np.int64)
    return float((depths[at] / leaves[at]).sum()), float((weights[at] / leaves[at]).sum())
