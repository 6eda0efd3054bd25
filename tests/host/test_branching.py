# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Random networks with many branches: each gets a plan, right results, and an arena near its bound."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.depth import some
from tests.support.batch import Item, run_batch
from tests.support.branching import INPUT, network
from tests.support.interpret import interpret
from tinyml.emit.model import Provenance
from tinyml.importers import onnx_graph
from tinyml.pipeline import Options, compile_graph

ORIGIN = Provenance("random", "0" * 64, "")
WORST = 1.12


def test_plans_and_results() -> None:
    """The validator has checked each plan; the C runs with the rest of the arena poisoned."""
    items, wanted = [], {}
    rng = np.random.default_rng(3)
    for seed in some(range(120)):
        graph = onnx_graph.read(network(seed), "random", {})
        made = compile_graph(graph, f"n{seed}", ORIGIN, Options(target="host"))
        sample = {"x": rng.normal(0, 1, (1, *INPUT)).astype(np.float32)}
        items.append(Item(f"n{seed}", made.files, [sample]))
        wanted[f"n{seed}"] = interpret(graph, sample)
        assert made.summary["arena_bytes"] <= WORST * made.summary["arena_lower_bound_bytes"], seed
    for name, outcome in run_batch(items).items():
        assert not outcome.failure, f"{name}: {outcome.failure}"
        for port, value in wanted[name].items():
            assert np.allclose(outcome.outputs[0][port], value, 1e-4, 1e-4 * np.abs(value).max()), name


@pytest.mark.parametrize("seed", [13])
def test_an_operand_of_a_concatenation_inside_another(seed: int) -> None:
    """t4 = [t2, x] and t7 = [t2, t4], where x is in t2: t4 would be copied onto a part of itself."""
    graph = onnx_graph.read(network(seed), "random", {})
    assert compile_graph(graph, "n", ORIGIN, Options(target="cortex-m4")).summary["arena_bytes"] > 0


def concatenated(first: str, second: str) -> onnx.ModelProto:
    """t2 = [x, y], t4 = [t2, x], t7 = [first, second]."""
    parts = (("t2", ["x", "y"]), ("t4", ["t2", "x"]), ("z", [first, second]))
    sizes = {"x": 4, "y": 9, "t2": 13, "t4": 17}
    sizes["z"] = sizes[first] + sizes[second]
    nodes = [helper.make_node("Concat", inputs, [name], axis=1) for name, inputs in parts]
    ports = {name: helper.make_tensor_value_info(name, 1, [1, sizes[name], 2]) for name in ("x", "y", "z")}
    graph = helper.make_graph(nodes, "g", [ports["x"], ports["y"]], [ports["z"]])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


@pytest.mark.parametrize("order", [("t2", "t4"), ("t4", "t2"), ("t4", "t4"), ("x", "t4"), ("t4", "x")])
def test_concatenations_of_concatenations(order: tuple[str, str]) -> None:
    graph = onnx_graph.read(concatenated(*order), "g", {})
    made = compile_graph(graph, "g", ORIGIN, Options(target="host"))
    rng = np.random.default_rng(1)
    sample = {name: rng.normal(0, 1, graph.tensors[name].shape).astype(np.float32) for name in graph.inputs}
    (outcome,) = run_batch([Item("g", made.files, [sample])]).values()
    assert not outcome.failure, outcome.failure
    assert np.array_equal(outcome.outputs[0]["z"], interpret(graph, sample)["z"])
