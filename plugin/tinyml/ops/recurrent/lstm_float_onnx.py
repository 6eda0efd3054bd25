# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""TFLite's float LSTM as ONNX: different order of gates, time first, states as operands.

TFLite clips cells after every step (to 10 in models from Keras); ONNX has no such limit. Here cells are
clipped between runs. The result is the same unless a cell exceeds the limit in the middle of a run.
"""

from __future__ import annotations

import numpy as np

from tinyml.base.errors import UnsupportedError
from tinyml.ir import Array, Layer
from tinyml.ops.framework.writing import OnnxWriter, onnx_writer
from tinyml.ops.recurrent.lstm_float import (
    BIAS,
    CELL,
    PEEPHOLE,
    PROJECTION,
    PROJECTION_BIAS,
    RECURRENT,
    STATE,
    WEIGHTS,
    LstmFloat,
)

ORDER = (0, 3, 1, 2)
"""input, output, forget, cell: the gates as ONNX has them, by their numbers in TFLite."""


def clipped_cells(layer: Layer[LstmFloat]) -> str | None:
    """Cells that may be clipped in the middle of a run."""
    steps = layer.input(0).shape[0 if layer.op.time_major else 1]
    if layer.op.cell_clip <= 0 or steps == 1:
        return None
    return "the cells of an LSTM exceed their limit during a run, which ONNX cannot express"


@onnx_writer(LstmFloat, doubt=clipped_cells)
def write_onnx(op: LstmFloat, layer: Layer, x: list[str], y: str, out: OnnxWriter) -> None:
    absent = (*range(PEEPHOLE, BIAS), PROJECTION, PROJECTION_BIAS)
    if any(x[i] for i in absent) or not x[WEIGHTS]:
        raise UnsupportedError(
            "an LSTM with peepholes, coupled gates or a projection cannot be quantised",
            "quantise it when it is converted to TFLite",
        )
    hidden = layer.input(CELL).shape[1]

    def gates(first: int) -> Array:
        return np.concatenate([layer.input(first + number).value for number in ORDER])[np.newaxis]

    bias = np.concatenate([gates(BIAS), np.zeros((1, 4 * hidden), np.float32)], axis=1)
    weights = [
        out.constant(values, word)
        for values, word in ((gates(WEIGHTS), "weights"), (gates(RECURRENT), "recurrent"), (bias, "bias"))
    ]
    first = out.integers((0,), "directions")
    sequence = x[0] if op.time_major else out.node("Transpose", [x[0]], perm=[1, 0, 2])
    before = [out.node("Unsqueeze", [x[i], first]) for i in (STATE, CELL)]
    steps, last, cell = (out.fresh(f"{out.scope}/{word}") for word in ("steps", "last", "cell"))
    out.node_of("LSTM", [sequence, *weights, "", *before], [steps, last, cell], hidden_size=hidden)
    squeezed = out.node("Squeeze", [steps, out.integers((1,), "direction")], y if op.time_major else "")
    if not op.time_major:
        out.node("Transpose", [squeezed], y, perm=[1, 0, 2])
    out.node("Squeeze", [last, first], layer.outputs[1].name)
    limit = op.cell_clip if op.cell_clip > 0 else np.inf
    out.clamped(out.node("Squeeze", [cell, first]), (-limit, limit), layer.outputs[2].name)
