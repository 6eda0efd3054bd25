# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Ranges by entropy: how much of a histogram's ends int8 should give up for finer steps.

Of all ranges around 0, the one is taken whose 128 steps keep most of what the histogram says: the smallest
Kullback-Leibler divergence. These are the ranges of onnxruntime's method, which adds up bins one at a time
and takes minutes if the first samples are much smaller than the rest: histograms then have many thousands of
bins. Here, neighbours are joined until there are at most ``MOST_BINS``.
"""

from __future__ import annotations

import numpy as np

from tinyml.ir import Array

MOST_BINS = 4096
STEPS = 128
LEAST = 0.0001
"""What an empty bin counts: no logarithm of 0."""


def entropy_range(counts: Array, edges: Array, low: float, high: float) -> tuple[float, float]:
    """The range to keep; ``edges`` are as far below 0 as above it, ``low`` and ``high`` were seen."""
    counts, edges = _joined(counts, edges)
    middle, half = counts.size // 2, STEPS // 2
    before = np.concatenate([[0], np.cumsum(counts)])
    best, kept = np.inf, (edges[0], edges[-1])
    for reach in range(half, middle + 1):
        start, end = middle - reach, min(middle + reach + 1, counts.size)
        loss = _loss(counts[start:end], before[start], before[-1] - before[end])
        if loss < best:
            best, kept = loss, (edges[start], edges[end])
    return max(float(kept[0]), low), min(float(kept[1]), high)


def _joined(counts: Array, edges: Array) -> tuple[Array, Array]:
    """Bins of equal width, as many of them in one as it takes, from the middle outwards."""
    together = -(-counts.size // MOST_BINS)
    if together == 1:
        return counts, edges
    half = counts.size // 2
    missing = -half % together
    wide = np.pad(counts, (missing, missing)).reshape(-1, together).sum(axis=1)
    width = (edges[-1] - edges[0]) / counts.size * together
    centre = (edges[0] + edges[-1]) / 2
    places = np.arange(wide.size + 1) - wide.size // 2
    return wide, (centre + width * places).astype(edges.dtype)


def _loss(part: Array, below: int, above: int) -> float:
    """How much the steps differ from the part of the histogram that they keep, with what is cut off."""
    exact = part.copy()
    exact[0] += below
    exact[-1] += above
    width = part.size // STEPS
    whole = STEPS * width
    sums = part[:whole].reshape(STEPS, width).sum(axis=1)
    sums[-1] += part[whole:].sum()
    used = np.count_nonzero(exact[:whole].reshape(STEPS, width), axis=1)
    steps = np.zeros_like(exact)
    steps[:whole] = np.repeat((sums / np.maximum(used, 1) * (used > 0)).astype(exact.dtype), width)
    p, q = _smooth(exact), _smooth(steps)
    if p is None or q is None:
        return float("inf")
    p, q = p / p.sum(), q / q.sum()
    return float((p * np.log(p / q)).sum())


def _smooth(counts: Array) -> Array | None:
    """With ``LEAST`` in empty bins, taken from the others; None if all are empty."""
    empty = counts == 0
    zeros = int(np.count_nonzero(empty))
    if zeros == counts.size:
        return None
    share = LEAST * zeros / (counts.size - zeros)
    found: Array = counts.astype(np.float32)
    found += np.where(empty, np.float32(LEAST), np.float32(-share))
    return found
