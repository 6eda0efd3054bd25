# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Limits of what RNN, GRU and LSTM on int8 take: instructions per multiplication, in every direction."""

from __future__ import annotations

import pytest

from tests.support.recurrent_shapes import instructions_each, shapes

MOST = {"qemu-cortex-m4": 1.30, "qemu-cortex-m55": 0.46}
SIZES = ((32, 12), (32, 32), (40, 12), (40, 40), (48, 20), (64, 12), (64, 64), (96, 24), (128, 40))
"""Units and inputs within the limits, whether all steps are given or the last one."""


@pytest.mark.parametrize("machine", MOST)
def test_recurrent_layers(machine: str) -> None:
    above: dict[str, float] = {}
    for size in SIZES:
        found = instructions_each([*shapes([size])], machine)
        above |= {str(shape): each for shape, each in found.items() if each > MOST[machine]}
    assert above == {}
