# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Small models with one feature each: what becomes int8, what stays float, what is dropped."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.support.quantizing import kinds, saved
from tests.support.small_models import (
    AFTER,
    CONV,
    OPERANDS,
    WEIGHTS,
    after_conv,
    model_of,
    node,
    quantize_small,
)
from tests.support.tflite_writer import Call, Part, Value, write
from tinyml import importers
from tinyml.base.errors import UnsupportedError
from tinyml.ir import Array, DType, Graph, Node, Op, Tensor
from tinyml.pipeline import Options, compile_model
from tinyml.quantize import export
from tinyml.quantize.engine import quantize
from tinyml.quantize.measure import EXACT
from tinyml.reference.session import Session
from tinyml.settings.quantize_request import Request

pytest.importorskip("onnxruntime", reason="the quantiser is onnxruntime's")


@pytest.mark.parametrize("name", AFTER)
def test_operator_becomes_integer(name: str, tmp_path: Path) -> None:
    """Each of these after a convolution: only the inputs and outputs of the model are float."""
    result = quantize_small(after_conv(name), tmp_path, (3, 5, 5))
    compiled = compile_model(saved(result, tmp_path), Options("small", "cortex-m3"))
    floats = [
        layer.op.kind
        for layer in compiled.graph.layers()
        if layer.op.kind not in ("Quantize", "Dequantize") and layer.output.dtype.is_float
        and layer.op.kind not in ("Reshape", "Transpose")  # of the float output, at the very end
    ]  # fmt: skip
    assert floats == []
    assert result.report.decibels > 15


def test_layers_without_an_integer_form_stay_float(tmp_path: Path) -> None:
    """Quantising them would cost precision and save nothing."""
    nodes = [
        CONV,
        helper.make_node("LpNormalization", ["c"], ["n"], "norm", axis=1),
        helper.make_node("Sin", ["n"], ["y"], "sin"),
    ]
    result = quantize_small(model_of(nodes, {"w": WEIGHTS}, [1, 3, 5, 5]), tmp_path, (3, 5, 5))
    assert {layer.name: (layer.kind, layer.why) for layer in result.report.layers} == {
        "conv": ("int8", ""),
        "norm": ("float", "there is no integer form of LpNormalization"),
        "sin": ("float", "there is no integer form of Sin"),
    }
    compile_model(saved(result, tmp_path), Options("small", "cortex-m3"))


@pytest.mark.parametrize("op_type", ["FusedConv", "Gelu"])
def test_operators_of_onnxruntime_become_standard_ones(op_type: str, tmp_path: Path) -> None:
    """Its quantiser knows neither their shapes nor their ranges."""
    nodes = [
        helper.make_node(op_type, ["x"] if op_type == "Gelu" else ["x", "w"], ["f"], domain="com.microsoft"),
        helper.make_node("Conv", ["f", "v", "bias"], ["y"], "conv"),
    ]
    second = np.random.default_rng(5).normal(size=(4, 3 if op_type == "Gelu" else len(WEIGHTS), 1, 1))
    constants = {"v": second.astype(np.float32), "bias": np.ones(4, np.float32)}
    model = model_of(nodes, {"w": WEIGHTS, **constants}, [1, 3, 5, 5])
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    result = quantize_small(model, tmp_path, (3, 5, 5))
    assert {layer.kind for layer in result.report.layers} == {"int8"}
    assert not [node for node in result.model.graph.node if node.domain]
    assert result.report.decibels > 20


def test_nothing_is_rounded_between_layers_kept_in_float(tmp_path: Path) -> None:
    """A reshape between two float layers stays float; after an int8 layer it is int8."""
    nodes = [
        CONV,
        helper.make_node("Transpose", ["c"], ["t"], "turn", perm=[0, 2, 3, 1]),
        helper.make_node("Flatten", ["t"], ["f"], "flat"),
        helper.make_node("MatMul", ["f", "matrix"], ["y"], "dense"),
    ]
    model = model_of(nodes, {"w": WEIGHTS, "matrix": OPERANDS["matrix"]}, [1, 3, 5, 5])
    both = quantize_small(model, tmp_path, (3, 5, 5), lambda r: replace(r, keep_float=("conv", "dense")))
    assert not [node for node in both.model.graph.node if node.op_type == "QuantizeLinear"]
    assert both.report.decibels == EXACT
    one = quantize_small(model, tmp_path, (3, 5, 5), lambda r: replace(r, keep_float=("dense",)))
    assert {layer.name: layer.kind for layer in one.report.layers} == {
        "conv": "int8",
        "turn": "int8",
        "flat": "int8",
        "dense": "float",
    }


