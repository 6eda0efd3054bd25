# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Relu and Clip in a quantised model: they limit the same numbers as in the float model."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.support.quantizing import saved
from tests.support.small_models import CONV, WEIGHTS, model_of, node, quantize_small
from tinyml.ir import Array
from tinyml.ir.interpreter import interpret
from tinyml.pipeline import Options, compile_model
from tinyml.reference.session import Session

pytest.importorskip("onnxruntime", reason="the quantiser is onnxruntime's")

OTHER = node("Conv", "x v", "d", pads=[1, 1, 1, 1])
LAST = node("Conv", "r u", "y")
HALVES = helper.make_node("Split", ["c", "parts"], ["a", "b"], axis=1)


def real(value: float) -> Array:
    return np.asarray(value, np.float32)


@dataclass
class Case:
    """Nodes from x to y; ``also`` is a second output."""

    nodes: list[onnx.NodeProto]
    constants: dict[str, Array] = field(default_factory=dict)
    also: str = ""
    int16: tuple[str, ...] = ()
    removed: bool = False  # saturation does the same


RANGE = {"low": real(0.1), "high": real(0.4)}
CASES: dict[str, Case] = {
    "relu": Case([CONV, node("Relu", "c", "r"), LAST], removed=True),
    "relu before a concatenation": Case(
        [CONV, OTHER, node("Relu", "c", "r"), node("Concat", "r d", "y", axis=1)]
    ),
    "relu and reshape before it": Case(
        [
            CONV,
            OTHER,
            node("Relu", "c", "r"),
            node("Flatten", "r", "f"),
            node("Flatten", "d", "e"),
            node("Concat", "f e", "y", axis=1),
        ]
    ),
    "relu that is always 0": Case(
        [node("Conv", "x w far", "c"), node("Relu", "c", "r"), LAST], {"far": np.full(4, -100, np.float32)}
    ),
    "relu of an output": Case([CONV, node("Relu", "c", "y")], also="c"),
    "relu of the second part": Case(
        [CONV, HALVES, node("Relu", "b", "r"), node("Mul", "a r", "y")],
        {"parts": np.asarray([2, 2])},
        int16=("conv",),
    ),
    "clip above 0": Case([CONV, node("Clip", "c low high", "y")], RANGE),
    "clip below 0": Case([CONV, node("Clip", "c low high", "y")], {"low": real(-0.4), "high": real(-0.1)}),
    "clip to a number": Case([CONV, node("Clip", "c low low", "y")], RANGE),
    "clip to more": Case(
        [CONV, node("Clip", "c low high", "y")], {"low": real(-99), "high": real(99)}, removed=True
    ),
    "clip after a pool": Case(
        [CONV, node("AveragePool", "c", "p", kernel_shape=[2, 2]), node("Clip", "p low high", "y")], RANGE
    ),
    "relu, then clip": Case([CONV, node("Relu", "c", "r"), node("Clip", "r low high", "y")], RANGE),
    "relu, then clip, on int16": Case(
        [CONV, node("Relu", "c", "r"), node("Clip", "r low high", "y")], RANGE, int16=("conv",)
    ),
    "clip to what the model computes": Case(
        [
            CONV,
            OTHER,
            node("ReduceMin", "d", "least", keepdims=0),
            node("Neg", "least", "most"),
            node("Clip", "c least most", "r"),
            LAST,
        ]
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_limits_stay(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    nodes = case.nodes
    rng = np.random.default_rng(3)
    constants = {
        "w": WEIGHTS,
        "v": 3 * rng.normal(0, 0.3, WEIGHTS.shape).astype(np.float32),
        "u": rng.normal(0, 0.3, (2, 4, 1, 1)).astype(np.float32),
        **case.constants,
    }
    used = {word for item in nodes for word in item.input}
    model = model_of(nodes, {name: value for name, value in constants.items() if name in used}, [1, 3, 5, 5])
    if case.also:
        model.graph.output.append(helper.make_tensor_value_info(case.also, onnx.TensorProto.FLOAT, None))
    result = quantize_small(model, tmp_path, (3, 5, 5), lambda r: replace(r, int16=case.int16))
    assert result.report.decibels > 20
    left = [n for n in result.model.graph.node if n.op_type in ("Relu", "Clip")]
    assert bool(left) != case.removed

    graph = compile_model(saved(result, tmp_path), Options("small", "cortex-m3")).graph
    x = rng.uniform(-1, 1, (1, 3, 5, 5)).astype(np.float32)
    found, wanted = interpret(graph, [{"x": x}])[0], Session(result.model).run({"x": x})
    for output in graph.outputs:
        near = 0.08 * np.ptp(wanted[output]) + 1e-6  # a step: average pools round halves differently
        np.testing.assert_allclose(found[output], wanted[output], rtol=0, atol=near)
