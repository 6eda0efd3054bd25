# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Random Loops and Scans in ONNX: any number of states, sequences, rows and captured values, on any axis."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from tests.support.loop_models import BOOL, INT64, node, value, whole
from tinyml.ir import Array

WIDTH = 3
PLAIN = ("Abs", "Neg", "Softsign", "Sigmoid", "Relu", "Identity")
PAIRS = ("Add", "Sub", "Mul", "Max")
OTHERS = ("MatMul", "Softmax", "Mean", "Split", "Where", "Reshape", "Transpose")


class RandomLoop:
    """One model; the body is a chain of random operators that read any value that there is."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.steps = self._up_to(7) + 2
        self.shape = [[WIDTH], [1, WIDTH], [2, 1, WIDTH]][self._up_to(2)]
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, Array] = {
            "w": self._normal(WIDTH, WIDTH),
            "k": self._normal(*self.shape),
            "low": np.asarray(-2, np.float32),
            "high": np.asarray(2, np.float32),
        }
        is_scan = self.random.random() < 0.6
        self.sequences = self._up_to(2) + 1 if is_scan else 0
        self.states, self.rows = self._up_to(3), self._up_to(2)
        if not self.states + self.rows:
            self.states = 1
        self.captured = [f"c{i}" for i in range(self._up_to(2))]
        self.names = ["k", *self.captured, *(f"s{i}" for i in range(self.states))]
        self.names += [f"q{i}" for i in range(self.sequences)]
        self.model = self._scan() if is_scan else self._loop()

    def _up_to(self, most: int) -> int:
        return int(self.random.integers(most + 1))

    def _normal(self, *shape: int) -> Array:
        return self.random.normal(0, 0.5, shape).astype(np.float32)

    def _pick(self) -> str:
        return str(self.random.choice(self.names))

    def _operator(self, output: str) -> None:
        """One operator, or a few that keep the shape together."""
        kind = str(self.random.choice([*PLAIN, *PAIRS, *OTHERS]))
        x, y = self._pick(), self._pick()
        if kind in PLAIN:
            self.nodes.append(node(kind, x, output))
        elif kind in PAIRS:
            self.nodes.append(node(kind, f"{x} {y}", output))
        elif kind == "MatMul":
            self.nodes.append(node(kind, f"{x} w", output))
        elif kind == "Softmax":
            self.nodes.append(node(kind, x, output, axis=-1))
        elif kind == "Mean":
            self.nodes.append(node("ReduceMean", x, f"{output}m", axes=[-1], keepdims=1))
            self.nodes.append(node("Add", f"{output}m {y}", output))
        elif kind == "Split":
            self.constants["sizes"] = np.asarray([1, WIDTH - 1])
            self.nodes.append(node(kind, f"{x} sizes", f"{output}a {output}b", axis=-1))
            self.nodes.append(node("Concat", f"{output}b {output}a", output, axis=-1))
        elif kind == "Where":
            self.nodes.append(node("Greater", f"{x} {y}", f"{output}g"))
            self.nodes.append(node(kind, f"{output}g {self._pick()} {x}", output))
        elif kind == "Reshape":
            self.constants |= {"flat": np.asarray([-1]), "shape": np.asarray(self.shape)}
            self.nodes.append(node(kind, f"{x} flat", f"{output}f"))
            self.nodes.append(node(kind, f"{output}f shape", output))
        else:
            perm = list(range(len(self.shape)))[::-1]
            self.nodes.append(node(kind, x, f"{output}t", perm=perm))
            self.nodes.append(node(kind, f"{output}t", output, perm=perm))
        self.names.append(output)

    def _ends(self) -> list[onnx.ValueInfoProto]:
        """States stay between -2 and 2, and may change places; a row may be any value."""
        for number in range(self._up_to(6) + 1):
            self._operator(f"t{number}")
        for i in range(self.states):
            swaps = self.random.random() < 0.2
            x = f"s{self._up_to(self.states - 1)}" if swaps else self._pick()
            last = node("Identity", x, f"e{i}") if swaps else node("Clip", f"{x} low high", f"e{i}")
            self.nodes.append(last)
        for i in range(self.rows):
            self.nodes.append(
                node("Identity" if self.random.random() < 0.4 else "Neg", self._pick(), f"r{i}")
            )
        ends = [*(f"e{i}" for i in range(self.states)), *(f"r{i}" for i in range(self.rows))]
        return [value(name, *self.shape) for name in ends]

    def _starts(self, prefix: str, count: int) -> list[onnx.ValueInfoProto]:
        return [value(f"{prefix}{i}", *self.shape) for i in range(count)]

    def _along(self, axis: int) -> list[int]:
        return [*self.shape[:axis], self.steps, *self.shape[axis:]]

    def _scan(self) -> onnx.ModelProto:
        axes = [self._up_to(len(self.shape)) for _ in range(self.sequences)]
        row_axes = [self._up_to(len(self.shape)) for _ in range(self.rows)]
        attributes: dict[str, Any] = {
            "scan_input_axes": axes,
            "scan_input_directions": [self._up_to(1) for _ in axes],
        }
        if row_axes:
            attributes["scan_output_axes"] = row_axes
            attributes["scan_output_directions"] = [self._up_to(1) for _ in row_axes]
        starts = [*self._starts("s", self.states), *self._starts("q", self.sequences)]
        ends = self._ends()
        body = helper.make_graph(self.nodes, "body", starts, ends)
        inputs = [f"i{i}" for i in range(self.states)] + [f"x{i}" for i in range(self.sequences)]
        attributes |= {"body": body, "num_scan_inputs": self.sequences}
        sequences = [value(f"x{i}", *self._along(axis)) for i, axis in enumerate(axes)]
        return self._whole("Scan", inputs, sequences, [self._along(axis) for axis in row_axes], attributes)

    def _loop(self) -> onnx.ModelProto:
        """It computes with the number of the step, and takes that row of a table."""
        self.constants |= {"most": np.asarray(self.steps), "table": self._normal(*self._along(0))}
        self.nodes.append(node("Cast", "n", "real", to=TensorProto.FLOAT))
        self.nodes.append(node("Add", "real k", "counted"))
        self.nodes.append(node("Gather", "table n", "row", axis=0))
        self.names += ["counted", "row"]
        ends = self._ends()
        self.nodes.append(node("Identity", "go", "on"))
        starts = [value("n", kind=INT64), value("go", kind=BOOL), *self._starts("s", self.states)]
        body = helper.make_graph(self.nodes, "body", starts, [value("on", kind=BOOL), *ends])
        inputs = ["most", "", *(f"i{i}" for i in range(self.states))]
        return self._whole("Loop", inputs, [], [self._along(0)] * self.rows, {"body": body})

    def _whole(
        self,
        op_type: str,
        operands: list[str],
        sequences: list[onnx.ValueInfoProto],
        rows: list[list[int]],
        attributes: dict[str, Any],
    ) -> onnx.ModelProto:
        results = [value(f"y{i}", *self.shape) for i in range(self.states)]
        results += [value(f"z{i}", *shape) for i, shape in enumerate(rows)]
        loop = helper.make_node(op_type, operands, [one.name for one in results], "loop", **attributes)
        given = [*self._starts("i", self.states), *sequences, *self._starts("c", len(self.captured))]
        if self.states and self.random.random() < 0.3:  # zeros that the compiler knows
            given = given[1:]
            self.constants["i0"] = np.zeros(self.shape, np.float32)
        used = {name for one in (*self.nodes, loop) for name in one.input}
        constants = {name: array for name, array in self.constants.items() if name in used}
        model = whole(loop, [one for one in given if one.name in used], results, constants)
        model.opset_import[0].version = 13
        return model
