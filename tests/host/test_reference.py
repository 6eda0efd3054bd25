# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""onnxruntime as a reference: one door, and behind it the same integers on every CPU."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

pytest.importorskip("onnxruntime", reason="it is what is tested")

from tests.ops.quantised import unsigned_matmul
from tests.support.integer_models import DEPTH, MODELS, Exact, operand, qdq
from tinyml.ir import Array
from tinyml.reference import session
from tinyml.reference.exact import exact
from tinyml.reference.session import Session
from tinyml.reference.unsigned import FORMS
from tinyml.verbs.cli import main

ROOT = Path(__file__).resolve().parents[2]
DOOR = ROOT / "plugin" / "tinyml" / "reference" / "session.py"
DIGITS = ROOT / "samples" / "digits" / "model.onnx"


def names(source: str) -> set[str]:
    """Everything that a source file names: variables, attributes and imports."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {alias.name.rpartition(".")[2] for alias in node.names}
    return found


def test_nobody_else_opens_a_session() -> None:
    """A session of one's own would saturate on some CPUs."""
    parts = ("plugin", "tests", "samples", "tools", "benchmarks", "docs")
    files = [path for part in parts for path in (ROOT / part).rglob("*.py")]
    assert [path for path in files if "InferenceSession" in names(path.read_text())] == [DOOR]


def saturating(x: Array, w: Array) -> Array:
    """uint8 @ int8 as VPMADDUBSW computes it: pairs of products added in int16, the rest in int32."""
    products = x.astype(np.int64)[:, :, np.newaxis] * w.astype(np.int64)[np.newaxis]
    pairs = products[:, 0::2] + products[:, 1::2]
    total: Array = np.clip(pairs, -(2**15), 2**15 - 1).sum(axis=1)
    return total


def test_the_saturation_is_what_x86_shows() -> None:
    """7 is right; onnxruntime answers 11 with AVX2 and without VNNI when weights are int8."""
    case = unsigned_matmul()
    graph = case.graph()
    x = case.inputs["x"]
    w = next(t.value for t in graph.tensors.values() if t.is_constant and t.shape == (DEPTH, 5))
    lost = x.astype(np.int64) @ w.astype(np.int64) - saturating(x, w)
    accumulated = (x.astype(np.int64) - 120) @ w.astype(np.int64)
    right, wrong = (np.rint(a * 0.02 * 0.01 / 0.05) + 100 for a in (accumulated, accumulated - lost))
    assert (right[1, 0], wrong[1, 0]) == (7, 11)
    assert case.expected is not None
    np.testing.assert_array_equal(case.expected()[0], np.clip(right, 0, 255))


def test_the_operands_of_these_models_saturate() -> None:
    x, w = operand("uint8", (3, DEPTH), 3), operand("int8", (DEPTH, 5), 0, seed=1)
    assert (saturating(x.data, w.data) != x.data.astype(np.int64) @ w.data.astype(np.int64)).all()


@pytest.mark.parametrize("name", MODELS)
def test_answers_are_exact(name: str) -> None:
    case = MODELS[name]()
    (found,) = session.answers(case.model, case.inputs)
    assert found.dtype == case.output.dtype
    if found.dtype.kind == "f":
        np.testing.assert_allclose(found, case.output, rtol=1e-6)
    else:
        np.testing.assert_array_equal(found, case.output)
        assert len(np.unique(found)) > 3, "saturated anyway"


def operand_types(model: onnx.ModelProto, monkeypatch: pytest.MonkeyPatch) -> dict[str, set[str]]:
    """Integer operators of a model as it is, with the types that onnxruntime finds their operands to have."""
    watched = {
        node.input[value]: node.op_type
        for node in model.graph.node
        if node.op_type in FORMS
        for value, _ in FORMS[node.op_type].operands
    }
    monkeypatch.setattr(session, "exact", lambda given: onnx.ModelProto.FromString(given.SerializeToString()))
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    constants = {tensor.name for tensor in model.graph.initializer}
    ports = {name for name in watched if name in {value.name for value in model.graph.input}}
    opened = Session(copy, [name for name in watched if name not in constants | ports]).session
    types = {port.name: port.type for port in (*opened.get_outputs(), *opened.get_inputs())}
    types |= {
        tensor.name: f"tensor({numpy_helper.to_array(tensor).dtype})" for tensor in model.graph.initializer
    }
    found: dict[str, set[str]] = {}
    for name, op_type in watched.items():
        found.setdefault(op_type, set()).add(types[name])
    return found


