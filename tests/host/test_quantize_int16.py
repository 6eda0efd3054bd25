# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""int16 activations where int8 is too coarse: better numbers, the same integers in numpy and in C."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.support import spikes
from tests.support.interpret import interpret
from tests.support.quantizing import kinds, saved
from tests.support.small_models import AFTER, CONV, WEIGHTS, after_conv, model_of, quantize_small
from tinyml import harness
from tinyml.base.errors import ConfigError
from tinyml.ir import Array, DType, Graph, Node, Quant, Tensor, TensorType
from tinyml.ops.elementwise.int16_table import LARGEST_ERROR
from tinyml.ops.elementwise.unary import Unary
from tinyml.ops.framework.fixed_point import multiply_int64_by_quantized_multiplier_once, quantize_multiplier
from tinyml.pipeline import Compiled, Options, compile_model
from tinyml.quantize.cheapest import ALIKE
from tinyml.quantize.engine import Quantized, quantize
from tinyml.quantize.measure import Noise
from tinyml.quantize.report import Report
from tinyml.reference.session import Session
from tinyml.settings.quantize_request import Goal
from tinyml.verbs import cli

pytest.importorskip("onnxruntime", reason="the quantiser is onnxruntime's")


def compiled(result: Quantized, folder: Path) -> Compiled:
    return compile_model(saved(result, folder), Options("wide", "host"))


def as_c(model: Compiled, images: Array) -> Array:
    (name,) = model.graph.inputs
    outputs = harness.run_files(model.files, "host", [{name: image[np.newaxis]} for image in images]).outputs
    return np.stack([next(iter(out.values())).reshape(-1) for out in outputs])


def in_numpy(model: Compiled, images: Array) -> Array:
    (name,) = model.graph.inputs
    answers = [interpret(model.graph, {name: image[np.newaxis]}) for image in images]
    return np.stack([next(iter(out.values())).reshape(-1) for out in answers])


def decibels(wanted: Array, found: Array) -> float:
    noise = Noise()
    noise.add(wanted, found)
    return noise.decibels


def test_int16_resolves_what_int8_loses(tmp_path: Path) -> None:
    """20 dB more at the outputs, as C; the weak layer and its neighbour are int16, the others int8."""
    path, request = spikes.write(tmp_path)
    images = spikes.inputs()[:16]
    in_float = np.concatenate([Session(onnx.load(path)).run({"x": image[None]})["y"] for image in images])
    narrow = quantize(path, request)
    wide = quantize(path, replace(request, int16=(spikes.WEAK,)))
    models = [compiled(result, tmp_path) for result in (narrow, wide)]
    found = [as_c(model, images) for model in models]
    assert decibels(in_float, found[0]) < 15
    assert decibels(in_float, found[1]) > 35
    np.testing.assert_array_equal(found[1], in_numpy(models[1], images))
    assert [(layer.name, layer.kind) for layer in wide.report.layers] == [
        ("gain", "int16"),
        ("pool", "int16"),
        ("conv2", "int16"),
        ("conv3", "int8"),
        ("flat", "int8"),
        ("dense", "int8"),
    ]
    layers = [kind for kind in kinds(models[1]) if kind[0] != "Reshape"]
    assert layers == [
        ("Quantize", "int16"),
        ("Conv", "int16"),
        ("MaxPool", "int16"),
        ("Conv", "int16"),
        ("Requantize", "int8"),
        ("DepthwiseConv", "int8"),
        ("Dense", "int8"),
        ("Dequantize", "float32"),
    ]
    first = next(layer for layer in models[1].graph.layers() if layer.op.kind == "Conv")
    assert (first.input(1).dtype, first.input(2).dtype) == (DType.INT8, DType.INT64)


def test_warning_offers_int16(tmp_path: Path) -> None:
    path, request = spikes.write(tmp_path)
    advice = "\n".join(quantize(path, request).report.advice())
    assert re.search(
        rf"--int16 {spikes.WEAK} gives 3\d\.\d dB at the outputs, --keep-float {spikes.WEAK} gives", advice
    )