def test_open_dimensions_and_an_old_opset(tmp_path: Path) -> None:
    """Batch, height and width open, weights listed as inputs, opset 9: what older exporters write."""
    nodes = [CONV, helper.make_node("Relu", ["c"], ["y"], "relu")]
    model = model_of(nodes, {"w": WEIGHTS}, ["batch", 3, "h", "w_"], opset=9)
    model.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, WEIGHTS.shape))
    onnx.save(model, tmp_path / "open.onnx")
    np.save(tmp_path / "calib.npy", np.random.default_rng(1).uniform(-1, 1, (32, 3, 6, 6)).astype(np.float32))
    request = Request(tmp_path / "calib.npy", method="minmax")
    result = quantize(tmp_path / "open.onnx", request, {"x": (1, 3, 6, 6)})
    compiled = compile_model(saved(result, tmp_path), Options("small", "cortex-m3"))
    assert compiled.graph.tensors[compiled.graph.inputs[0]].shape == (1, 3, 6, 6)
    assert ("Conv", "int8") in kinds(compiled)


def test_half_precision_is_widened(tmp_path: Path) -> None:
    """Weights, interface and casts in 16 bits: quantised as the float32 model that it is in effect."""
    nodes = [
        CONV,
        helper.make_node("Cast", ["c"], ["h"], "cast", to=TensorProto.FLOAT16),
        node("Relu", "h", "y"),
    ]
    model = model_of(nodes, {"w": WEIGHTS}, [1, 3, 5, 5])
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(WEIGHTS.astype(np.float16), "w"))
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.elem_type = TensorProto.FLOAT16
    result = quantize_small(model, tmp_path, (3, 5, 5))
    assert [(layer.op_type, layer.kind) for layer in result.report.layers] == [("Conv", "int8")]
    assert result.report.decibels > 35
    compiled = compile_model(saved(result, tmp_path), Options("small", "cortex-m3"))
    assert compiled.graph.tensors[compiled.graph.inputs[0]].dtype is DType.FLOAT32


def test_tflite_with_half_precision_weights(tmp_path: Path) -> None:
    """What the TFLite converter calls float16 quantisation: weights are widened when the model runs."""
    weights = np.random.default_rng(5).normal(0, 0.3, (4, 12)).astype(np.float16)
    values = [
        *(Value(name, shape) for name, shape in (("x", (1, 12)), ("w", (4, 12)), ("y", (1, 4)))),
        Value.constant("half", weights),
    ]
    calls = [
        Call("DEQUANTIZE", ["half"], ["w"], "DequantizeOptions"),
        Call("FULLY_CONNECTED", ["x", "w", ""], ["y"], "FullyConnectedOptions"),
    ]
    (tmp_path / "half.tflite").write_bytes(write(Part(values, calls, ["x"], ["y"])))
    np.save(tmp_path / "calib.npy", np.random.default_rng(1).uniform(-1, 1, (32, 12)).astype(np.float32))
    result = quantize(tmp_path / "half.tflite", Request(tmp_path / "calib.npy", method="minmax"))
    assert ("Gemm", "int8") in [(layer.op_type, layer.kind) for layer in result.report.layers]
    assert result.report.decibels > 35
    compiled = compile_model(saved(result, tmp_path), Options("small", "cortex-m3"))
    assert ("Dense", "int8") in kinds(compiled)


