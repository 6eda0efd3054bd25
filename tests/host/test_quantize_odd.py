# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What onnxruntime's quantiser does not expect: masks, other biases, weights and results without a value."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.support.quantizing import saved
from tests.support.small_models import CONV, WEIGHTS, model_of, node, quantize_small
from tinyml.base.errors import ConfigError, ModelError, TinymlError
from tinyml.ir import Array
from tinyml.pipeline import Options, compile_model
from tinyml.quantize.engine import Quantized, quantize
from tinyml.quantize.report import Report
from tinyml.settings.quantize_request import Request

pytest.importorskip("onnxruntime", reason="the quantiser is onnxruntime's")


def noise(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).normal(0, 0.5, shape).astype(np.float32)


def kinds(result: Quantized) -> dict[str, str]:
    return {layer.op_type: layer.kind for layer in result.report.layers}


MASKED = [node("MatMul", "x w", "a"), node("Add", "a mask", "b")]
REST = [node("Softmax", "b", "s"), node("MatMul", "s v", "y")]
SEEN = np.tri(5, dtype=bool)


@pytest.mark.parametrize("low", [-np.inf, np.finfo(np.float32).min, -1e9, -1e4, -100, -30])
@pytest.mark.parametrize("way", ["Add", "Where", "Reshape"])
def test_masked_scores_stay_float(way: str, low: float, tmp_path: Path) -> None:
    """int8 would have one step for all scores that are not masked, and has none for infinity."""
    mask: dict[str, Array] = {"mask": np.where(SEEN, 0, low).astype(np.float32)}
    nodes = [*MASKED, *REST]
    if way == "Where":
        nodes = [MASKED[0], node("Where", "seen a mask", "b"), *REST]
        mask = {"mask": np.asarray(low, np.float32), "seen": SEEN}
    if way == "Reshape":
        nodes = [MASKED[0], node("Add", "a mask", "r"), node("Reshape", "r shape", "b"), *REST]
        mask["shape"] = np.asarray([1, 5, 5])
    model = model_of(nodes, {"w": noise(6, 5), "v": noise(5, 4), **mask}, [1, 5, 6])
    result = quantize_small(model, tmp_path, (5, 6))
    assert kinds(result)["Softmax"] == "float"
    assert result.report.layers[0].kind == result.report.layers[-1].kind == "int8"
    assert result.report.decibels > 30
    compile_model(saved(result, tmp_path), Options("small", "cortex-m3"))


@pytest.mark.parametrize("low,kind", [(-100, "float"), (-30, "float"), (-3, "int8")])
@pytest.mark.parametrize("computed", [False, True])
def test_the_report_says_why_masked_scores_are_float(
    computed: bool, low: float, kind: str, tmp_path: Path
) -> None:
    """Also of a mask that arrives at run time; one that changes scores a little leaves them int8."""
    nodes, constants = [*MASKED, *REST], {"w": noise(6, 5), "v": noise(5, 4)}
    if computed:  # a key is hidden if one of its values is positive
        nodes = [node("Slice", "x starts ends axes", "part"), node("Greater", "part zero", "hidden")]
        nodes += [node("Cast", "hidden", "one", to=1), node("Mul", "one low", "mask"), *MASKED, *REST]
        constants |= {name: np.asarray([n]) for name, n in (("starts", 0), ("ends", 5), ("axes", 2))}
        constants |= {"zero": np.asarray(0, np.float32), "low": np.asarray(low, np.float32)}
    else:
        constants["mask"] = np.where(SEEN, 0, low).astype(np.float32)
    result = quantize_small(model_of(nodes, constants, [1, 5, 6]), tmp_path, (5, 6))
    (softmax,) = (layer for layer in result.report.layers if layer.op_type == "Softmax")
    assert softmax.kind == kind
    assert softmax.why == ("its mask leaves scores too few steps of int8" if kind == "float" else "")
    assert computed or result.report.decibels > 30  # int8 inputs near zero hide other keys


