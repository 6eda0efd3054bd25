# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The player refuses changed packs or runs them within their memory (python -m tools.hostile_packs).

What its checks state is what kernels touch: tools/hostile/rules.c. Both run under sanitizers. They are in one
file because they start from the same packs.
"""

import pytest

from tests.depth import is_deep
from tests.support.hostile_packs import campaign, rules, with_rules
from tinyml.base.errors import ToolError
from tinyml.harness import find_machine

PACKS = 200_000 if is_deep() else 10_000
CALLS = 1_000_000 if is_deep() else 60_000
ACCEPTED, WRONG_SUM, POSITION, CALL = 0, -6, -15, -27


def test_packs_under_sanitizers() -> None:
    """Every check is reached, and real packs among them are accepted."""
    counts = campaign("host", seed=34, first=0, count=PACKS)
    assert sum(counts.values()) == PACKS
    assert all(counts[error] > PACKS // 100 for error in (ACCEPTED, WRONG_SUM, POSITION, CALL)), counts


def test_rules_under_sanitizers() -> None:
    counts = rules("host", seed=34, first=0, count=CALLS)
    refused = counts.pop("")
    assert CALLS // 10 < refused < CALLS * 9 // 10, counts
    assert set(counts) == {kernel.name for kernel in with_rules(find_machine("host"))}


def test_generous_rules_are_found() -> None:
    with pytest.raises(ToolError, match="use-after-poison"):
        rules("host", seed=34, first=0, count=1000, short=1)
