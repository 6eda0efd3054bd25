# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Measures how the time to compile grows with the size of a model, and writes docs/COMPILE_TIME.md.

``python -m tools.growth [--write]``

Times differ from machine to machine, so nothing here is a test. The ratio between two sizes shows whether a
step of the compiler has become quadratic: ten times the nodes should take at most fifteen times as long.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tools.environment import ROOT

sys.path.insert(0, str(ROOT / "plugin"))  # the compiler of this tree, whatever is installed

from tinyml.emit.model import Provenance
from tinyml.importers import onnx_graph
from tinyml.pipeline import Options, compile_graph

PAGE = ROOT / "docs" / "COMPILE_TIME.md"
LIMIT = 15.0


@dataclass(frozen=True)
class Measurement:
    """One compilation, in a process of its own."""

    seconds: float  # of CPU time
    megabytes: int  # of memory at the peak
    layers: int


class Nodes:
    """Collects the nodes and constants of an ONNX graph."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.rng = np.random.default_rng(0)

    def add(self, op_type: str, inputs: list[str], outputs: int = 1, **attributes: Any) -> list[str]:
        names = [f"t{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op_type, inputs, names, **attributes))
        return names

    def weights(self, *shape: int) -> str:
        name = f"w{len(self.constants)}"
        values = (self.rng.normal(size=shape) * 0.1).astype(np.float32)
        self.constants.append(numpy_helper.from_array(values, name))
        return name

    def model(self, shape: tuple[int, ...], output: str) -> onnx.ModelProto:
        graph = helper.make_graph(
            self.nodes,
            "growth",
            [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info(output, onnx.TensorProto.FLOAT, None)],
            self.constants,
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def element_wise(count: int) -> onnx.ModelProto:
    made, x = Nodes(), "x"
    for i in range(count):
        op_type = ("Sin", "Add", "Exp", "Mul", "Tanh")[i % 5]
        operands = [x, made.weights(1, 64)] if op_type in ("Add", "Mul") else [x]
        (x,) = made.add(op_type, operands)
    return made.model((1, 64), x)


def convolutions(count: int) -> onnx.ModelProto:
    made, x = Nodes(), "x"
    for _ in range(count):
        (x,) = made.add("Conv", [x, made.weights(8, 8, 3, 3)], pads=[1, 1, 1, 1])
    return made.model((1, 8, 16, 16), x)


def unrolled_lstm(count: int) -> onnx.ModelProto:
    """Fifteen nodes a step, which is what exporters write where they cannot use the LSTM operator."""
    steps, units = max(count // 15, 1), 16
    made = Nodes()
    w, r, b = made.weights(8, 4 * units), made.weights(units, 4 * units), made.weights(4 * units)
    hidden, cell = made.weights(1, units), made.weights(1, units)
    made.constants.append(numpy_helper.from_array(np.array([1]), "axes"))
    rows = made.add("Split", ["x"], steps, axis=1, num_outputs=steps)
    for row in rows:
        (x,) = made.add("Squeeze", [row, "axes"])
        parts = [made.add("MatMul", [x, w])[0], made.add("MatMul", [hidden, r])[0]]
        (total,) = made.add("Add", [made.add("Add", parts)[0], b])
        i, f, c, o = made.add("Split", [total], 4, axis=1, num_outputs=4)
        (kept,) = made.add("Mul", [made.add("Sigmoid", [f])[0], cell])
        (new,) = made.add("Mul", [made.add("Sigmoid", [i])[0], made.add("Tanh", [c])[0]])
        (cell,) = made.add("Add", [kept, new])
        (hidden,) = made.add("Mul", [made.add("Sigmoid", [o])[0], made.add("Tanh", [cell])[0]])
    return made.model((1, steps, 8), hidden)


def branches(count: int) -> onnx.ModelProto:
    """Three layers in each of many branches of different sizes: hard to order and to place."""
    made, ends = Nodes(), []
    for i in range(count // 3):
        channels, kernel = 2 + i % 7, 1 + 2 * (i % 2)
        (wide,) = made.add("Conv", ["x", made.weights(channels, 8, 3, 3)], pads=[1, 1, 1, 1])
        weights = made.weights(4, channels, kernel, kernel)
        (narrow,) = made.add("Conv", [wide, weights], strides=[1 + i % 3] * 2)
        ends += made.add("GlobalAveragePool", [narrow])
    return made.model((1, 8, 16, 16), made.add("Concat", ends, axis=1)[0])


def densenet_121(size: int = 224) -> onnx.ModelProto:
    """Each layer of a block is joined to all before it: concatenations of concatenations."""
    made = Nodes()

    def convolved(x: str, inputs: int, outputs: int, kernel: int, stride: int = 1) -> str:
        weights = made.weights(outputs, inputs, kernel, kernel)
        return made.add("Conv", [x, weights], pads=[kernel // 2] * 4, strides=[stride] * 2)[0]

    def normalized(x: str, channels: int) -> str:
        scale, bias, mean = (made.weights(channels) for _ in range(3))
        variance = f"w{len(made.constants)}"
        made.constants.append(numpy_helper.from_array(np.ones(channels, np.float32), variance))
        return made.add("Relu", made.add("BatchNormalization", [x, scale, bias, mean, variance]))[0]

    def pooled(x: str, kind: str, kernel: int, pad: int = 0) -> str:
        return made.add(kind, [x], kernel_shape=[kernel] * 2, strides=[2, 2], pads=[pad] * 4)[0]

    x, channels = normalized(convolved("x", 3, 64, 7, 2), 64), 64
    x = pooled(x, "MaxPool", 3, 1)
    for block, layers in enumerate((6, 12, 24, 16)):
        if block:
            x = convolved(normalized(x, channels), channels, channels // 2, 1)
            x, channels = pooled(x, "AveragePool", 2), channels // 2
        for _ in range(layers):
            inner = convolved(normalized(x, channels), channels, 128, 1)
            inner = convolved(normalized(inner, 128), 128, 32, 3)
            x, channels = made.add("Concat", [x, inner], axis=1)[0], channels + 32
    (x,) = made.add("Flatten", made.add("GlobalAveragePool", [normalized(x, channels)]))
    (x,) = made.add("Gemm", [x, made.weights(channels, 1000)])
    return made.model((1, 3, size, size), x)


FAMILIES: dict[str, tuple[Callable[[int], onnx.ModelProto], int]] = {
    "element-wise operators in a row": (element_wise, 500),
    "convolutions in a row": (convolutions, 20),
    "an unrolled LSTM": (unrolled_lstm, 150),
    "branches of three layers": (branches, 18),
}
"""Each with the smaller of its two sizes, in nodes; the larger one is ten times that."""

NETWORKS: dict[str, Callable[[int], onnx.ModelProto]] = {"DenseNet-121": densenet_121}
"""Whole networks, by the side of their input."""
SIDES = (64, 224)


def measure(family: str, count: int) -> Measurement:
    """Compile a model of so many nodes, or a network of this side, in a process with memory of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_compile, (family, count))


