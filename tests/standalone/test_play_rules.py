# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What the player's checks state is what kernels touch, on emulated cores: those kernels are assembly."""

import pytest

from tests.depth import is_deep
from tests.support.hostile_packs import rules
from tinyml.base.errors import ToolError

COUNT = 100_000 if is_deep() else 6_000


@pytest.mark.parametrize("core", ["cortex-m0", "cortex-m3", "cortex-m4", "cortex-m55", "riscv32-zve32x"])
def test_on_a_core(core: str) -> None:
    counts = rules(f"qemu-{core}", seed=34, first=0, count=COUNT, timeout_seconds=600)
    assert sum(counts.values()) == COUNT
    assert COUNT // 10 < counts[""] < COUNT * 9 // 10, counts


def test_generous_rules_are_found() -> None:
    with pytest.raises(ToolError, match="a finding"):
        rules("qemu-cortex-m4", seed=34, first=0, count=1000, short=4)