@pytest.mark.parametrize("name", MODELS)
def test_all_products_are_of_uint8(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one combination that no CPU saturates."""
    model = exact(MODELS[name]().model)
    found = operand_types(model, monkeypatch)
    assert found
    assert all(types == {"tensor(uint8)"} for types in found.values()), found
    assert not {"Conv", "MatMul", "Gemm"} & {node.op_type for node in model.graph.node}


def test_int8_operands_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    found = operand_types(MODELS["QLinearConv-uint8-int8"]().model, monkeypatch)
    assert found == {"QLinearConv": {"tensor(uint8)", "tensor(int8)"}}


def test_the_sample_is_integers_throughout(monkeypatch: pytest.MonkeyPatch) -> None:
    model = exact(onnx.load(DIGITS))
    found = operand_types(model, monkeypatch)
    assert found == {"ConvInteger": {"tensor(uint8)"}, "MatMulInteger": {"tensor(uint8)"}}
    assert not {"Conv", "MatMul", "Gemm"} & {node.op_type for node in model.graph.node}


def test_weights_of_a_dynamic_layer() -> None:
    """Its activations are uint8 already."""
    w = operand("int8", (DEPTH, 5), 0, seed=1)
    tensors = {"w": w.data, "ws": w.scale}
    node = helper.make_node("DynamicQuantizeMatMul", ["x", *tensors], ["y"], domain="com.microsoft")
    x = np.random.default_rng(2).integers(0, 256, (3, DEPTH)).astype(np.float32)
    x[0, :2] = 0, 255  # so that a step is 1, and nothing is rounded
    graph = helper.make_graph(
        [node],
        "dynamic",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [onnx.ValueInfoProto(name="y")],
        [numpy_helper.from_array(value, name) for name, value in tensors.items()],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    assert "w" not in next(n for n in exact(model).graph.node if n.op_type == node.op_type).input
    (found,) = session.answers(model, {"x": x})
    np.testing.assert_allclose(found, (x @ w.data.astype(np.float64)) * w.scale, rtol=1e-5)


def test_inner_tensors_keep_names_and_meaning() -> None:
    case: Exact = qdq("Conv", "int8", "int8", "int32")
    found = Session(case.model, ["r", "xr", "wr"]).run(case.inputs)
    assert found["r"].dtype == np.float32
    real = (case.inputs["x"].astype(np.float64) - 3) * np.float32(0.02)
    np.testing.assert_allclose(found["xr"], real, rtol=1e-6)


def test_the_model_itself_is_not_changed() -> None:
    case = MODELS["QLinearMatMul-int8-int8"]()
    before = case.model.SerializeToString(deterministic=True)
    Session(case.model)
    assert case.model.SerializeToString(deterministic=True) == before


@pytest.mark.parametrize("length", [256, 400])
def test_stft_agrees(length: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In float32 onnxruntime is 3e-5 away from float64 for 400 points, more than what is called different."""
    window = np.hanning(length).astype(np.float32)
    constants = {"step": np.array(160), "window": window, "length": np.array(length)}
    graph = helper.make_graph(
        [helper.make_node("STFT", ["x", *constants], ["y"], onesided=1)],
        "stft",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 1200))],
        [onnx.ValueInfoProto(name="y")],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    path = tmp_path / "stft.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    assert main(["verify", str(path)]) == 0
    assert "agrees on host with onnxruntime" in capsys.readouterr().out
    x = np.random.default_rng(1).normal(size=(1, 1200)).astype(np.float32)
    (found,) = session.answers(path, {"x": x})
    frames = np.stack([x[0, i : i + length] for i in range(0, 1200 - length + 1, 160)])
    wanted = np.fft.rfft(frames.astype(np.float64) * window)
    np.testing.assert_allclose(found[0, ..., 0], wanted.real, atol=1e-5)
    np.testing.assert_allclose(found[0, ..., 1], wanted.imag, atol=1e-5)
