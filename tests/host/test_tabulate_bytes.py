# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Arithmetic on bytes before a quantisation is a table, with the same results for every byte."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper

from tinyml import harness
from tinyml.importers import onnx_graph
from tinyml.interpret import interpret
from tinyml.ir import Array, Graph
from tinyml.ops.elementwise.channel_lookup import ChannelLookup
from tinyml.ops.elementwise.lookup import Lookup
from tinyml.pipeline import Options, compile_built, optimize

SHAPE = (1, 3, 16, 16)
CONSTANTS: dict[str, Array] = {
    "whole": np.array(255.0, np.float32),
    "half": np.array([[[0.5]]], np.float32),
    "third": np.array([1 / 3], np.float32),
    "scale": np.array(0.0123, np.float32),
    "zero_s8": np.array(-3, np.int8),
    "zero_u8": np.array(119, np.uint8),
    "low": np.array(-0.9, np.float32),
    "high": np.array(0.8, np.float32),
    "columns": np.linspace(0, 1, 16, dtype=np.float32),
    "means": np.array([0.485, 0.456, 0.406], np.float32).reshape(1, 3, 1, 1),
    "deviations": np.array([0.229, 0.224, 0.225], np.float32).reshape(3, 1, 1),
    "pixels": np.linspace(0, 1, 256, dtype=np.float32).reshape(16, 16),
}
CAST = helper.make_node("Cast", ["x"], ["real"], to=TensorProto.FLOAT)


def chain(*steps: tuple[str, str | None], out: str = "s8") -> list[NodeProto]:
    """The cast, functions with a constant each (or None), and the quantisation."""
    nodes, before = [CAST], "real"
    for number, (function, operand) in enumerate(steps):
        nodes.append(helper.make_node(function, [before, *([operand] if operand else [])], [f"t{number}"]))
        before = f"t{number}"
    return [*nodes, helper.make_node("QuantizeLinear", [before, "scale", f"zero_{out}"], ["q"])]


def model(nodes: Sequence[NodeProto], kind: int = TensorProto.UINT8, also: str = "") -> Graph:
    last = helper.make_node("DequantizeLinear", ["q", "scale", nodes[-1].input[2]], ["y"])
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("y", also) if name]
    graph = helper.make_graph(
        [*nodes, last],
        "normalised",
        [helper.make_tensor_value_info("x", kind, SHAPE)],
        outputs,
        [numpy_helper.from_array(value, name) for name, value in CONSTANTS.items()],
    )
    return onnx_graph.read(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), "model", {})


def tabulated(graph: Graph) -> bool:
    """Of the optimised graph, which must compute the same for every byte."""
    after = optimize(graph)
    kind = graph.tensors["x"].dtype.numpy
    x = np.tile(np.arange(256, dtype=np.uint8).view(kind), 3).reshape(SHAPE)
    (before_y,), (after_y,) = (interpret(each, [{"x": x}]) for each in (graph, after))
    np.testing.assert_array_equal(after_y["y"], before_y["y"])
    return any(isinstance(node.op, Lookup | ChannelLookup) for node in after.nodes)


@pytest.mark.parametrize("kind", [TensorProto.UINT8, TensorProto.INT8])
@pytest.mark.parametrize("out", ["s8", "u8"])
@pytest.mark.parametrize(
    "steps",
    [
        (),
        (("Div", "whole"), ("Sub", "half"), ("Div", "third")),
        (("Mul", "third"), ("Add", "low"), ("Max", "low"), ("Min", "high")),
        (("Div", "whole"), ("Relu", None)),
        (("Div", "whole"), ("Sub", "means"), ("Div", "deviations")),
    ],
    ids=["cast", "normalised", "limited", "relu", "channels"],
)
def test_every_byte(steps: tuple[tuple[str, str | None], ...], out: str, kind: int) -> None:
    assert tabulated(model(chain(*steps, out=out), kind))


def test_constants_on_the_left() -> None:
    nodes = chain(("Div", "whole"))
    nodes[1] = helper.make_node("Div", ["whole", "real"], ["t0"])  # the first byte divides by zero
    assert tabulated(model(nodes))


@pytest.mark.parametrize(
    "steps",
    [
        (("Sub", "columns"),),  # tables would be larger than the image
        (("Sub", "columns"), ("Div", "means")),
        (("Sub", "pixels"),),
        (("Exp", None),),  # not the same on every core
    ],
    ids=["columns", "two_axes", "pixels", "inexact"],
)
def test_not_a_table(steps: tuple[tuple[str, str | None], ...]) -> None:
    assert not tabulated(model(chain(*steps)))


def test_real_numbers_that_something_else_reads() -> None:
    assert not tabulated(model(chain(("Div", "whole"), ("Sub", "half")), also="t0"))


@pytest.mark.parametrize(
    "operand,kernel",
    [("half", "table lookup"), ("means", "table lookup by channels")],
    ids=["one", "channels"],
)
def test_no_float_image_in_c(operand: str, kernel: str) -> None:
    """The C gives what numpy gives, for every byte."""
    graph = model(chain(("Div", "whole"), ("Sub", operand)))
    compiled = compile_built(graph, Options(name="model", target="host"))
    assert [chosen.kernel.name for chosen in compiled.selected] == [kernel, "dequantize loop"]
    x = np.tile(np.arange(256, dtype=np.uint8), 3).reshape(SHAPE)
    result = harness.run_files(compiled.files, "host", [{"x": x}])
    np.testing.assert_array_equal(result.outputs[0]["y"], interpret(graph, [{"x": x}])[0]["y"])
