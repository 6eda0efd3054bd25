# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A decoder of one layer as TFLite's converters write it: keys and values in variables, a row for each run.

Inputs are the vector of a token and its position. DYNAMIC_UPDATE_SLICE writes the rows; a mask made from the
position hides those after it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tests.support.tflite_writer import Call, Part, Value, write
from tinyml.ir import Array


@dataclass(frozen=True)
class Shape:
    """What a decoder looks like."""

    heads: int
    size: int  # elements of a head
    longest: int
    heads_first: bool  # caches are (1, heads, longest, size), otherwise (1, longest, heads, size)
    mask: str  # of MASKS: how later rows are hidden
    written: str = "position"  # or ``counted``: the model counts its runs in a variable

    @property
    def width(self) -> int:
        return self.heads * self.size

    @property
    def cache(self) -> tuple[int, ...]:
        rows = (self.heads, self.longest) if self.heads_first else (self.longest, self.heads)
        return (1, *rows, self.size)

    @property
    def row(self) -> tuple[int, ...]:
        return (1, self.heads, 1, self.size) if self.heads_first else (1, 1, self.heads, self.size)


MASKS = ("select", "add")


class _Writer:
    def __init__(self, seed: int) -> None:
        self.values: list[Value] = []
        self.calls: list[Call] = []
        self.random = np.random.default_rng(seed)

    def constant(self, array: Array) -> str:
        name = f"c{len(self.values)}"
        self.values.append(Value.constant(name, array))
        return name

    def ints(self, *numbers: int) -> str:
        return self.constant(np.array(numbers, np.int32))

    def real(self, number: float) -> str:
        return self.constant(np.array(number, np.float32))

    def weights(self, rows: int, columns: int) -> str:
        return self.constant((self.random.normal(size=(rows, columns)) / columns**0.5).astype(np.float32))

    def value(self, name: str, shape: tuple[int, ...], dtype: str = "float32") -> str:
        self.values.append(Value(name, shape, dtype))
        return name

    def __call__(
        self,
        op: str,
        inputs: list[str],
        shape: tuple[int, ...],
        options: str = "",
        dtype: str = "float32",
        **fields: object,
    ) -> str:
        name = self.value(f"t{len(self.values)}", shape, dtype)
        self.calls.append(Call(op, inputs, [name], options, fields))
        return name

    def variable(self, name: str, shape: tuple[int, ...], dtype: str = "float32") -> tuple[str, str]:
        """Its handle, and its value."""
        handle = self.value(f"{name}_handle", (), "resource")
        shared = {"SharedName": name}
        self.calls.append(Call("VAR_HANDLE", [], [handle], "VarHandleOptions", shared))
        return handle, self("READ_VARIABLE", [handle], shape, "ReadVariableOptions", dtype)

    def assign(self, handle: str, value: str) -> None:
        self.calls.append(Call("ASSIGN_VARIABLE", [handle, value], [], "AssignVariableOptions"))


def model(shape: Shape, seed: int) -> bytes:
    """Inputs: x, (1, width), and position, (1,), unless it is counted; output: y, (1, width)."""
    of = _Writer(seed)
    of.calls.append(Call("CALL_ONCE", [], [], "CallOnceOptions", {"InitSubgraphIndex": 1}))
    of.value("x", (1, shape.width))
    counter = ""
    if shape.written == "counted":
        counter, position = of.variable("count", (1,), "int32")
    else:
        position = of.value("position", (1,), "int32")
    axis, zero = (2 if shape.heads_first else 1), of.ints(0)
    parts = [zero, zero, zero, zero]
    parts[axis] = position
    start = of("CONCATENATION", parts, (4,), "ConcatenationOptions", "int32", Axis=0)
    wide = (1, shape.heads, shape.longest, shape.size)
    q, k, v = (_projected(of, shape) for _ in range(3))
    q = _moved(of, q, shape.row, (1, shape.heads, 1, shape.size), shape)
    caches = []
    for name, new in (("keys", k), ("values", v)):
        handle, past = of.variable(name, shape.cache)
        present = of("DYNAMIC_UPDATE_SLICE", [past, new, start], shape.cache, "DynamicUpdateSliceOptions")
        of.assign(handle, present)
        caches.append(_moved(of, present, shape.cache, wide, shape))
    scores = (1, shape.heads, 1, shape.longest)
    found = of("BATCH_MATMUL", [q, caches[0]], scores, "BatchMatMulOptions", AdjY=True)
    found = of("MUL", [found, of.real(shape.size**-0.5)], scores, "MulOptions")
    places = of.constant(np.arange(shape.longest, dtype=np.int32).reshape(1, 1, 1, -1))
    row = (1, 1, 1, shape.longest)
    seen = of("LESS_EQUAL", [places, position], row, "LessEqualOptions", "bool")
    if shape.mask == "select":
        low = of.real(float(np.finfo(np.float32).min))
        found = of("SELECT_V2", [seen, found, low], scores, "SelectV2Options")
    else:
        mask = of("SELECT_V2", [seen, of.real(0), of.real(-1e9)], row, "SelectV2Options")
        found = of("ADD", [found, mask], scores, "AddOptions")
    weights = of("SOFTMAX", [found], scores, "SoftmaxOptions", Beta=1.0)
    mixed = of("BATCH_MATMUL", [weights, caches[1]], (1, shape.heads, 1, shape.size), "BatchMatMulOptions")
    flat = of("RESHAPE", [mixed, of.ints(1, shape.width)], (1, shape.width), "ReshapeOptions")
    of.value("y", (1, shape.width))
    weights = of.weights(shape.width, shape.width)
    bias = of.constant(np.zeros(shape.width, np.float32))
    of.calls.append(Call("FULLY_CONNECTED", [flat, weights, bias], ["y"], "FullyConnectedOptions"))
    inputs = ["x"]
    if counter:
        following = of("ADD", [position, of.ints(1)], (1,), "AddOptions", "int32")
        of.assign(counter, following)
    else:
        inputs.append("position")
    return write(Part(of.values, of.calls, inputs, ["y"]), _first(shape))


def _first(shape: Shape) -> Part:
    """What the variables are before the first run: zeros."""
    zeros: dict[str, Array] = {name: np.zeros(shape.cache, np.float32) for name in ("keys", "values")}
    if shape.written == "counted":
        zeros["count"] = np.zeros(1, np.int32)
    values, calls = [], []
    for name, array in zeros.items():
        values += [Value(f"{name}_handle", (), "resource"), Value.constant(f"{name}_zeros", array)]
        calls.append(Call("VAR_HANDLE", [], [f"{name}_handle"], "VarHandleOptions", {"SharedName": name}))
        calls.append(
            Call("ASSIGN_VARIABLE", [f"{name}_handle", f"{name}_zeros"], [], "AssignVariableOptions")
        )
    return Part(values, calls)


def _projected(of: _Writer, shape: Shape) -> str:
    bias = of.constant(of.random.normal(0, 0.1, shape.width).astype(np.float32))
    operands = ["x", of.weights(shape.width, shape.width), bias]
    flat = of("FULLY_CONNECTED", operands, (1, shape.width), "FullyConnectedOptions")
    return of("RESHAPE", [flat, of.ints(*shape.row)], shape.row, "ReshapeOptions")


def _moved(of: _Writer, x: str, before: tuple[int, ...], after: tuple[int, ...], shape: Shape) -> str:
    """Heads before rows."""
    if shape.heads_first or before == after:
        return x
    return of("TRANSPOSE", [x, of.ints(0, 2, 1, 3)], after, "TransposeOptions")
