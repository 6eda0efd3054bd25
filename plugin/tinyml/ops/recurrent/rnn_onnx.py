# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Readers of ONNX RNN, GRU and LSTM: directions, layouts, defaults of the activation functions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tinyml.base.errors import UnsupportedError
from tinyml.ir import Layer, Tensor
from tinyml.ops.concat import concat
from tinyml.ops.framework.quantization_facts import quantizes
from tinyml.ops.framework.reading import Builder, OnnxNode, onnx_op
from tinyml.ops.framework.writing import OnnxWriter, onnx_writer
from tinyml.ops.recurrent.cells import GATES, Activation
from tinyml.ops.recurrent.integer_form import FUNCTIONS, MOST_CELL_BITS, USUAL_CELL_BITS, cell_bits
from tinyml.ops.recurrent.recurrent_int8 import WIDE
from tinyml.ops.recurrent.rnn import C0, H0, LENGTHS, PEEPHOLES, Recurrent, X
from tinyml.ops.reshape import Reshape
from tinyml.ops.slice import take
from tinyml.ops.transpose import Transpose

if TYPE_CHECKING:
    import onnx

NAMES = {
    "sigmoid": ("sigmoid", 0.0, 0.0),
    "tanh": ("tanh", 0.0, 0.0),
    "relu": ("relu", 0.0, 0.0),
    "affine": ("affine", 1.0, 0.0),
    "leakyrelu": ("leaky_relu", 0.01, 0.0),
    "thresholdedrelu": ("thresholded_relu", 1.0, 0.0),
    "scaledtanh": ("scaled_tanh", 1.0, 1.0),
    "hardsigmoid": ("hard_sigmoid", 0.2, 0.5),
    "elu": ("elu", 1.0, 0.0),
    "softsign": ("softsign", 0.0, 0.0),
    "softplus": ("softplus", 0.0, 0.0),
}
"""ONNX's name in lower case -> ours, and the defaults of alpha and beta."""

CELL_BITS = "tinyml.cell_bits"
"""An attribute that the importer adds, from the metadata of the file."""

DEFAULTS = {"RNN": ("Tanh",), "GRU": ("Sigmoid", "Tanh"), "LSTM": ("Sigmoid", "Tanh", "Tanh")}
TAKES_ALPHA = ("affine", "leaky_relu", "thresholded_relu", "scaled_tanh", "hard_sigmoid", "elu")
TAKES_BETA = ("affine", "scaled_tanh", "hard_sigmoid")


def _activations(node: OnnxNode, directions: int) -> list[tuple[Activation, ...]]:
    """The functions of each direction. Parameters are listed only for functions that take them."""
    default = DEFAULTS[node.op_type]
    names = list(node.attr("activations", default * directions))
    alphas = iter(node.attr("activation_alpha", ()))
    betas = iter(node.attr("activation_beta", ()))
    found = []
    for name in names:
        if name.lower() not in NAMES:
            raise UnsupportedError(
                f"{node.op_type} node {node.name!r}: activation {name!r} is not known", ", ".join(NAMES)
            )
        ours, alpha, beta = NAMES[name.lower()]
        alpha = float(next(alphas, alpha)) if ours in TAKES_ALPHA else alpha
        beta = float(next(betas, beta)) if ours in TAKES_BETA else beta
        found.append(Activation(ours, alpha, beta))
    count = len(default)
    return [tuple(found[d * count : (d + 1) * count]) for d in range(directions)]


def _direction(build: Builder, tensor: Tensor | None, number: int, axis: int = 0) -> Tensor | None:
    """The part of an operand that belongs to one direction, without that axis."""
    if tensor is None:
        return None
    part = take(build, tensor, {axis: (number, 1, 1)})
    shape = (*part.shape[:axis], *part.shape[axis + 1 :])
    return build.add1(Reshape(shape), [part])


def _tied(node: onnx.NodeProto) -> list[str]:
    """Steps and states, which are the same numbers; GRU's state has a type of its own between runs."""
    states = [*node.output[:2], *(node.input[H0 : H0 + 1] if node.op_type != "GRU" else [])]
    return [name for name in states if name and name not in _wide(node)]


def _int16(node: onnx.NodeProto, ranges: Mapping[str, tuple[float, float]]) -> dict[str, float]:
    """States that are int16, with their scales: cells, and GRU's state between runs.

    Cells may become twice as large as those of the calibration data: int16 has bits to spare for that.
    """
    found = dict.fromkeys(_wide(node), WIDE.scale)
    cells = [name for name in (*node.input[C0 : C0 + 1], *node.output[2:3]) if name in ranges]
    if cells:
        reach = max(abs(limit) for name in cells for limit in ranges[name])
        found |= dict.fromkeys(cells, 2.0 ** (cell_bits(2 * reach) - 15))
    return found


def _reach(node: onnx.NodeProto, ranges: Mapping[str, tuple[float, float]]) -> float:
    cells = node.output[2] if len(node.output) > 2 else ""
    return max(abs(limit) for limit in ranges.get(cells, (0.0, 0.0)))


