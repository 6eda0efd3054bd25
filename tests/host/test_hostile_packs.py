# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The player refuses changed packs or runs them within their memory (python -m tools.hostile_packs)."""

from tests.depth import is_deep
from tests.support.hostile_packs import campaign

COUNT = 200_000 if is_deep() else 10_000
ACCEPTED, WRONG_SUM, POSITION, CALL = 0, -6, -15, -27


def test_under_sanitizers() -> None:
    """Every check is reached, and real packs among them are accepted."""
    counts = campaign("host", seed=34, first=0, count=COUNT)
    assert sum(counts.values()) == COUNT
    assert all(counts[error] > COUNT // 100 for error in (ACCEPTED, WRONG_SUM, POSITION, CALL)), counts