def price_of(report: Report) -> int:
    """Instructions of the way that was taken."""
    return next(choice.instructions or 0 for choice in report.choices if choice.taken)


@pytest.mark.parametrize("core, int16", [("cortex-m3", (spikes.WEAK,)), ("cortex-m4", ())])
def test_auto_takes_what_is_cheaper_on_the_core(core: str, int16: tuple[str, ...], tmp_path: Path) -> None:
    """With an FPU, a layer in float takes fewer instructions than on int16; without one, many more."""
    path, request = spikes.write(tmp_path)
    report = quantize(path, replace(request, auto=Goal(decibels=30), core=core)).report
    assert (report.int16, report.kept_float) == (int16, () if int16 else (spikes.WEAK,))
    assert report.decibels >= 30
    prices = [choice.instructions or 0 for choice in report.choices]
    assert len(prices) > 2
    assert all(prices)
    assert 0 < price_of(report) <= ALIKE * min(prices)
    assert sum(choice.taken for choice in report.choices) == 1
    assert {"int16 in the fewest layers", "float everywhere"} <= {choice.name for choice in report.choices}
    assert all(choice.decibels >= 30 for choice in report.choices)


def test_auto_takes_float_where_int16_is_not_enough(tmp_path: Path) -> None:
    """Weights are int8 all the same; only float gets rid of their noise."""
    path, request = spikes.write(tmp_path)
    report = quantize(path, replace(request, auto=Goal(decibels=48), core="cortex-m3")).report
    assert report.kept_float
    assert report.decibels >= 48
    assert price_of(report) <= ALIKE * min(choice.instructions or 0 for choice in report.choices)
    wide = quantize(path, replace(request, int16=report.kept_float)).report
    assert wide.decibels < 48


def test_int16_interface(tmp_path: Path) -> None:
    """An input next to an int16 layer is int16, and an output next to an int8 layer is int8."""
    path, request = spikes.write(tmp_path)
    result = quantize(path, replace(request, int16=(spikes.WEAK,), io="int8"))
    graph = compiled(result, tmp_path).graph
    assert graph.tensors[graph.inputs[0]].dtype is DType.INT16
    assert graph.tensors[graph.outputs[0]].dtype is DType.INT8


