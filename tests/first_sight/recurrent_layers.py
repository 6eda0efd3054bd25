# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""GRU, LSTM and RNN as tools for quantisation leave them: pairs around them and at their weights."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import onnx

from tests.first_sight import Case, Refused, Right
from tests.support.onnx_models import model, node

GATES = {"GRU": 3, "LSTM": 4, "RNN": 1}
HIDDEN, INPUTS, STEPS = 5, 3, 4
MICROSOFT = "com.microsoft"


def quantised(kind: str, per_row: bool, pairs: bool, direction: str, **attributes: Any) -> bytes:
    """``per_row``: a scale for each row of the weights. ``pairs``: around the input and the output."""
    rng = np.random.default_rng(3200)
    directions, rows = 1 + (direction == "bidirectional"), GATES[kind] * HIDDEN
    nodes: list[onnx.NodeProto] = []
    constants: dict[str, Any] = {"x_s": np.float32(0.02), "y_s": np.float32(1 / 127), "zero": np.int8(0)}
    source = "x"
    if pairs:
        nodes += [
            node("QuantizeLinear", "x x_s zero", "x_q"),
            node("DequantizeLinear", "x_q x_s zero", "x_d"),
        ]
        source = "x_d"
    for name, size in (("w", INPUTS), ("r", HIDDEN)):
        constants[f"{name}_q"] = rng.integers(-127, 128, (directions, rows, size)).astype(np.int8)
        constants[f"{name}_s"] = rng.uniform(0.002, 0.006, rows if per_row else ()).astype(np.float32)
        nodes.append(node("DequantizeLinear", f"{name}_q {name}_s", name, axis=1))
    constants["b"] = rng.normal(0, 0.2, (directions, 2 * rows)).astype(np.float32)
    nodes.append(
        node(kind, f"{source} w r b", "h last", hidden_size=HIDDEN, direction=direction, **attributes)
    )
    if pairs:
        nodes += [node("QuantizeLinear", "h y_s zero", "h_q"), node("DequantizeLinear", "h_q y_s zero", "y")]
    else:
        nodes.append(node("Identity", "h", "y"))
    used = {name for each in nodes for name in each.input}
    kept = {name: value for name, value in constants.items() if name in used}
    return model(nodes, {"x": [STEPS, 1, INPUTS]}, "y", **kept)


def at_run_time() -> bytes:
    """What onnxruntime's dynamic quantisation makes of an LSTM."""
    constants = {
        "w": np.ones((1, INPUTS, 4 * HIDDEN), np.int8),
        "r": np.ones((1, HIDDEN, 4 * HIDDEN), np.int8),
        "s": np.full(1, 0.01, np.float32),
        "z": np.zeros(1, np.int8),
    }
    last = node("DynamicQuantizeLSTM", "x w r _ _ _ _ _ s z s z", "y", domain=MICROSOFT, hidden_size=HIDDEN)
    return model([last], {"x": [STEPS, 1, INPUTS]}, "y", domains={MICROSOFT: 1}, **constants)  # type: ignore[arg-type]


CASES: list[Case] = [
    *(
        Right(
            f"{kind}_{direction}_{'rows' if per_row else 'tensor'}{'_pairs' if pairs else ''}".lower(),
            partial(quantised, kind, per_row, pairs, direction),
        )
        for kind in GATES
        for direction, per_row, pairs in (
            ("forward", True, False),
            ("reverse", False, True),
            ("bidirectional", True, True),
        )
    ),
    Right("gru_reset_after", partial(quantised, "GRU", True, True, "forward", linear_before_reset=1)),
    Refused("at_run_time", at_run_time, ("DynamicQuantizeLSTM", "dynamic quantisation", "tinyml quantize")),
]
