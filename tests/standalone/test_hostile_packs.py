# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Changed packs on emulated cores: no fault, no byte outside of the memory of a model."""

import pytest

from tests.depth import is_deep
from tests.support.hostile_packs import campaign

COUNT = 20_000 if is_deep() else 500


@pytest.mark.parametrize("core", ["m4", pytest.param("m0", marks=pytest.mark.deep)])
def test_on_a_core(core: str) -> None:
    counts = campaign(f"qemu-cortex-{core}", seed=34, first=0, count=COUNT, timeout_seconds=600)
    assert sum(counts.values()) == COUNT
    assert min(counts[0], counts[-27]) > COUNT // 100, counts
