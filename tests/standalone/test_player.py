# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Layers that are data on emulated cores: the player with the kernels of each core, compared with numpy."""

from __future__ import annotations

import pytest

from tests.random_layers.batch import batch
from tests.random_layers.check import PLAYER, Choices, Place, check
from tinyml import harness

ALWAYS = ("qemu-cortex-m0", "qemu-cortex-m55")
MACHINES = [
    machine if machine in ALWAYS else pytest.param(machine, marks=pytest.mark.deep)
    for machine in (*harness.CORES, "qemu-riscv32-zve32x")
]


@pytest.mark.parametrize("machine", MACHINES)
def test_random_layers(machine: str) -> None:
    tally = check(batch(34, 11, size=40), Place(machine, PLAYER), Choices.of(11))
    assert not tally.wrong
    assert tally.equal > 20
