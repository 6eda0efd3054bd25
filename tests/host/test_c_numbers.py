# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Tables of C: whatever way many numbers take to become text, each reads back with the same bits."""

from __future__ import annotations

import numpy as np
import pytest

from tinyml.base import c
from tinyml.ir import Array

RNG = np.random.default_rng(5)
SPECIAL = np.array([0.0, -0.0, 1e-9, -2e-4, 3e8, 1e6, np.nan, np.inf, -np.inf, 1.5, 1e-45, 3.4e38])

ENDS = np.array([*(10.0 ** np.arange(-5, 8)), *(2.0 ** np.arange(-14, 24)), 2e-4], np.float32)
NEIGHBOURS = np.concatenate([ENDS, np.nextafter(ENDS, np.float32(0)), np.nextafter(ENDS, np.float32(np.inf))])
"""Where the number of digits, or the distance of floats, changes."""


@pytest.mark.parametrize(
    "values",
    [
        SPECIAL,
        np.tile(SPECIAL, 50),
        RNG.normal(0, 1, c.AT_ONCE + 7),
        RNG.normal(0, 1, 5000).astype(np.float16),
        10.0 ** RNG.uniform(-44, 38, 3000),
        RNG.choice([0.25, -0.25], 4001),
        np.zeros(0),
        RNG.integers(-(10**6), 10**6, 4000) / 10.0 ** RNG.integers(0, 8, 4000),
        NEIGHBOURS,
    ],
    ids=["special", "repeated", "distinct", "halves", "powers", "two", "none", "decimals", "neighbours"],
)
def test_floats(values: Array) -> None:
    floats = values.astype(np.float32)
    rows = c.table_rows(floats)
    texts = "".join(rows).replace("\t", " ").replace(",", " ").split()
    assert texts == [c.floating(value) for value in floats]
    read = np.array([float(text.removesuffix("f").replace("NAN", "nan").replace("INFINITY", "inf"))
                     for text in texts], np.float32)  # fmt: skip
    finite = ~np.isnan(floats)
    assert np.array_equal(read.view(np.uint32)[finite], floats.view(np.uint32)[finite])
    assert all(len(row.expandtabs(c.TAB_COLUMNS)) <= c.COLUMNS for row in rows)
