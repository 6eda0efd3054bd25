# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What the player's checks state is what kernels touch, on emulated cores: those kernels are assembly."""

import pytest

from tests.depth import is_deep
from tests.support.hostile_packs import rules
from tinyml.base.errors import ToolError

COUNT = 100_000 if is_deep() else 6_000
CORES = [
    "cortex-m0",
    "cortex-m4",
    "cortex-m55",
    pytest.param("cortex-m3", marks=pytest.mark.deep),
    pytest.param("riscv32-zve32x", marks=pytest.mark.deep),
]


@pytest.mark.parametrize("core", CORES)
def test_on_a_core(core: str) -> None:
    counts = rules(f"qemu-{core}", seed=34, first=0, count=COUNT, timeout_seconds=600)
    assert sum(counts.values()) == COUNT
    assert COUNT // 10 < counts[""] < COUNT * 9 // 10, counts


@pytest.mark.deep  # tests/host/test_play_rules.py always tries
def test_generous_rules_are_found() -> None:
    with pytest.raises(ToolError, match="a finding"):
        rules("qemu-cortex-m4", seed=34, first=0, count=1000, short=4)
