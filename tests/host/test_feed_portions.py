# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Random front ends fed in odd portions: one sample, primes, everything at once, with resets in between.

Whatever the portions are, the runs are the same as those of the features in numpy.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.depth import some
from tests.support.feeding import compiled_with, feed, negating
from tinyml.features.settings import FrontEnd, from_mapping
from tinyml.ir import Array

PRIMES = (2, 3, 5, 7, 13, 97, 499, 1009)


def drawn(rng: np.random.Generator) -> tuple[FrontEnd, Array, int]:
    """A front end, samples for it, and the rows of the model's input."""
    kind = str(rng.choice(["spectral", "spectral", "normalize", "micro", "mfcc"]))
    settings: dict[str, Any] = {"kind": kind}
    rows, axes = int(rng.integers(1, 5)), 1
    if kind in ("spectral", "normalize"):
        axes = settings["axes"] = int(rng.integers(1, 5))
    if kind == "spectral":
        settings["window_samples"] = int(rng.choice([8, 18, 64, 100]))
        settings["step_samples"] = int(rng.integers(1, settings["window_samples"] + 1))
        settings["bands"] = [0, 100, 200, 500]
    if kind == "micro":
        settings["step_ms"] = int(rng.choice([10, 20, 30]))
    if rng.random() < 0.7:
        settings["stride"] = int(rng.integers(1, rows + 1))
    frames = {"spectral": 700, "normalize": 60}.get(kind, 4000)
    end = from_mapping(settings, "test")
    samples = rng.normal(0, 1, (frames, axes)).astype(np.float32)
    if kind in ("micro", "mfcc"):
        samples = (samples[:, 0] * 3000).astype(np.int16)
    return end, samples, rows


def portions(rng: np.random.Generator, samples: Array) -> list[list[Array]]:
    """The samples in several ways: as a whole, one by one, in pieces of a prime, and of random lengths."""
    prime = int(rng.choice(PRIMES))
    ends = np.cumsum(rng.integers(1, len(samples), 200))
    return [
        [samples],
        np.split(samples, range(1, len(samples))),
        np.split(samples, range(prime, len(samples), prime)),
        np.split(samples, ends[ends < len(samples)]),
    ]


@pytest.mark.parametrize("seed", some(range(40)))
def test_portions(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng([91, seed])
    end, samples, rows = drawn(rng)
    compiled = compiled_with(negating(tmp_path, (1, rows, end.settings.width)), end)
    broken = int(rng.integers(1, len(samples)))
    runs = feed(compiled, [samples, None, samples[:broken]])
    assert len(runs), "no run at all"
    chunks: list[Array | None] = []
    ways = portions(rng, samples)
    for way in ways:
        chunks += [*way, None, samples[:broken], None]
    found = feed(compiled, chunks)
    assert len(found) == len(ways) * len(runs)
    np.testing.assert_array_equal(found.reshape(len(ways), *runs.shape), np.stack([runs] * len(ways)))
    if end.kind != "micro":  # whose features are scaled
        features = end.compute(samples)
        most = float(np.abs(features).max())
        np.testing.assert_allclose(-runs[0].reshape(rows, -1), features[:rows], rtol=1e-3, atol=2e-3 * most)
