# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The counts that kernels are chosen by are still what these kernels take."""

from __future__ import annotations

import pytest

from tinyml.setup.workspace import find_cmsis_nn
from tools import kernel_counts

SOME = (
    "pointwise_8x8x32_to_32",
    "square_16",
    "depthwise_32",
    "depthwise_5x5",
    "dense_128_to_64",
    "mel_129_to_20",
)
CLOSE = 0.03
"""Another release of the compiler writes slightly different code."""


@pytest.mark.parametrize("machine", ["qemu-cortex-m3", "qemu-cortex-m4", "qemu-cortex-m55"])
def test_recorded_counts(machine: str) -> None:
    if find_cmsis_nn() is None:
        pytest.skip("no CMSIS-NN here (TINYML_CMSIS_NN, or a west workspace)")
    known = {
        (one.layer, one.kernel): one.instructions for one in kernel_counts.load() if one.machine == machine
    }
    for one in kernel_counts.count(machine, SOME):
        recorded = known[one.layer, one.kernel]
        assert one.instructions == pytest.approx(recorded, rel=CLOSE), (
            f"{one.kernel} on {one.layer}: after a change of its C, python -m tools.kernel_counts --again"
        )