def test_a_choice_between_activations_is_int8(tmp_path: Path) -> None:
    """Also if one of them comes from no layer of integers, as a cache does."""
    nodes = [node("MatMul", "x w", "a"), node("Sin", "x", "s")]
    nodes += [node("Where", "seen a s", "b"), node("MatMul", "b w", "y")]
    model = model_of(nodes, {"w": noise(5, 5), "seen": SEEN}, [1, 5, 5])
    result = quantize_small(model, tmp_path, (5, 5))
    assert kinds(result) == {"MatMul": "int8", "Sin": "float", "Where": "int8"}
    assert result.report.decibels > 30
    compile_model(saved(result, tmp_path), Options("small", "cortex-m3"))


def test_a_mask_leaves_the_other_methods(tmp_path: Path) -> None:
    """There is no histogram of infinity, but there are ranges."""
    mask = np.where(SEEN, 0, -np.inf).astype(np.float32)
    onnx.save(
        model_of([*MASKED, *REST], {"w": noise(6, 5), "v": noise(5, 4), "mask": mask}, [1, 5, 6]),
        tmp_path / "m.onnx",
    )
    np.save(tmp_path / "calib.npy", noise(32, 5, 6))
    report = quantize(tmp_path / "m.onnx", Request(tmp_path / "calib.npy")).report
    assert report.method == "minmax"
    assert report.decibels > 30


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (1, 4), (3, 4), (3, 1)])
def test_biases_of_gemm(shape: tuple[int, ...], tmp_path: Path) -> None:
    model = model_of([node("Gemm", "x w b", "y")], {"w": noise(6, 4), "b": noise(*shape)}, [3, 6])
    result = quantize_small(model, tmp_path, (3, 6))
    assert kinds(result) == {"Gemm": "float" if shape[:1] == (3,) else "int8"}
    assert result.report.decibels > 30
    compile_model(saved(result, tmp_path), Options("small", "cortex-m3"))


@pytest.mark.parametrize("beta", [0.0, -2.5])
def test_factors_of_biases_of_gemm(beta: float, tmp_path: Path) -> None:
    nodes = [node("Gemm", "x w b", "y", beta=beta)]
    result = quantize_small(model_of(nodes, {"w": noise(6, 4), "b": noise(4)}, [3, 6]), tmp_path, (3, 6))
    assert kinds(result) == {"Gemm": "int8"}
    assert result.report.decibels > 30
    compile_model(saved(result, tmp_path), Options("small", "cortex-m3"))


def test_classes_and_places_have_no_noise(tmp_path: Path) -> None:
    """The figures are those of the scores, whichever output comes first; a wrong class is no error of 1."""
    nodes = [
        node("Gemm", "x w", "scores"),
        node("ArgMax", "scores", "y", axis=1),
    ]
    model = model_of(nodes, {"w": noise(6, 40)}, [1, 6])
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.INT64
    model.graph.output.append(helper.make_tensor_value_info("scores", TensorProto.FLOAT, None))
    report = quantize_small(model, tmp_path, (6,)).report
    assert [*report.outputs] == ["scores"]
    assert report.largest_error < 0.1


@pytest.mark.parametrize("int16", [(), ("t",)])
def test_transposed_convolution_in_groups(int16: tuple[str, ...], tmp_path: Path) -> None:
    transposed = node("ConvTranspose", "x w b", "y", name="t", strides=[2, 2], group=2)
    model = model_of([transposed], {"w": noise(4, 3, 3, 3), "b": noise(6)}, [1, 4, 5, 5])
    result = quantize_small(model, tmp_path, (4, 5, 5), lambda r: replace(r, int16=int16))
    assert kinds(result) == {"ConvTranspose": "int16" if int16 else "int8"}
    assert result.report.decibels > 30
    compile_model(saved(result, tmp_path), Options("small", "cortex-m3"))


