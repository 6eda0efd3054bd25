# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The sizes of library functions by which code is estimated are still what these functions take."""

from __future__ import annotations

import pytest

from tinyml import harness
from tinyml.cost.model import find_model
from tools import fit_links

EVERY = 12
"""One function of so many is linked."""
MACHINES = [
    "qemu-cortex-m4",
    *(pytest.param(f"qemu-cortex-{core}", marks=pytest.mark.deep) for core in ("m0", "m3", "m7", "m55")),
]


@pytest.mark.parametrize("machine", MACHINES)
def test_recorded_sizes(machine: str) -> None:
    costs = find_model(harness.find_machine(machine).target.name)
    assert costs is not None
    names = sorted(name for name in costs.code.functions if name.startswith("tinyml_"))[::EVERY]
    assert len(names) > 30
    changed = fit_links.changed(machine, names)
    assert not changed, f"after a change of their C, python -m tools.fit_costs --relink: {changed}"
