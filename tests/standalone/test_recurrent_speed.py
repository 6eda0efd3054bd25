# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Limits of what RNN, GRU and LSTM on int8 take: instructions per multiplication, in every direction."""

from __future__ import annotations

import pytest

from tests.support.recurrent_shapes import instructions_each, shapes

MOST = {"qemu-cortex-m4": 1.30, "qemu-cortex-m55": 0.50}
USUAL = ((32, 32), (40, 40), (48, 20), (64, 12), (64, 64), (96, 24), (128, 40))
SMALL = (40, 12)
"""Units and inputs of the smallest layers within Cortex-M4's limit; Helium's vectors of 16 are not full."""
SMALL_MOST = {**MOST, "qemu-cortex-m55": 0.58}


@pytest.mark.parametrize("machine", MOST)
def test_usual_sizes(machine: str) -> None:
    found = {
        shape: each for size in USUAL for shape, each in instructions_each([*shapes([size])], machine).items()
    }
    assert {str(shape): each for shape, each in found.items() if each > MOST[machine]} == {}


@pytest.mark.parametrize("machine", SMALL_MOST)
def test_small_ones(machine: str) -> None:
    found = instructions_each([*shapes([SMALL])], machine)
    assert {str(shape): each for shape, each in found.items() if each > SMALL_MOST[machine]} == {}
