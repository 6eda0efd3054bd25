# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Random networks whose tensors are used again long after they were made: hard to place in an arena."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tinyml.ir import Shape

INPUT = (4, 8, 8)


class _Network:
    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng([seed, 77])
        self.shapes: dict[str, Shape] = {"x": INPUT}
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def add(self, op: str, inputs: list[str], shape: Shape, **attributes: Any) -> None:
        name = f"t{len(self.nodes) + 1}"
        self.nodes.append(helper.make_node(op, inputs, [name], **attributes))
        self.shapes[name] = shape

    def convolution(self, x: str, most: int, kernel: int, stride: int = 1) -> None:
        channels, rows, columns = self.shapes[x]
        out, border = int(self.rng.integers(1, most)), kernel // 2
        weights = self.rng.normal(0, 1, (out, channels, kernel, kernel)).astype(np.float32)
        self.constants.append(numpy_helper.from_array(weights, f"c{len(self.constants)}"))
        rows, columns = ((size + 2 * border - kernel) // stride + 1 for size in (rows, columns))
        inputs = [x, self.constants[-1].name]
        self.add("Conv", inputs, (out, rows, columns), strides=[stride] * 2, pads=[border] * 4)

    def other(self, x: str, same: int) -> str:
        """Another tensor, equal in the axes from number ``same`` on; x itself if there is none."""
        found = [n for n, shape in self.shapes.items() if shape[same:] == self.shapes[x][same:] and n != x]
        return found[int(self.rng.integers(len(found)))] if found else x

    def grow(self) -> None:
        names = list(self.shapes)
        x = names[int(self.rng.integers(max(0, len(names) - 5), len(names)))]
        channels, rows, columns = self.shapes[x]
        kind = self.rng.random()
        if kind < 0.35 and rows >= 3:
            self.convolution(x, 13, 3, int(self.rng.choice([1, 1, 2])))
        elif kind < 0.5:
            self.convolution(x, 17, 1)
        elif kind < 0.6:
            self.add("Relu", [x], self.shapes[x])
        elif kind < 0.75 and (y := self.other(x, 0)) != x:
            self.add("Add", [x, y], self.shapes[x])
        elif kind < 0.9 and (y := self.other(x, 1)) != x:
            self.add("Concat", [x, y], (channels + self.shapes[y][0], rows, columns), axis=1)
        elif rows % 2 == 0 and rows > 2:
            self.add("MaxPool", [x], (channels, rows // 2, columns // 2), kernel_shape=[2, 2], strides=[2, 2])


def network(seed: int, steps: int = 14) -> onnx.ModelProto:
    """A model of up to ``steps`` layers."""
    made = _Network(seed)
    made.convolution("x", 13, 3)
    for _ in range(steps):
        made.grow()
    read = {name for node in made.nodes for name in node.input}
    ends = [name for name in made.shapes if name not in read][-3:]
    ports = {name: [1, *made.shapes[name]] for name in ("x", *ends)}
    infos = {name: helper.make_tensor_value_info(name, TensorProto.FLOAT, s) for name, s in ports.items()}
    graph = helper.make_graph(made.nodes, "g", [infos["x"]], [infos[n] for n in ends], made.constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