def _too_large(
    node: onnx.NodeProto, ranges: Mapping[str, tuple[float, float]], stated: Collection[str]
) -> bool:
    """Cells whose scale the file does not state have the usual one."""
    is_stated = len(node.output) > 2 and node.output[2] in stated
    return _reach(node, ranges) > 2.0 ** (MOST_CELL_BITS if is_stated else USUAL_CELL_BITS)


def _unusual_bits(node: onnx.NodeProto, ranges: Mapping[str, tuple[float, float]]) -> int | None:
    """Integer bits of an LSTM's cells, if they are larger than usual."""
    reach = _reach(node, ranges)
    return cell_bits(2 * reach) if reach > 2.0**USUAL_CELL_BITS else None


def _wide(node: onnx.NodeProto) -> list[str]:
    """GRU's first and last state, if there is a first one."""
    first = [*node.input[H0 : H0 + 1], *node.output[1:2]] if node.op_type == "GRU" else []
    return [name for name in first if name] if len(node.input) > H0 and node.input[H0] else []


quantizes(
    "RNN",
    "GRU",
    "LSTM",
    matrices=(1, 2),
    places=(X, H0, C0),
    tied=_tied,
    int16=_int16,
    too_large=_too_large,
    unusual_bits=_unusual_bits,
)


@onnx_op("RNN", "GRU", "LSTM")
def read_onnx(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    x = node.input(0)
    batch_first = bool(node.attr("layout", 0))
    if batch_first:
        x = build.add1(Transpose((1, 0, 2)), [x])
    direction = str(node.attr("direction", "forward"))
    directions = 2 if direction == "bidirectional" else 1
    lengths = node.optional(4)
    if lengths is not None and lengths.is_constant and bool(np.all(lengths.value >= x.shape[0])):
        lengths = None
    state_axis = 1 if batch_first else 0
    results: list[list[Tensor]] = []
    for number, activations in enumerate(_activations(node, directions)):
        op = Recurrent(
            node.op_type.lower(),
            activations,
            direction == "reverse" or number == 1,
            node.wants(0),
            float(node.attr("clip", 0.0)),
            bool(node.attr("linear_before_reset", 0)),
            bool(node.attr("input_forget", 0)),
            int(node.attr(CELL_BITS, USUAL_CELL_BITS)),
        )
        operands = [
            x,
            *(_direction(build, node.optional(i), number) for i in (1, 2, 3)),
            lengths,
            *(_direction(build, node.optional(i), number, state_axis) for i in (5, 6)),
            _direction(build, node.optional(7), number),
        ]
        while operands and operands[-1] is None:
            operands.pop()
        results.append(list(build.add(op, operands)))
    return _outputs(node, build, results, batch_first)


def _outputs(
    node: OnnxNode, build: Builder, results: Sequence[Sequence[Tensor]], batch_first: bool
) -> list[Tensor]:
    """Y (steps, directions, batches, hidden) and the last states (directions, batches, hidden)."""
    found: list[Tensor] = []
    for position in range(len(results[0])):
        parts = [direction[position] for direction in results]
        if node.wants(0) and position == 0:
            steps, batches, hidden = parts[0].shape
            wide = [build.add1(Reshape((steps, 1, batches, hidden)), [p]) for p in parts]
            y = concat(build, wide, 1)
            found.append(build.add1(Transpose((2, 0, 1, 3)), [y]) if batch_first else y)
        else:
            batches, hidden = parts[0].shape
            wide = [build.add1(Reshape((1, batches, hidden)), [p]) for p in parts]
            y = concat(build, wide, 0)
            found.append(build.add1(Transpose((1, 0, 2)), [y]) if batch_first else y)
    return found if node.wants(0) else [found[0], *found]  # Y itself is not used: any tensor will do


@onnx_writer(Recurrent)
def write_onnx(op: Recurrent, layer: Layer, x: list[str], y: str, out: OnnxWriter) -> None:
    """One direction, with the functions that ONNX takes by default."""
    unusual = op.clip > 0 or op.input_forget or len(x) > PEEPHOLES
    if unusual or tuple(function.name for function in op.activations) != FUNCTIONS[op.cell]:
        raise UnsupportedError(
            f"functions, limits or peepholes of {op.cell.upper()} {layer.name!r} cannot be written as ONNX",
            "convert the model to ONNX from its source",
        )
    first = out.integers((0,), "directions")
    operands = [
        out.node("Unsqueeze", [name, first]) if name and i not in (X, LENGTHS) else name
        for i, name in enumerate(x)
    ]
    words = ["steps", "last", "cell"][: 3 if op.cell == "lstm" else 2]
    outer = [out.fresh(f"{out.scope}/{word}") for word in words]
    attributes: dict[str, object] = {"hidden_size": layer.input(1).shape[0] // GATES[op.cell]}
    attributes["direction"] = "reverse" if op.reverse else "forward"
    if op.cell == "gru":
        attributes["linear_before_reset"] = int(op.linear_before_reset)
    out.node_of(op.cell.upper(), operands, outer if op.sequence else ["", *outer[1:]], **attributes)
    inner = [tensor.name for tensor in layer.outputs]
    for source, result, axis in zip(
        outer if op.sequence else outer[1:], inner, [1, 0, 0] if op.sequence else [0, 0], strict=False
    ):
        out.node("Squeeze", [source, out.integers((axis,), "direction")], result)
