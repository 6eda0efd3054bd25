# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Ranges by entropy: onnxruntime's own, in a fraction of its time."""

from __future__ import annotations

import contextlib
import io

import numpy as np
import pytest

from tinyml.ir import Array
from tinyml.quantize import entropy

KINDS = ("normal", "positive", "long_tailed", "zeros")


def values(kind: str) -> Array:
    rng = np.random.default_rng(KINDS.index(kind))
    normal = rng.normal(0, 1, 2000)
    found = {
        "normal": normal,
        "positive": np.maximum(normal, 0),
        "long_tailed": np.clip(rng.standard_cauchy(2000), -9, 9),
        "zeros": np.zeros(2000),
    }
    return np.asarray(found[kind].astype(np.float32))


def collected(samples: Array, chunk: int) -> tuple[Array, Array, float, float]:
    calibrate = pytest.importorskip("onnxruntime.quantization.calibrate")
    collector = calibrate.HistogramCollector("entropy", False, 512, entropy.STEPS, 99.0, None)
    with contextlib.redirect_stdout(io.StringIO()):
        for start in range(0, len(samples), chunk):
            collector.collect({"t": samples[start : start + chunk]})
        expected = collector.get_entropy_threshold(collector.histogram_dict["t"], entropy.STEPS)
    counts, edges, low, high, _ = collector.histogram_dict["t"]
    assert entropy.entropy_range(counts, edges, float(low), float(high)) == tuple(map(float, expected))
    return counts, edges, float(low), float(high)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_ranges(kind: str) -> None:
    collected(values(kind), 1000)


def test_bins_are_joined_where_the_first_samples_are_small() -> None:
    """A thousand bins for each step of the first samples would take minutes."""
    counts, edges, low, high = collected(values("normal"), 1000)
    width = edges[1] - edges[0]
    more = 100 * counts.size
    wide = np.pad(counts, (more, more))
    wide[0] = wide[-1] = 1
    far = float(edges[-1] + more * width)
    places = np.linspace(-far, far, wide.size + 1).astype(np.float32)
    joined, joined_edges = entropy._joined(wide, places)
    assert joined.size <= entropy.MOST_BINS
    assert joined.sum() == wide.sum()
    assert joined_edges[0] <= -far
    assert joined_edges[joined.size // 2] == 0
    found = entropy.entropy_range(wide, places, -far, far)
    assert found[0] <= low
    assert found[1] >= high - width
