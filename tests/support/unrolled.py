# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Unrolled RNN, GRU and LSTM, written step by step as ONNX nodes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.support.interpret import interpret
from tinyml import importers
from tinyml.importers import ModelFile
from tinyml.ir import Graph
from tinyml.ir.verifier import verify
from tinyml.passes.merge_common import merge_common
from tinyml.passes.roll_recurrent import roll_recurrent

STEPS, INPUTS, HIDDEN = 5, 3, 4


class Writer:
    """Nodes of an ONNX model, one step after the other."""

    def __init__(
        self,
        seed: int = 1,
        inputs: int = INPUTS,
        steps: int = STEPS,
        batch: int = 1,
        by_sample: bool = False,
    ) -> None:
        """x has all samples of a step together, or ``by_sample`` all steps of a sample."""
        self.shapes = {"x": [steps, inputs], "h0": [batch, HIDDEN], "c0": [batch, HIDDEN]}
        if batch > 1:
            self.shapes["x"] = [batch, steps, inputs] if by_sample else [steps, batch, inputs]
        self.step_axis = int(by_sample)
        self.random = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def constant(self, name: str, value: Any) -> str:
        self.constants.append(numpy_helper.from_array(np.asarray(value, np.float32), name))
        return name

    def weights(self, name: str, *shape: int) -> str:
        return self.constant(name, self.random.normal(0, 0.5, shape))

    def numbers(self, *values: int) -> str:
        name = f"i{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(values, np.int64), name))
        return name

    def node(self, op_type: str, *inputs: str, **attributes: Any) -> str:
        output = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, inputs, [output], output, **attributes))
        return output

    def part(self, name: str, begin: int, end: int, axis: int = 1) -> str:
        return self.node("Slice", name, self.numbers(begin), self.numbers(end), self.numbers(axis))

    def inputs(self, order: Sequence[int]) -> list[str]:
        """The rows of x, or one for each sample."""
        if len(self.shapes["x"]) == 2:
            return [self.part("x", step, step + 1, 0) for step in order]
        axis = self.step_axis
        return [
            self.node("Squeeze", self.part("x", step, step + 1, axis), self.numbers(axis)) for step in order
        ]

    def file(self, *outputs: str) -> bytes:
        used = {name for node in self.nodes for name in node.input}
        inputs = [(name, shape) for name, shape in self.shapes.items() if name in used]
        graph = helper.make_graph(
            self.nodes,
            "unrolled",
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
            self.constants,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        return bytes(onnx.shape_inference.infer_shapes(model).SerializeToString())

    def graph(self, *outputs: str) -> Graph:
        return merge_common(importers.read(ModelFile(Path("unrolled.onnx"), self.file(*outputs))))


def lstm(w: Writer, x: str, h: str, c: str, joined: bool = False) -> tuple[str, str]:
    """Keras' order of gates; or TensorFlow 1's: one matrix for the input and the state together."""
    if joined:
        z = w.node("Gemm", w.node("Concat", x, h, axis=1), "wr", "b")
    else:
        z = w.node("Gemm", x, "w", "b")
        z = w.node("Add", z, w.node("MatMul", h, "r")) if h else z
    into, forget, fresh, out = (w.part(z, n * HIDDEN, (n + 1) * HIDDEN) for n in range(4))
    added = w.node("Mul", w.node("Sigmoid", into), w.node("Tanh", fresh))
    c = w.node("Add", w.node("Mul", w.node("Sigmoid", forget), c), added) if c else added
    return w.node("Mul", w.node("Sigmoid", out), w.node("Tanh", c)), c


def gates_at_once(w: Writer, x: str, h: str, c: str) -> tuple[str, str]:
    """One sigmoid for three gates, whose results are split."""
    z = w.node("Add", w.node("Gemm", x, "w", "b"), w.node("MatMul", h, "r"))
    gates, fresh = w.node("Sigmoid", w.part(z, 0, 3 * HIDDEN)), w.part(z, 3 * HIDDEN, 4 * HIDDEN)
    into, forget, out = (w.part(gates, n * HIDDEN, (n + 1) * HIDDEN) for n in range(3))
    c = w.node("Add", w.node("Mul", c, forget), w.node("Mul", w.node("Tanh", fresh), into))
    return w.node("Mul", w.node("Tanh", c), out), c


def gru(w: Writer, x: str, h: str, before: bool = False, extra: str = "", carry: bool = True) -> str:
    own = w.node("Gemm", x, "w", "b")
    own = w.node("Add", own, extra) if extra else own
    state = w.node("Gemm", h, "r", "b2") if not before else w.node("MatMul", h, "r")
    z, r = (
        w.node("Sigmoid", w.node("Add", w.part(own, n * HIDDEN, end), w.part(state, n * HIDDEN, end)))
        for n, end in ((0, HIDDEN), (1, 2 * HIDDEN))
    )
    fresh = w.part(own, 2 * HIDDEN, 3 * HIDDEN)
    if before:
        state = w.node("MatMul", w.node("Mul", r, h), "rh")
    else:
        state = w.node("Mul", r, w.part(state, 2 * HIDDEN, 3 * HIDDEN))
    fresh = w.node("Tanh", w.node("Add", fresh, state))
    new = w.node("Mul", w.node("Sub", "one", z), fresh)
    return w.node("Add", w.node("Mul", z, h), new) if carry else new


def gru_cell(w: Writer, x: str, h: str) -> str:
    """PyTorch's; without ``h`` its first step, in which exporters have multiplied the state of zeros."""
    own = w.node("Gemm", x, "w", "b")
    state = w.node("Gemm", h, "r", "b2") if h else w.node("Reshape", "b2", w.numbers(1, 3 * HIDDEN))
    (own_r, own_z, own_n), (r, z, n) = (
        [w.part(whole, i * HIDDEN, (i + 1) * HIDDEN) for i in range(3)] for whole in (own, state)
    )
    r, z = (w.node("Sigmoid", w.node("Add", *pair)) for pair in ((r, own_r), (z, own_z)))
    fresh = w.node("Tanh", w.node("Add", own_n, w.node("Mul", n, r)))
    return w.node("Add", w.node("Mul", w.node("Sub", h or "zeros", fresh), z), fresh)


def gru_replacing(w: Writer, x: str, h: str, difference: bool = False) -> str:
    """As Cho et al. write it: the update gate replaces the state; one matrix for the input and the state."""
    both = w.node("Concat", x, h, axis=1)
    z, r = (w.node("Sigmoid", w.node("Gemm", both, f"wr_{gate}", "b_g")) for gate in "zr")
    fresh = w.node("Tanh", w.node("Gemm", w.node("Concat", x, w.node("Mul", r, h), axis=1), "wr_n", "b_g"))
    if difference:
        return w.node("Add", h, w.node("Mul", z, w.node("Sub", fresh, h)))
    return w.node("Add", w.node("Mul", w.node("Sub", "one", z), h), w.node("Mul", z, fresh))


def rnn(w: Writer, x: str, h: str, suffix: str = "") -> str:
    own, state = w.node("Gemm", x, f"w{suffix}", f"b{suffix}"), w.node("MatMul", h, f"r{suffix}")
    return w.node("Tanh", w.node("Add", own, state))


def constants(w: Writer, gates: int, suffix: str = "", inputs: int = INPUTS) -> None:
    w.weights(f"w{suffix}", inputs, gates * HIDDEN)
    w.weights(f"r{suffix}", HIDDEN, gates * HIDDEN)
    w.weights(f"b{suffix}", gates * HIDDEN)


def rolled(graph: Graph, layers: int = 1) -> Graph:
    """The graph after the pass, which computes the same; -1 for any number of layers."""
    found = roll_recurrent(graph)
    verify(found, "roll_recurrent")
    assert layers in (-1, kinds(found).count("Recurrent"))
    random = np.random.default_rng(2)
    inputs = {
        name: random.normal(0, 1, graph.tensors[name].shape).astype(np.float32) for name in graph.inputs
    }
    ours, theirs = interpret(found, inputs), interpret(graph, inputs)
    for name in graph.outputs:
        np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-5, atol=1e-6)
    return found


def kinds(graph: Graph) -> list[str]:
    return [node.op.kind for node in graph.nodes]
