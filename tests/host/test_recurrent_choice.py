# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Kernels for DSP instructions refuse recurrent layers whose numbers do not fit into their words."""

from __future__ import annotations

import numpy as np
import pytest

from tinyml import harness
from tinyml.ir import DType, Graph, Node, Quant, Tensor
from tinyml.memory.select import select
from tinyml.ops import catalog  # noqa: F401  (registers the kernels)
from tinyml.ops.framework.kernel import Library
from tinyml.ops.recurrent.cells import GATES
from tinyml.ops.recurrent.recurrent_int8 import RecurrentInt8

INPUTS, HIDDEN = 8, 4
PLAIN = {"rnn": "tinyml_rnn_s8", "gru": "tinyml_gru_s8", "lstm": "tinyml_recurrent_lstm_s8"}


def chosen(cell: str, scale: float, recurrent_scale: float) -> str:
    """The kernel for a Cortex-M4: ``scale`` is that of the state."""
    rows = GATES[cell] * HIDDEN
    op = RecurrentInt8(cell, scale=scale)
    tensors = [Tensor("x", (3, 1, INPUTS), DType.INT8, Quant.per_tensor(0.02, 0))]
    for name, size, step in (("w", INPUTS, 0.004), ("r", HIDDEN, recurrent_scale)):
        values = np.ones((rows, size), np.int8)
        tensors.append(Tensor.constant(name, values, Quant((step,) * rows, (0,) * rows, 0)))
    tensors.append(Tensor.constant("b", np.zeros(rows, np.int32)))
    outputs = [Tensor.of(f"y{i}", type_) for i, type_ in enumerate(op.infer(tensors))]
    node = Node("cell", op, tuple(t.name for t in tensors), tuple(t.name for t in outputs))
    graph = Graph("g", {t.name: t for t in (*tensors, *outputs)}, (node,), ("x",), node.outputs)
    (layer,) = select(graph, harness.find_machine("qemu-cortex-m4").target, frozenset({Library.PORTABLE}))
    return layer.kernel.name


@pytest.mark.parametrize("cell", list(GATES))
def test_usual_layers_use_dsp_instructions(cell: str) -> None:
    assert chosen(cell, 1 / 128, 0.004) == PLAIN[cell].replace("_s8", "_dsp_s8")


@pytest.mark.parametrize("cell", list(GATES))
def test_states_that_are_tiny(cell: str) -> None:
    assert chosen(cell, 2.0**-13, 0.004) == PLAIN[cell].replace("_s8", "_dsp_s8")
    assert chosen(cell, 2.0**-14, 0.004) == PLAIN[cell]


@pytest.mark.parametrize("cell", list(GATES))
def test_recurrent_weights_that_are_huge(cell: str) -> None:
    assert chosen(cell, 1 / 128, 0.49) == PLAIN[cell].replace("_s8", "_dsp_s8")  # shifted by 8 bits
    assert chosen(cell, 1 / 128, 0.51) == PLAIN[cell]
