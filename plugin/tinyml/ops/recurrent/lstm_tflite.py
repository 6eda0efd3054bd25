# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""UNIDIRECTIONAL_SEQUENCE_LSTM of TFLite: reads its 24 operands and finds the form that fits."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tinyml.base.errors import UnsupportedError
from tinyml.ir import DType, Tensor
from tinyml.ops.framework.reading import Builder, TfliteNode, tflite_op
from tinyml.ops.recurrent.lstm_float import LstmFloat
from tinyml.ops.recurrent.lstm_int8 import CELL_BITS, LstmInt8
from tinyml.ops.shared.quant import is_quantized
from tinyml.ops.shared.real import real_weights

# positions of the operands, as the schema has them
INPUT, WEIGHTS, RECURRENT, PEEPHOLE, BIAS = 0, 1, 5, 9, 12
PROJECTION, PROJECTION_BIAS, STATE, CELL, NORM = 16, 17, 18, 19, 20


@tflite_op("UNIDIRECTIONAL_SEQUENCE_LSTM")
def read_tflite(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    from tflite import ActivationFunctionType

    if node.activation != ActivationFunctionType.TANH:
        raise UnsupportedError(f"{node.op_type} operator {node.name!r}: its activation is not tanh")
    _refuse(node, range(NORM, NORM + 4), "layer normalisation")
    x = node.input(INPUT)
    if is_quantized(x, DType.INT8) and is_quantized(node.input(CELL), DType.INT16):
        return [_integer(node, build)]
    if x.dtype is DType.FLOAT32:
        return [_real(node, build)]
    raise UnsupportedError(
        f"{node.op_type} operator {node.name!r} on {x.dtype.value}",
        "float32, or int8 with int16 cells, is supported",
    )


def _refuse(node: TfliteNode, operands: Sequence[int], what: str) -> None:
    if any(node.optional(i) is not None for i in operands):
        raise UnsupportedError(f"{node.op_type} operator {node.name!r}: {what} is not supported")


SMALL_CELLS = "convert again with a representative dataset of real inputs, or without quantising activations"
LARGE_CELLS = "convert again without quantising activations"


def _integer(node: TfliteNode, build: Builder) -> Tensor:
    _refuse(node, range(PEEPHOLE, PEEPHOLE + 3), "a peephole in int8")
    _refuse(node, (PROJECTION, PROJECTION_BIAS), "a projection in int8")
    if node.optional(WEIGHTS) is None:
        raise UnsupportedError(
            f"{node.op_type} operator {node.name!r}: coupled gates are not supported in int8"
        )
    state, cell = node.input(STATE), node.input(CELL)
    assert cell.quant is not None
    bits = math.log2(cell.quant.scale)
    if not bits.is_integer():
        raise UnsupportedError(f"{node.op_type} operator {node.name!r}: the cell scale is not a power of two")
    if not CELL_BITS[0] <= bits <= CELL_BITS[1]:
        limit, (least, most) = cell.dtype.limits[1] * cell.quant.scale, CELL_BITS
        raise UnsupportedError(
            f"{node.op_type} operator {node.name!r}: the cells have the scale 2^{bits:.0f} "
            f"(up to {limit:.3g}); LiteRT and this compiler have functions for 2^{least} to 2^{most}",
            SMALL_CELLS if bits < CELL_BITS[0] else LARGE_CELLS,
        )
    for index in (*range(WEIGHTS, WEIGHTS + 4), *range(RECURRENT, RECURRENT + 4), *range(BIAS, BIAS + 4)):
        node.const(index)
    op = LstmInt8(node.options.CellClip(), node.options.TimeMajor())
    operands = [
        node.input(INPUT),
        *(node.input(WEIGHTS + i) for i in range(4)),
        *(node.input(RECURRENT + i) for i in range(4)),
        *(node.input(BIAS + i) for i in range(4)),
        state,
        cell,
    ]
    y, last_state, last_cell = build.add(op, operands)
    build.update(state, last_state)
    build.update(cell, last_cell)
    return y


def _real(node: TfliteNode, build: Builder) -> Tensor:
    """Float, or float with quantised weights, which are dequantised."""
    x, state, cell, options = node.input(INPUT), node.input(STATE), node.input(CELL), node.options
    operands: list[Tensor | None] = [x]
    for index in range(WEIGHTS, STATE):
        tensor = node.optional(index)
        if tensor is not None:
            node.const(index)
            tensor = real_weights(build, x, tensor)
        operands.append(tensor)
    op = LstmFloat(options.CellClip(), options.ProjClip(), options.TimeMajor())
    y, last_state, last_cell = build.add(op, [*operands, state, cell])
    build.update(state, last_state)
    build.update(cell, last_cell)
    return y
