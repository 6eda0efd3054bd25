# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The TFLite importer: what files may contain, and the errors for everything else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tflite

from tests.support.batch import Item, run_batch
from tests.support.interpret import interpret
from tests.support.tflite_case import Cases, f32, i8, ints
from tests.support.tflite_writer import Call, Part, Value, write
from tinyml import importers
from tinyml.base.errors import ConfigError, ModelError, UnsupportedError
from tinyml.emit.model import Provenance
from tinyml.importers import tflite_graph
from tinyml.ir import DType, Graph, Quant
from tinyml.ir.verifier import verify
from tinyml.ops.dense.dense import Dense
from tinyml.ops.framework.narrow import NARROW, unpacked
from tinyml.ops.reshape import Reshape
from tinyml.pipeline import Options, compile_graph, optimize

PATH = Path("model.tflite")
ORIGIN = Provenance("model.tflite", "00" * 32, "")
FLAT = Quant.per_tensor(0.1, 3)


def read(*parts: Part, **shapes: tuple[int, ...]) -> Graph:
    graph = tflite_graph.read(PATH, write(*parts), shapes)
    verify(graph, "import")
    return graph


def relu(x: str, y: str) -> Call:
    return Call("RELU", [x], [y])


def test_names_shapes_and_quantisation_come_from_the_file() -> None:
    graph = read(
        Part([i8("in", (2, 3), FLAT), i8("out", (2, 3), FLAT)], [relu("in", "out")], ["in"], ["out"])
    )
    assert (graph.inputs, graph.outputs) == (("in",), ("out",))
    x, y = graph.tensors["in"], graph.tensors["out"]
    assert (x.shape, x.dtype, x.quant) == ((2, 3), DType.INT8, Quant((np.float32(0.1),), (3,)))
    assert (y.shape, y.dtype, y.quant) == ((2, 3), DType.INT8, x.quant)


def test_several_inputs_and_outputs_keep_their_order() -> None:
    values = [f32(name, (2,)) for name in ("b", "a", "y", "x")]
    graph = read(Part(values, [relu("a", "x"), relu("b", "y")], ["b", "a"], ["x", "y"]))
    assert (graph.inputs, graph.outputs) == (("b", "a"), ("x", "y"))


def test_a_tensor_that_is_an_output_twice_becomes_two() -> None:
    graph = read(Part([f32("a", (2,)), f32("y", (2,))], [relu("a", "y")], ["a"], ["y", "y"]))
    values = interpret(graph, {"a": np.array([-1, 2], np.float32)})
    assert len(graph.outputs) == len(set(graph.outputs)) == 2
    assert all(v.tolist() == [0, 2] for v in values.values())


@pytest.mark.parametrize("op_type, shape", [("TRANSPOSE", (3, 2)), ("PAD", (4, 3))])
def test_moved_bytes_mean_what_the_file_says(op_type: str, shape: tuple[int, int]) -> None:
    """The bytes are those of the input, on the scale of the output; a border is 0 there."""
    moved = Quant.per_tensor(0.4, -40)
    how = ints("how", 1, 0) if op_type == "TRANSPOSE" else ints("how", 1, 1, 0, 0, shape=(2, 2))
    values = [i8("x", (2, 3), FLAT), how, i8("m", shape, moved), i8("y", shape, FLAT)]
    calls = [
        Call(op_type, ["x", "how"], ["m"], f"{op_type.title()}Options"),
        Call("ADD", ["m", "m"], ["y"], "AddOptions"),
    ]
    graph = read(Part(values, calls, ["x"], ["y"]))
    x = np.array([[-44, -43, -41], [-40, -39, -38]], np.int8)
    inner = np.pad(x, ((1, 1), (0, 0)), constant_values=-40) if op_type == "PAD" else x.T
    expected = np.rint(2 * 0.4 * (inner.astype(np.float64) + 40) / 0.1) + 3
    for found in (graph, optimize(graph)):
        np.testing.assert_array_equal(interpret(found, {"x": x})["y"], expected)


