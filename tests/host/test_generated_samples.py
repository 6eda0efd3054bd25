# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Generated inputs reach everything that an operator tells apart."""

from __future__ import annotations

import numpy as np

from tests.support.tflite_writer import Call, Part, Value, write
from tinyml.datasets.generated_samples import generated, input_range
from tinyml.importers import tflite_graph
from tinyml.ir import Graph, Op
from tinyml.ir.constraints import message
from tinyml.ops import catalog  # noqa: F401  (all operators)
from tinyml.ops.quantization.requantize import Requantize


def one_hot(depth: int) -> Graph:
    from pathlib import Path

    constants = [
        Value.constant("depth", np.asarray(depth, np.int32)),
        Value.constant("on", np.asarray(1, np.float32)),
        Value.constant("off", np.asarray(0, np.float32)),
    ]
    values = [Value("x", (8,), "int32"), *constants, Value("y", (8, depth))]
    call = Call("ONE_HOT", ["x", "depth", "on", "off"], ["y"], "OneHotOptions", {"Axis": -1})
    return tflite_graph.read(Path("m.tflite"), write(Part(values, [call], ["x"], ["y"])), {})


def test_classes_and_what_is_none() -> None:
    graph = one_hot(3)
    drawn = np.concatenate([sample["x"] for sample in generated(graph, 24)])
    assert {-1, 0, 1, 2, 3} <= set(drawn.tolist())
    assert input_range(graph, graph.tensors["x"]) == (-5.0, 4.0)


def _operators(kind: type[Op]) -> list[type[Op]]:
    return [kind, *(found for child in kind.__subclasses__() for found in _operators(child))]


def test_every_operator_with_integers_says_which() -> None:
    """A new operator with indices, lengths or axes at run time must say what they can be."""
    asking = [
        kind
        for kind in _operators(Op)
        if any(message(rule).endswith("input holds integers.") for rule in kind.operands)
        and kind.__module__.startswith("tinyml.")
        and not issubclass(kind, Requantize)
    ]
    assert len(asking) >= 9
    assert [kind.__name__ for kind in asking if kind.told_apart is Op.told_apart] == []
