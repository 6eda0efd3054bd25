# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""RNN, GRU and LSTM: directions, states, lengths, activations, clipping, peepholes, layouts."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.support.cases import Case, Const, onnx_case
from tests.support.data import real
from tinyml.ir import Array

STEPS, BATCHES, INPUTS, HIDDEN = 5, 2, 3, 4
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def case(
    name: str,
    op: str,
    *,
    known: bool = True,
    directions: int = 1,
    lengths: Array | None = None,
    states: bool = False,
    peepholes: bool = False,
    batch_first: bool = False,
    coarse: bool = False,
    **attributes: Any,
) -> Case:
    """A layer with random weights, which are constants unless ``known`` is False.

    ``coarse`` weights are bytes times a scale, enough of them to be stored so.
    """
    inputs, hidden = (9, 8) if coarse else (INPUTS, HIDDEN)
    rows = GATES[op] * hidden
    x = real(BATCHES, STEPS, inputs) if batch_first else real(STEPS, BATCHES, inputs)
    weights = [
        real(directions, rows, inputs, seed=1),
        real(directions, rows, hidden, seed=2),
        real(directions, 2 * rows, seed=3),
    ]
    if coarse:
        weights[:2] = [np.rint(w * 30) * np.float32(0.02) for w in weights[:2]]
    operands: list[Array | Const | None] = [x, *(Const(w) if known else w for w in weights), lengths]
    shape = (BATCHES, directions, hidden) if batch_first else (directions, BATCHES, hidden)
    operands.append(real(*shape, seed=4) if states else None)
    if op == "LSTM":
        operands.append(real(*shape, seed=5) if states else None)
        operands.append(Const(real(directions, 3 * hidden, seed=6)) if peepholes else None)
    while operands[-1] is None:
        operands.pop()
    outputs = 3 if op == "LSTM" else 2
    return onnx_case(
        name,
        op,
        operands,
        outputs=outputs,
        hidden_size=hidden,
        layout=int(batch_first),
        atol=1e-5,
        **attributes,
    )


SHORT = np.array([3, 5], np.int32)
NONE = np.array([0, 4], np.int32)
FUNCTIONS = {
    "RNN": ["Softsign"],
    "GRU": ["HardSigmoid", "ScaledTanh"],
    "LSTM": ["HardSigmoid", "LeakyRelu", "Affine"],
}

CASES: list[Case] = [
    *(case(f"{op}_plain", op) for op in GATES),
    *(case(f"{op}_bytes", op, coarse=True, directions=2, direction="bidirectional") for op in GATES),
    case("GRU_bytes_linear", "GRU", coarse=True, linear_before_reset=1),
    *(case(f"{op}_data", op, known=False, states=True) for op in GATES),
    *(case(f"{op}_reverse", op, direction="reverse", states=True) for op in GATES),
    *(case(f"{op}_both_ways", op, directions=2, direction="bidirectional", states=True) for op in GATES),
    *(case(f"{op}_lengths", op, lengths=SHORT, directions=2, direction="bidirectional") for op in GATES),
    *(case(f"{op}_no_steps", op, lengths=NONE, states=True) for op in GATES),
    *(case(f"{op}_clip", op, clip=0.3) for op in GATES),
    *(
        case(
            f"{op}_functions",
            op,
            activations=names,
            activation_alpha=[0.3] * len(names),
            activation_beta=[0.6] * len(names),
        )
        for op, names in FUNCTIONS.items()
        if op != "LSTM"
    ),
    case("gru_linear_first", "GRU", linear_before_reset=1, states=True),
    case("lstm_peepholes", "LSTM", peepholes=True, states=True),
    case("lstm_input_forget", "LSTM", input_forget=1),
]