def test_operators_in_the_new_field_only() -> None:
    """What ai-edge-quantizer inserts has no code in the old field, which then says 0: ADD."""
    part = Part(
        [f32("a", (2,)), f32("b", (2,)), f32("y", (2,))],
        [Call("MUL", ["a", "b"], ["y"], "MulOptions")],
        ["a", "b"],
        ["y"],
    )
    content = bytearray(write(part))
    code = tflite.Model.GetRootAs(content).OperatorCodes(0)
    content[code._tab.Pos + code._tab.Offset(4)] = 0
    graph = tflite_graph.read(PATH, bytes(content), {})
    values = interpret(graph, {"a": np.array([3, 2], np.float32), "b": np.array([5, 7], np.float32)})
    assert [v.tolist() for v in values.values()] == [[15, 14]]


def test_half_precision_weights_are_widened() -> None:
    half = np.array([[1.5, -2.25]], np.float16)
    values = [
        f32("x", (1, 2)),
        Value.constant("half", half),
        f32("w", (1, 2)),
        f32("y", (1, 1)),
    ]
    calls = [
        Call("DEQUANTIZE", ["half"], ["w"], "DequantizeOptions"),
        Call("FULLY_CONNECTED", ["x", "w", ""], ["y"], "FullyConnectedOptions"),
    ]
    graph = read(Part(values, calls, ["x"], ["y"]))
    node = graph.nodes[-1]
    assert isinstance(node.op, Dense)
    assert np.array_equal(graph.tensors[node.inputs[1]].value, half.astype(np.float32))


def test_a_shape_that_is_computed_from_a_shape_folds() -> None:
    """SHAPE, STRIDED_SLICE, PACK, RESHAPE: what Keras writes for a dynamic batch."""
    values = [
        f32("x", (1, 2, 3)),
        Value("shape", (3,), "int32"),
        *(ints(name, value) for name, value in (("begin", 0), ("end", 1), ("step", 1))),
        Value("batch", (), "int32"),
        ints("six", 6, shape=()),
        Value("wanted", (2,), "int32"),
        f32("y", (1, 6)),
    ]
    calls = [
        Call("SHAPE", ["x"], ["shape"], "ShapeOptions"),
        Call(
            "STRIDED_SLICE",
            ["shape", "begin", "end", "step"],
            ["batch"],
            "StridedSliceOptions",
            {"ShrinkAxisMask": 1},
        ),
        Call("PACK", ["batch", "six"], ["wanted"], "PackOptions", {"ValuesCount": 2}),
        Call("RESHAPE", ["x", "wanted"], ["y"], "ReshapeOptions"),
    ]
    graph = read(Part(values, calls, ["x"], ["y"]))
    assert [node.op for node in graph.nodes] == [Reshape((1, 6))]
    wide = read(Part(values, calls, ["x"], ["y"]), x=(4, 2, 3))
    assert wide.tensors["y"].shape == (4, 6)


def test_the_shape_that_two_shapes_have_in_common_folds() -> None:
    values = [
        f32("x", (3, 1)),
        ints("a", 3, 1),
        ints("b", 2, 1, 4),
        Value("wanted", (3,), "int32"),
        f32("y", (2, 3, 4)),
    ]
    calls = [
        Call("BROADCAST_ARGS", ["a", "b"], ["wanted"]),
        Call("BROADCAST_TO", ["x", "wanted"], ["y"], "BroadcastToOptions"),
    ]
    graph = read(Part(values, calls, ["x"], ["y"]))
    x = np.arange(3, dtype=np.float32).reshape(3, 1)
    np.testing.assert_array_equal(interpret(graph, {"x": x})["y"], np.broadcast_to(x, (2, 3, 4)))