def test_inline_and_verified(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Quantised while it is compiled; and what comes out is what onnxruntime computes on int16."""
    path, request = spikes.write(tmp_path)
    everything = replace(request, int16=("gain", "conv2", "conv3", "dense"))
    inline = compile_model(path, Options("wide", "host", quantize=everything))
    assert {dtype for _, dtype in kinds(inline)} == {"int16", "float32"}
    saved(quantize(path, everything), tmp_path)
    assert cli.main(["verify", str(tmp_path / "int8.onnx")]) == 0
    assert "agrees on host" in capsys.readouterr().out


def test_rounding_once_is_exact() -> None:
    """Against arithmetic without limits, over all magnitudes that sums and factors have."""
    random = np.random.default_rng(5)
    sums = random.integers(-(2**46), 2**46, 2000) >> random.integers(0, 40, 2000)
    for factor in (1.7e-9, 3.1e-5, 0.4999, 0.9999999, 3.75):
        multiplier, shift = quantize_multiplier(factor)
        found = multiply_int64_by_quantized_multiplier_once(sums, multiplier, shift)
        exponent = 31 - shift
        wanted = [(int(x) * multiplier + (1 << (exponent - 1))) >> exponent for x in sums]
        assert found.tolist() == wanted


@pytest.mark.parametrize("name", ["Sigmoid", "Tanh", "LeakyRelu"])
def test_activations_have_an_int16_form(name: str, tmp_path: Path) -> None:
    model = model_of([CONV, *AFTER[name]], {"w": WEIGHTS}, [1, 3, 5, 5])
    wide = quantize_small(model, tmp_path, (3, 5, 5), lambda request: replace(request, int16=("y",)))
    assert [layer.kind for layer in wide.report.layers] == ["int16", "int16"]
    layers = [kind for kind in kinds(compiled(wide, tmp_path)) if kind[0].endswith("Int16")]
    assert layers == [("LeakyInt16" if name == "LeakyRelu" else "SigmoidInt16", "int16")]


EVERY_INT16 = np.arange(-32768, 32768).astype(np.int16)


def on_int16(function: str, parameters: tuple[float, ...], x_scale: float, y_scale: float) -> Array | None:
    """How far the int16 form is off for each of all inputs; None where there is no such form."""
    op = Unary(function, parameters)
    x, y = (
        Tensor.of(name, TensorType(EVERY_INT16.shape, DType.INT16, Quant.per_tensor(scale, 0)))
        for name, scale in (("x", x_scale), ("y", y_scale))
    )
    form = op.quantized([x], [y])
    if form is None:
        return None
    node = Node("f", form[0], ("x",), ("y",))
    layer = Graph("f", {"x": x, "y": y}, (node,), ("x",), ("y",)).layer(node)
    (found,) = form[0].evaluate(layer, [EVERY_INT16])
    real = op.real(EVERY_INT16.astype(np.float32) * np.float32(x_scale)).astype(np.float64)
    return np.abs(found - np.clip(np.rint(real / y_scale), -32768, 32767))


@pytest.mark.parametrize("x_scale", [1e-5, 1e-4, 2.0**-12, 1e-3, 0.01])
@pytest.mark.parametrize(
    "function,parameters,y_scale,steps",
    [
        ("sigmoid", (), 2.0**-15, 1),
        ("tanh", (), 2.0**-15, 3),
        ("leaky_relu", (0.1,), 0.01, 1),
        ("hard_sigmoid", (0.2, 0.5), 2.0**-15, 1),
        ("abs", (), 0.0007, 1),
        ("neg", (), 0.0007, 1),
        ("softplus", (), 0.01, LARGEST_ERROR),
    ],
)
def test_functions_of_int16_stay_within_steps(
    function: str, parameters: tuple[float, ...], y_scale: float, steps: int, x_scale: float
) -> None:
    error = on_int16(function, parameters, x_scale, y_scale)
    assert error is not None
    assert error.max() <= steps


def test_a_table_that_is_too_coarse_is_rejected() -> None:
    """The same function: fine over a narrow range, with too few places over a wide one."""
    assert on_int16("erf", (), 1e-4, 1 / 32768) is not None
    assert on_int16("erf", (), 0.01, 1 / 32768) is None


@pytest.mark.tenth
@pytest.mark.parametrize("name", AFTER)
def test_any_operator_after_an_int16_layer(name: str, tmp_path: Path) -> None:
    """On int16 if it has such a form, on int8 if not, never on float; C and numpy agree bit for bit."""
    model = after_conv(name)
    narrow = quantize_small(model, tmp_path, (3, 5, 5))
    wide = quantize_small(model, tmp_path, (3, 5, 5), lambda request: replace(request, int16=("conv",)))
    built = compiled(wide, tmp_path)
    borders = ("Quantize", "Dequantize", "Reshape", "Transpose")
    assert [kind for kind in kinds(built) if kind[0] not in borders and kind[1] == "float32"] == []
    assert ("Conv", "int16") in kinds(built)
    assert wide.report.decibels > narrow.report.decibels - 0.5
    images = np.random.default_rng(9).uniform(-1, 1, (4, 3, 5, 5)).astype(np.float32)
    np.testing.assert_array_equal(as_c(built, images), in_numpy(built, images))
    onnx_answers = [Session(wide.model).run({"x": image[None]})["y"].reshape(-1) for image in images]
    assert decibels(np.stack(onnx_answers), as_c(built, images)) > 35


def test_layer_without_an_int16_form_is_refused(tmp_path: Path) -> None:
    """A square root begins too steep for straight lines between fixed places."""
    steep = [helper.make_node("Abs", ["c"], ["a"]), helper.make_node("Sqrt", ["a"], ["y"], "root")]
    model = model_of([CONV, *steep], {"w": WEIGHTS}, [1, 3, 5, 5])
    with pytest.raises(ConfigError, match=r"layer root \(Sqrt\) cannot be computed on int16"):
        quantize_small(model, tmp_path, (3, 5, 5), lambda request: replace(request, int16=("y",)))