def test_batch_normalisation_goes_into_the_weights(tmp_path: Path) -> None:
    ones = np.ones(4, np.float32)
    nodes = [CONV, helper.make_node("BatchNormalization", ["c", "g", "o", "m", "v"], ["y"], "bn")]
    constants: dict[str, Array] = {"w": WEIGHTS, "g": ones * 2, "o": ones, "m": ones / 2, "v": ones * 3}
    result = quantize_small(model_of(nodes, constants, [1, 3, 5, 5]), tmp_path, (3, 5, 5))
    assert [layer.op_type for layer in result.report.layers] == ["Conv"]
    assert result.report.decibels > 35


def test_noisy_layer_is_warned_about(tmp_path: Path) -> None:
    """One huge channel dominates the range: the report says where precision is lost and what to do."""
    weights = WEIGHTS.copy()
    weights[0] *= 3000
    nodes = [
        CONV,
        helper.make_node("Mul", ["c", "scale"], ["y"], "balance"),
    ]
    scale = np.asarray([1 / 3000, 1, 1, 1], np.float32).reshape(1, 4, 1, 1)
    model = model_of(nodes, {"w": weights, "scale": scale}, [1, 3, 5, 5])
    model.graph.output.append(helper.make_tensor_value_info("c", TensorProto.FLOAT, None))  # no fusion
    result = quantize_small(model, tmp_path, (3, 5, 5))
    advice = "\n".join(result.report.advice())
    assert "layer balance (Mul) has only" in advice
    assert "--int16 balance gives" in advice
    assert "--keep-float balance" not in advice, "it was tried, and its input is int8 all the same"


def test_sparsity_is_reported(tmp_path: Path) -> None:
    weights = WEIGHTS.copy()
    weights[1] = 0
    weights[2, :, 0] = 0
    result = quantize_small(
        model_of([helper.make_node("Conv", ["x", "w"], ["y"], "conv")], {"w": weights}, [1, 3, 5, 5]),
        tmp_path,
        (3, 5, 5),
    )
    found = result.report.sparsity
    assert (found.weights, found.zeros) == (108, 27 + 9)
    assert (found.channels, found.dead_channels) == (4, 1)


def test_dead_channels_are_dropped(tmp_path: Path) -> None:
    """Pruned channels are removed from the firmware, with their weights in the next layer."""
    first, second = WEIGHTS.copy(), np.random.default_rng(6).normal(0, 0.2, (2, 4, 3, 3)).astype(np.float32)
    first[1] = 0
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], "conv1"),
        helper.make_node("Relu", ["c"], ["r"], "relu"),
        helper.make_node("Conv", ["r", "v"], ["y"], "conv2"),
    ]
    bias = np.asarray([0.1, 0.2, 0.3, 0.4], np.float32)
    result = quantize_small(
        model_of(nodes, {"w": first, "v": second, "b": bias}, [1, 3, 7, 7]), tmp_path, (3, 7, 7)
    )
    assert result.report.sparsity.dead_channels == 1
    compiled = compile_model(saved(result, tmp_path), Options("small", "cortex-m3"))
    weights = [layer.input(1).shape for layer in compiled.graph.layers() if layer.op.kind == "Conv"]
    assert weights == [(3, 3, 3, 3), (2, 3, 3, 3)]


@pytest.mark.parametrize("name", AFTER)
def test_graph_written_as_onnx_computes_the_same(name: str, tmp_path: Path) -> None:
    """As for TFLite models: an imported graph, written as ONNX, gives the same results."""
    model = after_conv(name)
    onnx.save(model, tmp_path / "small.onnx")
    written = export.to_onnx(importers.load(tmp_path / "small.onnx"))
    x = np.random.default_rng(8).uniform(-1, 1, (1, 3, 5, 5)).astype(np.float32)
    wanted, found = (Session(m).run({"x": x})["y"] for m in (model, written))
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_operators_that_onnx_cannot_express_are_named() -> None:
    @dataclass(frozen=True)
    class Strange(Op):
        pass

    tensors = {name: Tensor(name, (1,), DType.FLOAT32) for name in "xy"}
    graph = Graph("g", tensors, (Node("n", Strange(), ("x",), ("y",)),), ("x",), ("y",))
    with pytest.raises(UnsupportedError, match="would need to write Strange as ONNX"):
        export.to_onnx(graph)