def test_resource_variables_are_state_with_a_first_value() -> None:
    """y = x + v; v = y; v is 5 before the first run."""
    handle = Value("handle", (), "resource")
    values = [f32("x", (2,)), handle, f32("v", (2,)), f32("y", (2,))]
    name = {"SharedName": "total"}
    main = Part(
        values,
        [
            Call("CALL_ONCE", [], [], "CallOnceOptions", {"InitSubgraphIndex": 1}),
            Call("VAR_HANDLE", [], ["handle"], "VarHandleOptions", name),
            Call("READ_VARIABLE", ["handle"], ["v"], "ReadVariableOptions"),
            Call("ADD", ["x", "v"], ["y"], "AddOptions"),
            Call("ASSIGN_VARIABLE", ["handle", "y"], [], "AssignVariableOptions"),
        ],
        ["x"],
        ["y"],
    )
    five = Value.constant("five", np.full(2, 5, np.float32))
    first = Part(
        [handle, five],
        [
            Call("VAR_HANDLE", [], ["handle"], "VarHandleOptions", name),
            Call("ASSIGN_VARIABLE", ["handle", "five"], [], "AssignVariableOptions"),
        ],
    )
    (state,) = read(main, first).states
    assert state.update == "y"
    assert state.initial is not None
    assert state.initial.tolist() == [5, 5]


def test_a_variable_that_is_never_written_is_a_constant() -> None:
    handle = Value("handle", (), "resource")
    calls = [
        Call("VAR_HANDLE", [], ["handle"], "VarHandleOptions", {"SharedName": "v"}),
        Call("READ_VARIABLE", ["handle"], ["v"], "ReadVariableOptions"),
        Call("ADD", ["x", "v"], ["y"], "AddOptions"),
    ]
    graph = read(Part([f32("x", (2,)), handle, f32("v", (2,)), f32("y", (2,))], calls, ["x"], ["y"]))
    assert not graph.states
    assert interpret(optimize(graph), {"x": np.ones(2, np.float32)})["y"].tolist() == [1, 1]


def test_weights_of_a_hybrid_layer_stay_bytes_in_flash() -> None:
    """Quantised weights, float activations: computed in float, stored in a quarter of the space."""
    rng = np.random.default_rng(3)
    stored = rng.integers(-90, 90, (7, 40)).astype(np.int8)
    w = Value.constant("w", stored, Quant.per_tensor(0.02, 0))
    call = Call("FULLY_CONNECTED", ["x", "w", ""], ["y"], "FullyConnectedOptions")
    graph = read(Part([f32("x", (2, 40)), w, f32("y", (2, 7))], [call], ["x"], ["y"]))
    compiled = compile_graph(graph, "net", ORIGIN, Options(target="host"))
    assert "static const int8_t net_dense1_weights[280]" in compiled.files["net_weights.h"]
    x = rng.normal(0, 1, (2, 40)).astype(np.float32)
    outcome = run_batch([Item("net", compiled.files, [{"x": x}])])["net"]
    assert not outcome.failure
    np.testing.assert_allclose(
        outcome.outputs[0]["y"], x @ (stored * np.float32(0.02)).T, rtol=1e-4, atol=1e-4
    )


def test_int4_weights_are_unpacked() -> None:
    assert unpacked(bytes([0x1F, 0x78]), NARROW["int4"]).tolist() == [-1, 1, -8, 7]


# --- what is refused, and how ------------------------------------------------------------------------


def test_everything_missing_is_reported_at_once() -> None:
    values = [f32(name, (2,)) for name in "abcd"]
    calls = [
        Call("CUSTOM", ["a"], ["b"], custom="FancyNorm"),
        Call("HASHTABLE_LOOKUP", ["b"], ["c"]),
        Call("SKIP_GRAM", ["c"], ["d"]),
    ]
    with pytest.raises(UnsupportedError) as caught:
        read(Part(values, calls, ["a"], ["d"]))
    for word in ("FancyNorm", "HASHTABLE_LOOKUP", "SKIP_GRAM"):
        assert word in caught.value.message


def test_an_unknown_input_in_shape_is_named() -> None:
    part = Part([f32("a", (2,)), f32("y", (2,))], [relu("a", "y")], ["a"], ["y"])
    with pytest.raises(ConfigError, match="no input called b"):
        read(part, b=(3,))
    with pytest.raises(ConfigError, match="contradicts"):
        read(part, a=(3, 1))


def test_a_fused_activation_we_do_not_have_is_refused() -> None:
    values = [f32("a", (2,)), f32("b", (2,)), f32("y", (2,))]
    call = Call("ADD", ["a", "b"], ["y"], "AddOptions", {"FusedActivationFunction": 4})
    with pytest.raises(UnsupportedError, match="fused activation number 4"):
        read(Part(values, [call], ["a", "b"], ["y"]))