def _compile(family: str, count: int) -> Measurement:
    model = FAMILIES[family][0](count) if family in FAMILIES else NETWORKS[family](count)
    start = time.process_time()
    graph = onnx_graph.read(model, "growth", {})
    compiled = compile_graph(graph, "growth", Provenance("growth.onnx", "00" * 32, ""), Options())
    seconds = time.process_time() - start
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return Measurement(seconds, kilobytes // 1024, len(compiled.selected))


def page() -> str:
    lines = [
        "# Time to compile",
        "",
        "<!-- Written by `python -m tools.growth --write`; do not edit. -->",
        "",
        "This page shows how the time to compile grows with a model. CPU seconds depend on the machine and",
        f"its load; the ratio hardly does. Ten times the nodes should take at most {LIMIT:g} times as long.",
        "",
        "| model | nodes | CPU seconds | memory | ten times the nodes | CPU seconds | memory | ratio |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for family, (_, count) in FAMILIES.items():
        small, large = measure(family, count), measure(family, 10 * count)
        lines.append(
            f"| {family} | {count} | {small.seconds:.1f} | {small.megabytes} MB | {10 * count} "
            f"| {large.seconds:.1f} | {large.megabytes} MB | {large.seconds / small.seconds:.1f} |"
        )
    lines += [
        "",
        "Whole networks with random weights in float32. Most of the time goes into the text of the weights:",
        "",
        "| network | input | nodes | weights | CPU seconds | memory |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for name, build in NETWORKS.items():
        for side in SIDES:
            model, taken = build(side), measure(name, side)
            weights = sum(math.prod(constant.dims) for constant in model.graph.initializer)
            lines.append(
                f"| {name} | {side}, {side}, 3 | {len(model.graph.node)} | {weights:,} "
                f"| {taken.seconds:.1f} | {taken.megabytes} MB |"
            )
    return "\n".join([*lines, ""])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--write", action="store_true", help="write docs/COMPILE_TIME.md")
    write = parser.parse_args().write
    text = page()
    print(text)
    if write:
        PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
