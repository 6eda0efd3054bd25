# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Every core computes RNN, GRU and LSTM on int8 as numpy does, in every bit."""

from __future__ import annotations

import pytest

from tests.random_layers.batch import batch
from tests.random_layers.check import Choices, Place, check
from tinyml import harness

LAYERS = 16


@pytest.mark.parametrize("machine", harness.CORES)
def test_random_recurrent_layers(machine: str) -> None:
    found = check(batch(4, 0, LAYERS, "recurrent"), Place(machine, "portable"), Choices.of(0))
    assert found.wrong == {}
    assert found.equal == LAYERS
    assert len(found.kernels) == 3  # of RNN, GRU and LSTM, for this core
