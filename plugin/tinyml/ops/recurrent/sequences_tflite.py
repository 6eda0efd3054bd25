# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""TFLite's RNN, UNIDIRECTIONAL_SEQUENCE_RNN, BIDIRECTIONAL_SEQUENCE_RNN and BIDIRECTIONAL_SEQUENCE_LSTM."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.base.errors import UnsupportedError
from tinyml.ir import DType, Tensor
from tinyml.ops.concat import concat
from tinyml.ops.framework.reading import Builder, TfliteNode, tflite_op
from tinyml.ops.recurrent.cells import Activation
from tinyml.ops.recurrent.lstm_float import LstmFloat
from tinyml.ops.recurrent.rnn import Recurrent
from tinyml.ops.reshape import Reshape
from tinyml.ops.shared.real import real_weights
from tinyml.ops.slice import Slice
from tinyml.ops.transpose import Transpose

TURNED = (1, 0, 2)
"""Batches and steps change places."""

# Of BIDIRECTIONAL_SEQUENCE_LSTM: weights of both directions, their states, what a second input brings.
FORWARD, BACKWARD, STATES, AUXILIARY, OPERANDS = 1, 18, (35, 37), 39, 17


@tflite_op("RNN", "UNIDIRECTIONAL_SEQUENCE_RNN")
def read_rnn(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    _check(node)
    x = node.input(0)
    if node.op_type == "RNN":  # one step
        y = _rnn(node, build, build.add1(Reshape((1, *x.shape)), [x]), 1, False)
        return [build.add1(Reshape(y.shape[1:]), [y])]
    time_major = bool(node.options.TimeMajor())
    y = _rnn(node, build, _steps_first(build, x, time_major), 1, False)
    return [_steps_first(build, y, time_major)]


@tflite_op("BIDIRECTIONAL_SEQUENCE_RNN")
def read_both_ways(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    _check(node, range(9, 12))
    time_major = bool(node.options.TimeMajor())
    x = _steps_first(build, node.input(0), time_major)
    both = [_rnn(node, build, x, 1, False), _rnn(node, build, x, 5, True)]
    return _merged(build, node, [_steps_first(build, y, time_major) for y in both])


@tflite_op("BIDIRECTIONAL_SEQUENCE_LSTM")
def read_lstm_both_ways(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    from tflite import ActivationFunctionType

    _check(node, range(AUXILIARY, AUXILIARY + 9))
    if node.activation != ActivationFunctionType.TANH:
        raise UnsupportedError(f"{node.op_type} operator {node.name!r}: its activation is not tanh")
    x, time_major = node.input(0), bool(node.options.TimeMajor())
    time = 0 if time_major else 1
    forward = _lstm(node, build, x, FORWARD, STATES[0])
    backward = _lstm(node, build, _backwards(build, x, time), BACKWARD, STATES[1])
    return _merged(build, node, [forward, _backwards(build, backward, time)])


def _check(node: TfliteNode, second: Sequence[int] = ()) -> None:
    """Refuse what is rare: other types, and a second input that goes into every step."""
    if node.input(0).dtype is not DType.FLOAT32:
        raise UnsupportedError(
            f"{node.op_type} operator {node.name!r} on {node.input(0).dtype.value}", "float32 is supported"
        )
    if any(node.optional(i) is not None for i in second):
        raise UnsupportedError(
            f"{node.op_type} operator {node.name!r}: a second input is not supported",
            "join the inputs before the layer",
        )


def _steps_first(build: Builder, x: Tensor, time_major: bool) -> Tensor:
    """Steps, batches, features; also the way back."""
    return x if time_major else build.add1(Transpose(TURNED), [x])


def _backwards(build: Builder, x: Tensor, axis: int) -> Tensor:
    starts = tuple(extent - 1 if a == axis else 0 for a, extent in enumerate(x.shape))
    return build.add1(Slice(starts, x.shape, tuple(-1 if a == axis else 1 for a in range(3))), [x])


def _merged(build: Builder, node: TfliteNode, both: Sequence[Tensor]) -> list[Tensor]:
    """One output of both directions, or two."""
    return [concat(build, both, 2)] if node.options.MergeOutputs() else list(both)


def _activation(node: TfliteNode) -> Activation:
    from tflite import ActivationFunctionType as Kind

    known = {Kind.TANH: Activation("tanh"), Kind.RELU: Activation("relu"), Kind.NONE: Activation("affine", 1)}
    if node.activation not in known:
        raise UnsupportedError(
            f"{node.op_type} operator {node.name!r}: its activation is not supported",
            "tanh, relu and none are",
        )
    return known[node.activation]


def _constant(node: TfliteNode, build: Builder, index: int) -> Tensor:
    """Weights as float; those of a hybrid model are dequantised."""
    node.const(index)
    return real_weights(build, node.input(0), node.input(index))


def _rnn(node: TfliteNode, build: Builder, x: Tensor, first: int, reverse: bool) -> Tensor:
    """All steps of one direction, whose weights, recurrent weights, bias and state begin at ``first``."""
    weights, recurrent, bias = (_constant(node, build, first + i) for i in range(3))
    state = node.input(first + 3)
    both = build.constant(np.concatenate([bias.value, np.zeros_like(bias.value)]))
    op = Recurrent("rnn", (_activation(node),), reverse)
    every, last = build.add(op, [x, weights, recurrent, both, None, state])
    build.update(state, last)
    return every


def _lstm(node: TfliteNode, build: Builder, x: Tensor, first: int, states: int) -> Tensor:
    """All steps of one direction; operands in the order of UNIDIRECTIONAL_SEQUENCE_LSTM."""
    operands = [
        None if node.optional(index) is None else _constant(node, build, index)
        for index in range(first, first + OPERANDS)
    ]
    state, cell, options = node.input(states), node.input(states + 1), node.options
    op = LstmFloat(options.CellClip(), options.ProjClip(), bool(options.TimeMajor()))
    y, last_state, last_cell = build.add(op, [x, *operands, state, cell])
    build.update(state, last_state)
    build.update(cell, last_cell)
    return y
