# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What the player's checks state is what kernels touch: tools/hostile/rules.c, under sanitizers."""

import pytest

from tests.depth import is_deep
from tests.support.hostile_packs import available, rules
from tinyml.base.errors import ToolError
from tinyml.harness import find_machine

COUNT = 1_000_000 if is_deep() else 60_000


def test_under_sanitizers() -> None:
    counts = rules("host", seed=34, first=0, count=COUNT)
    refused = counts.pop("")
    assert COUNT // 10 < refused < COUNT * 9 // 10, counts
    assert set(counts) == {kernel.name for kernel in available(find_machine("host"))}


def test_generous_rules_are_found() -> None:
    with pytest.raises(ToolError, match="use-after-poison"):
        rules("host", seed=34, first=0, count=1000, short=1)
