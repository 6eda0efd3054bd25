# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Changed packs on emulated cores: no fault, no byte outside of the memory of a model.

What the player's checks state is what kernels touch, which are assembly there.
"""

import pytest

from tests.depth import is_deep
from tests.support.hostile_packs import campaign, rules
from tinyml.base.errors import ToolError

PACKS = 20_000 if is_deep() else 500
CALLS = 100_000 if is_deep() else 6_000
CORES = [
    "cortex-m0",
    "cortex-m4",
    "cortex-m55",
    pytest.param("cortex-m3", marks=pytest.mark.deep),
    pytest.param("riscv32-zve32x", marks=pytest.mark.deep),
]


@pytest.mark.parametrize("core", ["m4", pytest.param("m0", marks=pytest.mark.deep)])
def test_packs_on_a_core(core: str) -> None:
    counts = campaign(f"qemu-cortex-{core}", seed=34, first=0, count=PACKS, timeout_seconds=600)
    assert sum(counts.values()) == PACKS
    assert min(counts[0], counts[-27]) > PACKS // 100, counts


@pytest.mark.parametrize("core", CORES)
def test_rules_on_a_core(core: str) -> None:
    counts = rules(f"qemu-{core}", seed=34, first=0, count=CALLS, timeout_seconds=600)
    assert sum(counts.values()) == CALLS
    assert CALLS // 10 < counts[""] < CALLS * 9 // 10, counts


@pytest.mark.deep  # the host always tries
def test_generous_rules_are_found() -> None:
    with pytest.raises(ToolError, match="a finding"):
        rules("qemu-cortex-m4", seed=34, first=0, count=1000, short=4)
