# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Random TFLite operators with states, which go on from sample to sample: LSTM and SVDF."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.random_graphs.tflite_draw import Draw
from tests.support.tflite_writer import Value
from tinyml.ir import Quant, Shape

GATES = range(4)
TANH = 4


def f32(value: float) -> float:
    return float(np.float32(value))


def state(draw: Draw, shape: Shape, dtype: str = "float32", quant: Quant | None = None) -> Value:
    value = Value(f"s{len(draw.values)}", shape, dtype, quant, variable=True)
    draw.values.append(value)
    return value


def lstm(draw: Draw, integers: bool) -> None:
    """Shapes around the sizes that kernels treat differently; scales of many magnitudes in integers."""
    rng = draw.rng
    batch, steps = int(draw.pick(1, 1, 1, 2, 3)), int(draw.pick(1, 1, 2, 3, 7))
    inputs, cells = int(rng.integers(1, 20)), int(draw.pick(1, 2, 3, 4, 5, 7, 8, 16, 17))
    time_major = draw.chance(0.5)
    order = (steps, batch) if time_major else (batch, steps)
    fields: dict[str, Any] = {"FusedActivationFunction": TANH, "TimeMajor": time_major}
    fields["CellClip"] = draw.pick(0.0, 0.0, 10.0, 1.0, 0.1, 0.01, 100.0)
    make = _integers if integers else _reals
    x, parts, states, y, inner = make(draw, order, batch, inputs, cells)
    operands = [x, *parts[:8], None, None, None, *parts[8:], None, None, *states, None, None, None, None]
    draw.call("UNIDIRECTIONAL_SEQUENCE_LSTM", operands, [y], "UnidirectionalSequenceLSTMOptions", **fields)
    draw.intermediates(inner)


Parts = tuple[Value, list[Value], list[Value], Value, list[Value]]


def _reals(draw: Draw, order: Shape, batch: int, inputs: int, cells: int) -> Parts:
    def table(*shape: int) -> Value:
        return draw.constant(draw.rng.normal(0, draw.pick(0.1, 0.4, 2.0), shape).astype(np.float32))

    parts = [table(cells, inputs) for _ in GATES] + [table(cells, cells) for _ in GATES]
    parts += [table(cells) for _ in GATES]
    states = [state(draw, (batch, cells)), state(draw, (batch, cells))]
    return draw.tensor((*order, inputs), "float32"), parts, states, draw.output("float32"), []


def _integers(draw: Draw, order: Shape, batch: int, inputs: int, cells: int) -> Parts:
    rng = draw.rng
    size = draw.pick(0.001, 0.01, 0.1, 1.0, 10.0)
    of_x = Quant.per_tensor(f32(draw.pick(1e-4, 0.003, 0.02, 0.5, 4)), int(rng.integers(-128, 128)))
    of_h = Quant.per_tensor(f32(draw.pick(1e-4, 1 / 256, 1 / 128, 0.02, 0.3)), int(rng.integers(-128, 128)))
    of_c = Quant.per_tensor(2.0 ** int(draw.pick(*range(-15, -8), *range(-15, -8), -16, -8)), 0)
    x = draw.tensor((*order, inputs), "int8", of_x)
    tables: dict[str, list[Value]] = {"w": [], "r": [], "b": []}
    for _ in GATES:
        scale = f32(size * rng.uniform(0.2, 2) / 127)
        back = f32(size * draw.pick(0.1, 1, 3) / 127)
        most = int(draw.pick(0, 1000, 100_000, 1 << 24, 1 << 29))
        sums = Quant.per_tensor(f32(np.float32(scale) * np.float32(of_x.scale)), 0)
        for key, shape, quant in (("w", inputs, scale), ("r", cells, back)):
            values = rng.integers(-127, 128, (cells, shape)).astype(np.int8)
            tables[key].append(draw.constant(values, Quant.per_tensor(quant, 0)))
        tables["b"].append(draw.constant(rng.integers(-most, most + 1, cells).astype(np.int32), sums))
    states = [state(draw, (batch, cells), "int8", of_h), state(draw, (batch, cells), "int16", of_c)]
    y = draw.output("int8", of_h)
    gates = [Value(f"i{g}", (), "int16", Quant.per_tensor(2.0**-12, 0)) for g in GATES]
    inner = [*gates, Value("i4", (), "int8", of_h)]
    draw.values += inner
    return x, tables["w"] + tables["r"] + tables["b"], states, y, inner


def int8_lstm(draw: Draw) -> None:
    lstm(draw, integers=True)


def float_lstm(draw: Draw) -> None:
    lstm(draw, integers=False)


def svdf(draw: Draw) -> None:
    """Float, and int8 with the state in int16."""
    rng = draw.rng
    batch, inputs, memory = int(draw.pick(1, 1, 2, 3)), int(rng.integers(1, 20)), int(rng.integers(1, 12))
    rank, units = int(draw.pick(1, 2, 3)), int(draw.pick(1, 2, 4, 5, 8))
    filters = rank * units
    fields = {"Rank": rank, "FusedActivationFunction": int(draw.pick(0, 1))}
    if draw.chance(0.4):
        operands = [draw.tensor((batch, inputs), "float32")]
        operands += [
            draw.constant(rng.normal(0, 0.4, shape).astype(np.float32))
            for shape in ((filters, inputs), (filters, memory), (units,))
        ]
        operands.append(state(draw, (batch, memory * filters)))
        draw.call("SVDF", operands, [draw.output("float32")], "SVDFOptions", **fields)
        return
    fields["FusedActivationFunction"] = 1
    of_x = draw.quant("int8")
    assert of_x is not None
    features = Quant.per_tensor(f32(draw.pick(0.0005, 0.01, 0.3)), 0)
    of_state = Quant.per_tensor(f32(draw.pick(1e-4, 0.001, 0.02)), 0)
    time = Quant.per_tensor(f32(draw.pick(1e-5, 0.0003, 0.01)), 0)
    most = int(draw.pick(10, 1000, 1 << 20, 1 << 29))
    sums = Quant.per_tensor(f32(np.float32(of_state.scale) * np.float32(time.scale)), 0)
    largest = min(32767, ((1 << 31) - 1 - most) // (32768 * rank * memory))  # LiteRT adds up in 32 bits
    operands = [
        draw.tensor((batch, inputs), "int8", of_x),
        draw.constant(rng.integers(-127, 128, (filters, inputs)).astype(np.int8), features),
        draw.constant(rng.integers(-largest, largest + 1, (filters, memory)).astype(np.int16), time),
        draw.constant(rng.integers(-most, most + 1, units).astype(np.int32), sums),
        state(draw, (batch, memory * filters), "int16", of_state),
    ]
    out = Quant.per_tensor(f32(draw.pick(0.01, 0.1, 1.0)), int(draw.pick(-128, -128, -128, 5)))
    draw.call("SVDF", operands, [draw.output("int8", out)], "SVDFOptions", **fields)


RECURRENT = (int8_lstm, int8_lstm, float_lstm, svdf)
