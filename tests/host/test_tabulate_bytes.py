# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Arithmetic on bytes before a quantisation is a table, with the same results for every byte."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper

from tinyml import harness
from tinyml.cost.hints import hints
from tinyml.importers import onnx_graph
from tinyml.ir import Array, Graph
from tinyml.ir.interpreter import interpret
from tinyml.ops.elementwise.channel_lookup import ChannelLookup
from tinyml.ops.elementwise.lookup import Lookup
from tinyml.pipeline import Options, compile_built, optimize
from tinyml.verbs import cli

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


def hinted(nodes: Sequence[NodeProto], kind: int = TensorProto.UINT8) -> tuple[str, ...]:
    return hints(compile_built(model(nodes, kind), Options("model", "cortex-m4")))


@pytest.mark.parametrize(
    "steps,kind,remedy",
    [
        (
            (("Div", "whole"), ("Sub", "pixels")),
            TensorProto.UINT8,
            "one per channel, instead of one per pixel",
        ),
        ((("Div", "whole"), ("Exp", None)), TensorProto.UINT8, "With additions, multiplications"),
        ((("Div", "whole"), ("Sub", "half")), TensorProto.INT16, "give the model uint8 values"),
    ],
    ids=["pixels", "inexact", "wide"],
)
def test_hint_where_it_stays_float(steps: tuple[tuple[str, str | None], ...], kind: int, remedy: str) -> None:
    """Which layers, what they cost, and what to try; nothing where there is a table."""
    (hint,) = hinted(chain(*steps), kind)
    assert "layers 0 (cast), 1 (" in hint
    assert "% of the instructions, 3,072 bytes for float values in an arena of" in hint
    assert remedy in hint
    assert "io: int8" in hint


def test_no_hint() -> None:
    assert hinted(chain(("Div", "whole"), ("Sub", "half"))) == ()


def test_hint_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A float model has no quantisation that a table could end in."""
    nodes = [*chain(("Div", "whole"), ("Sub", "pixels"))[:-1], helper.make_node("Softmax", ["t1"], ["y"])]
    graph = helper.make_graph(
        nodes,
        "normalised",
        [helper.make_tensor_value_info("x", TensorProto.UINT8, SHAPE)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(CONSTANTS[name], name) for name in ("whole", "pixels")],
    )
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), tmp_path / "image.onnx")
    for command in (["compile", "-o", str(tmp_path / "out")], ["report"]):
        assert cli.main([command[0], str(tmp_path / "image.onnx"), *command[1:]]) == 0
        shown = capsys.readouterr().out
        assert "normalise the input 'x' (uint8) in float" in shown
        assert "see `tinyml quantize`" in shown
