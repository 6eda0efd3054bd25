# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""How often the loops of RNN, GRU and LSTM on int8 run: recurrent_run_s8.h and what it calls."""

from __future__ import annotations

from tinyml.ir import Layer
from tinyml.ops.framework.work import Work
from tinyml.ops.recurrent.cells import GATES
from tinyml.ops.recurrent.recurrent_int8 import R, RecurrentInt8, X
from tinyml.ops.weighted.walked import groups_of

ROWS = 4
"""The same gate of four cells is computed at a time."""


def recurrent(layer: Layer[RecurrentInt8], padding: int) -> Work:
    """All steps of all batches. ``padding``: elements of a copy of input and state are a multiple of this."""
    op = layer.op
    steps, batches, inputs = layer.input(X).shape
    hidden = layer.input(R).shape[1]
    turns, fours = steps * batches, groups_of(hidden, ROWS)
    groups = turns * fours * GATES[op.cell]
    way = " before reset" if op.second_bias else ""
    return {
        "calls": 1,
        "batches": batches,
        "states begun": batches * hidden,
        "copies cleared": groups_of(inputs, padding) + groups_of(hidden, padding),
        f"steps{way}": turns,
        "inputs copied": turns * inputs,
        "states given": turns * op.sequence,
        "elements given": (turns * op.sequence + batches) * hidden,
        "groups": groups,
        "blocks of inputs": groups * groups_of(inputs, padding),
        "blocks of states": groups * groups_of(hidden, padding),
        f"fours of cells{way}": turns * fours,
        f"cells{way}": turns * hidden,
    }