def test_names_that_the_quantiser_uses_itself(tmp_path: Path) -> None:
    nodes = [
        node("Conv", "x w", "x_QuantizeLinear_Output"),
        node("Sigmoid", "x_QuantizeLinear_Output", "x_scale"),
        node("Conv", "x_scale w_scale", "y"),
    ]
    constants = {"w": WEIGHTS, "w_scale": noise(2, 4, 1, 1)}
    result = quantize_small(model_of(nodes, constants, [1, 3, 5, 5]), tmp_path, (3, 5, 5))
    assert {layer.kind for layer in result.report.layers} == {"int8"}
    assert result.report.decibels > 30
    compile_model(saved(result, tmp_path), Options("small", "cortex-m3"))


def test_outputs_with_such_names(tmp_path: Path) -> None:
    model = model_of(
        [CONV, node("Sigmoid", "c", "x_scale"), node("Relu", "c", "y")], {"w": WEIGHTS}, [1, 3, 5, 5]
    )
    model.graph.output.append(helper.make_tensor_value_info("x_scale", TensorProto.FLOAT, None))
    with pytest.raises(ConfigError, match="'x_scale'"):
        quantize_small(model, tmp_path, (3, 5, 5))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weights_that_are_not_numbers(value: float, tmp_path: Path) -> None:
    weights = WEIGHTS.copy()
    weights[1, 0, 0, 0] = value
    with pytest.raises(ModelError, match=r"its constant .w. has 1 (NaN|infinite)"):
        quantize_small(
            model_of([CONV, node("Relu", "c", "y")], {"w": weights}, [1, 3, 5, 5]), tmp_path, (3, 5, 5)
        )


def test_results_that_are_not_numbers(tmp_path: Path) -> None:
    """They are no reason for a figure such as nan dB."""
    result = quantize_small(
        model_of([CONV, node("Log", "c", "y")], {"w": WEIGHTS}, [1, 3, 5, 5]), tmp_path, (3, 5, 5)
    )
    advice = "\n".join(result.report.advice())
    assert "the float model itself computes results that are infinite or not a number (NaN) for 32" in advice
    assert result.report.decibels == -120
    text = json.dumps(result.report.as_json(), allow_nan=False)
    assert Report.from_json(json.loads(text)) == result.report


def test_division_by_what_int8_rounds_to_zero(tmp_path: Path) -> None:
    nodes = [CONV, node("Abs", "c", "a"), node("Add", "a little", "d"), node("Div", "c d", "y")]
    constants = {"w": WEIGHTS, "little": np.asarray(1e-4, np.float32)}
    result = quantize_small(model_of(nodes, constants, [1, 3, 5, 5]), tmp_path, (3, 5, 5))
    assert "where those of the float model are finite" in "\n".join(result.report.advice())


def test_onnxruntime_logs_no_traceback(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """It has no convolution of float64."""
    model = model_of([CONV, node("Relu", "c", "y")], {"w": WEIGHTS.astype(np.float64)}, [1, 3, 5, 5])
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.elem_type = TensorProto.DOUBLE
    with caplog.at_level(logging.ERROR), pytest.raises(TinymlError, match="onnxruntime does not run"):
        quantize_small(model, tmp_path, (3, 5, 5))
    assert not caplog.records
    assert "Traceback" not in capfd.readouterr().err


def test_a_model_without_inputs_has_no_data(tmp_path: Path) -> None:
    """Such as the rest of a model whose inputs nothing reads; data of any kind is refused."""
    model = model_of([node("MatMul", "a w", "y")], {"a": noise(1, 4), "w": noise(4, 3)}, [1, 4])
    del model.graph.input[:]
    onnx.save(model, tmp_path / "m.onnx")
    np.savez(tmp_path / "data.npz", x=noise(5, 4))
    with pytest.raises(ConfigError, match="the model has no inputs, so there is no data for it"):
        quantize(tmp_path / "m.onnx", Request(tmp_path / "data.npz"))