def test_strings_are_refused() -> None:
    from tests.support import tflite_writer

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(tflite_writer.TYPES, "string", 5)
        content = write(Part([Value("a", (2,), "string"), f32("y", (2,))], [relu("a", "y")], ["a"], ["y"]))
    with pytest.raises(UnsupportedError, match="STRING"):
        tflite_graph.read(PATH, content, {})


@pytest.mark.parametrize(
    "values, message",
    [
        ([f32("a", (2,)), f32("z", (2,)), f32("y", (2,))], "nothing computes tensor 'z'"),
        (
            [f32("a", (2,)), Value("z", (2,), "int8", Quant.per_tensor(0.0, 0)), f32("y", (2,))],
            "not positive",
        ),
        (
            [f32("a", (2,)), Value("z", (2,), "int8", Quant.per_tensor(0.1, 999)), f32("y", (2,))],
            "zero point",
        ),
        (
            [f32("a", (2,)), Value("z", (3,), "float32", data=np.ones(2, np.float32)), f32("y", (2,))],
            "2 of its 3",
        ),
    ],
)
def test_tensors_that_cannot_be(values: list[Value], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        read(Part(values, [relu("z", "y")], ["a"], ["y"]))


def convolution() -> bytes:
    cases = Cases()
    w = Value.constant("w", np.ones((2, 3, 3, 3), np.int8), Quant((0.1, 0.2), (0, 0), 0))
    cases.add(
        "x",
        "CONV_2D",
        [i8("x", (1, 7, 6, 3)), w],
        [i8("y", (1, 5, 4, 2))],
        "Conv2DOptions",
        Padding=1,
        StrideH=1,
        StrideW=1,
    )
    return cases.found[0].content


def test_a_file_that_was_cut_off_is_called_broken(tmp_path: Path) -> None:
    content = convolution()
    for length in range(8, len(content) - 4, 7):  # the last four bytes end a name
        file = tmp_path / "cut.tflite"
        file.write_bytes(content[:length])
        with pytest.raises((ModelError, UnsupportedError)):
            importers.load(file)


def test_flipped_bytes_never_end_in_a_traceback() -> None:
    """Whatever a damaged file says, the answer is a model or one of our messages."""
    content, rng = convolution(), np.random.default_rng(5)
    for _ in range(300):
        damaged = bytearray(content)
        for place in rng.integers(8, len(content), rng.integers(1, 4)):
            damaged[place] = rng.integers(0, 256)
        try:
            graph = tflite_graph.read(PATH, bytes(damaged), {})
        except (ModelError, UnsupportedError):
            continue
        assert graph.outputs


def test_compiles_under_its_own_name() -> None:
    graph = tflite_graph.read(PATH, convolution(), {})
    compiled = compile_graph(graph, "net", ORIGIN, Options(target="host"))
    assert "int net_run(void)" in compiled.files["net.c"]


def test_a_scale_of_zero_means_weights_of_zero() -> None:
    """Converters write it for filters that are all zero; TensorFlow Lite makes a multiplier of 0 from it."""
    scales = Quant((0.01, 0.0), (0, 0), 0)
    w = Value.constant("w", np.array([[3, -5, 7], [0, 0, 0]], np.int8), scales)
    bias = Value.constant("b", np.array([4, 90], np.int32), Quant((0.001, 0.0), (0, 0), 0))
    values = [i8("x", (1, 3), FLAT), w, bias, i8("y", (1, 2), FLAT)]
    call = Call("FULLY_CONNECTED", ["x", "w", "b"], ["y"], "FullyConnectedOptions")
    graph = read(Part(values, [call], ["x"], ["y"]))
    found = interpret(graph, {"x": np.array([[10, -20, 30]], np.int8)})["y"]
    assert found[0, 1] == 3  # the output's zero point: the bias is multiplied by 0, too
    assert found[0, 0] != 3


def test_a_scale_of_zero_is_refused_where_values_are_computed() -> None:
    values = [i8("x", (1, 3), Quant.per_tensor(0.0, 0)), i8("y", (1, 3), FLAT)]
    with pytest.raises(ModelError, match="scale"):
        read(Part(values, [relu("x", "y")], ["x"], ["y"]))
