# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The arithmetic of one step of RNN, GRU and LSTM in numpy, and the activation functions they use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, Layer
from tinyml.ir.hook_types import Steps

GATES = {"rnn": 1, "gru": 3, "lstm": 4}


@dataclass(frozen=True)
class Activation:
    """An activation function by the name it has in C, with its parameters."""

    name: str
    alpha: float = 0.0
    beta: float = 0.0


FUNCTIONS: dict[str, Callable[[Array, float, float], Array]] = {
    "sigmoid": lambda x, a, b: 1 / (1 + np.exp(-x)),
    "tanh": lambda x, a, b: np.tanh(x),
    "relu": lambda x, a, b: np.maximum(x, 0),
    "affine": lambda x, a, b: a * x + b,
    "leaky_relu": lambda x, a, b: np.where(x >= 0, x, a * x),
    "thresholded_relu": lambda x, a, b: np.where(x >= a, x, 0),
    "scaled_tanh": lambda x, a, b: a * np.tanh(b * x),
    "hard_sigmoid": lambda x, a, b: np.clip(a * x + b, 0, 1),
    "elu": lambda x, a, b: np.where(x >= 0, x, a * (np.exp(x) - 1)),
    "softsign": lambda x, a, b: x / (1 + np.abs(x)),
    "softplus": lambda x, a, b: np.log(1 + np.exp(x)),
}


def activate(activation: Activation, x: Array) -> Array:
    with np.errstate(over="ignore"):
        y = FUNCTIONS[activation.name](x, np.float32(activation.alpha), np.float32(activation.beta))
    return np.asarray(y, np.float32)


def _rnn(op: Any, x: Array, h: Array, cell: Array, w: Array, r: Array, b: Array | None, p: Any) -> Any:
    bias = 0 if b is None else b[: len(h)] + b[len(h) :]
    return op.act(0, w @ x + r @ h + bias), cell


def _gru(op: Any, x: Array, h: Array, cell: Array, w: Array, r: Array, b: Array | None, p: Any) -> Any:
    n = len(h)
    wb, rb = (np.zeros(3 * n, np.float32),) * 2 if b is None else (b[: 3 * n], b[3 * n :])
    gates = op.act(0, w[: 2 * n] @ x + r[: 2 * n] @ h + wb[: 2 * n] + rb[: 2 * n])
    update, reset = gates[:n], gates[n:]
    if op.linear_before_reset:
        recurrent = reset * (r[2 * n :] @ h + rb[2 * n :])
    else:
        recurrent = r[2 * n :] @ (reset * h) + rb[2 * n :]
    fresh = op.act(1, w[2 * n :] @ x + recurrent + wb[2 * n :])
    return (1 - update) * fresh + update * h, cell


def _lstm(op: Any, x: Array, h: Array, cell: Array, w: Array, r: Array, b: Array | None, p: Any) -> Any:
    n = len(h)
    bias = 0 if b is None else b[: 4 * n] + b[4 * n :]
    into, out, forget, fresh = (w @ x + r @ h + bias).reshape(4, n)
    peep = np.zeros((3, n), np.float32) if p is None else p.reshape(3, n)
    add = op.act(0, into + peep[0] * cell)
    keep = 1 - add if op.input_forget else op.act(0, forget + peep[2] * cell)
    cell = keep * cell + add * op.act(1, fresh)
    return op.act(0, out + peep[1] * cell) * activate(op.activations[2], cell), cell


CELLS = {"rnn": _rnn, "gru": _gru, "lstm": _lstm}
"""(op, x, h, c, w, r, b, peepholes) -> (h, c)"""


def steps_of_lstm(layer: Layer, time_major: bool) -> Steps | None:
    """Of TFLite's LSTM, whose outputs are all steps, the last state and the last cell state.

    With batches first, the last steps of several batches do not follow each other.
    """
    every, last = layer.outputs[:2]
    steps, batches = every.shape[:2] if time_major else (every.shape[1], every.shape[0])
    if every.quant != last.quant or (batches > 1 and not time_major) or not steps:
        return None
    return Steps(0, 1, (steps - 1) * last.elements)
