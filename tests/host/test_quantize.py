"""From float to int8: what comes out is int8, close to float, and says how close."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tinyml import cli, harness
from tinyml.errors import ConfigError
from tinyml.ir import Array, DType
from tinyml.pipeline import Compiled, Options, compile_model
from tinyml.quantize.engine import Quantized, quantize
from tinyml.quantize.request import KEYS, Goal, Request

pytest.importorskip("onnxruntime", reason="the quantiser is onnxruntime's")
pytest.importorskip("sklearn", reason="the digits data come with scikit-learn")

SAMPLE = Path(__file__).parents[2] / "samples" / "digits"
FLOAT = SAMPLE / "model_float.onnx"


@cache
def digits() -> tuple[Array, Array, Array]:
    """Images as the model takes them, labels, and which are held back (never used to calibrate)."""
    from sklearn.datasets import load_digits

    data = load_digits()
    images = (data.images / 16).astype(np.float32)[:, np.newaxis]
    return images, data.target, np.arange(len(images)) % 5 == 0


@pytest.fixture(scope="module")
def calibration(tmp_path_factory: pytest.TempPathFactory) -> Path:
    images, labels, held_back = digits()
    path = tmp_path_factory.mktemp("data") / "calib.npz"
    np.savez(path, image=images[~held_back][:200], labels=labels[~held_back][:200])
    return path


@pytest.fixture(scope="module")
def quantized(calibration: Path) -> Quantized:
    return quantize(FLOAT, Request(calibration))


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results of other runs are not looked at, and ours do not stay."""
    monkeypatch.setattr("tinyml.quantize.cache.cache_folder", lambda: tmp_path / "cache")


def saved(result: Quantized, folder: Path) -> Path:
    onnx.save(result.model, folder / "int8.onnx")
    return folder / "int8.onnx"


def kinds(compiled: Compiled) -> list[tuple[str, str]]:
    return [(layer.op.kind, layer.output.dtype.value) for layer in compiled.graph.layers()]


def run_host(compiled: Compiled, images: Array) -> Array:
    (name,) = compiled.graph.inputs
    samples = [{name: image[np.newaxis]} for image in images]
    result = harness.run_files(compiled.files, "host", samples)
    return np.concatenate([next(iter(out.values())).reshape(1, -1) for out in result.outputs])


def test_digits_lose_less_than_half_a_point(quantized: Quantized, tmp_path: Path) -> None:
    """As compiled C on images that were used neither to train nor to calibrate."""
    images, labels, held_back = digits()
    accuracy = []
    for model in (FLOAT, saved(quantized, tmp_path)):
        found = run_host(compile_model(model, Options("digits", "host")), images[held_back])
        accuracy.append(100 * float(np.mean(found.argmax(axis=1) == labels[held_back])))
    assert accuracy[0] > 97
    assert accuracy[0] - accuracy[1] <= 0.5


def test_every_layer_of_digits_is_int8(quantized: Quantized, tmp_path: Path) -> None:
    compiled = compile_model(saved(quantized, tmp_path), Options("digits", "cortex-m3"))
    found = kinds(compiled)
    assert found[0] == ("Quantize", "int8")
    assert found[-1] == ("Dequantize", "float32")
    assert {dtype for _, dtype in found[:-1]} == {"int8"}
    assert [kind for kind, _ in found if kind in ("Conv", "Dense")] == ["Conv", "Conv", "Dense"]
    assert all(layer.int8 for layer in quantized.report.layers)


def test_scheme_is_what_cmsis_nn_runs(quantized: Quantized, tmp_path: Path) -> None:
    """Weights int8 per channel around zero, biases int32, activations with a zero point."""
    compiled = compile_model(saved(quantized, tmp_path), Options("digits", "cortex-m3"))
    for layer in compiled.graph.layers():
        if layer.op.kind not in ("Conv", "Dense"):
            continue
        weights, bias = layer.input(1), layer.input(2)
        assert weights.quant is not None
        assert weights.dtype is DType.INT8
        assert len(weights.quant.scales) == weights.shape[0]
        assert set(weights.quant.zero_points) == {0}
        assert bias.dtype is DType.INT32
        assert layer.output.quant is not None
        assert not layer.output.quant.per_channel


def test_report_measures_what_it_says(quantized: Quantized) -> None:
    """The end-to-end figure again, computed here from the two models' answers."""
    import onnxruntime

    images, _, held_back = digits()
    seen = images[~held_back][:200]
    answers = []
    for content in (FLOAT.read_bytes(), quantized.model.SerializeToString()):
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        answers.append(np.concatenate([session.run(None, {"image": i[np.newaxis]})[0] for i in seen]))
    noise = np.square(answers[1].astype(np.float64) - answers[0]).sum()
    decibels = 10 * np.log10(np.square(answers[0].astype(np.float64)).sum() / noise)
    report = quantized.report
    assert report.decibels == pytest.approx(decibels, abs=1e-3)
    assert report.decibels > 35
    assert report.samples == 200
    assert report.accuracy_float == 1.0  # these were trained on
    assert report.agreement == np.mean(answers[0].argmax(axis=1) == answers[1].argmax(axis=1))
    assert report.methods[report.method] == max(report.methods.values())
    assert set(report.methods) == {"minmax", "entropy", "percentile"}
    assert report.int8_bytes < report.float_bytes / 3


def test_report_survives_json(quantized: Quantized) -> None:
    from tinyml.quantize.report import Report

    again = Report.from_json(json.loads(json.dumps(quantized.report.as_json())))
    assert again.as_json() == quantized.report.as_json()
    assert again.headline() == quantized.report.headline()


def test_int8_interface_computes_the_same(quantized: Quantized, calibration: Path, tmp_path: Path) -> None:
    images, _, held_back = digits()
    inner = quantize(FLOAT, Request(calibration, method=quantized.report.method, io="int8"))
    compiled = compile_model(saved(inner, tmp_path), Options("digits", "host"))
    x, y = (compiled.graph.tensors[names[0]] for names in (compiled.graph.inputs, compiled.graph.outputs))
    assert (x.dtype, y.dtype) == (DType.INT8, DType.INT8)
    assert x.quant is not None
    assert y.quant is not None
    stored = np.clip(
        np.rint(images[held_back][:16] / np.float32(x.quant.scale)) + x.quant.zero_point, -128, 127
    )
    found = run_host(compiled, stored.astype(np.int8)).astype(np.float32)
    real = (found - y.quant.zero_point) * np.float32(y.quant.scale)
    float_io = compile_model(saved(quantized, tmp_path), Options("digits", "host"))
    np.testing.assert_allclose(real, run_host(float_io, images[held_back][:16]), atol=1e-5)


def test_kept_layers_stay_float_with_their_activation(calibration: Path, tmp_path: Path) -> None:
    result = quantize(FLOAT, Request(calibration, method="minmax", keep_float=("conv1",)))
    assert result.report.kept_float == ("conv1",)
    compiled = compile_model(saved(result, tmp_path), Options("digits", "host"))
    convolutions = [layer for layer in compiled.graph.layers() if layer.op.kind == "Conv"]
    assert [layer.output.dtype for layer in convolutions] == [DType.FLOAT32, DType.INT8]
    images, labels, held_back = digits()
    found = run_host(compiled, images[held_back][:100]).argmax(axis=1)
    assert np.mean(found == labels[held_back][:100]) > 0.95


def test_unknown_layer_is_refused_with_a_suggestion(calibration: Path) -> None:
    with pytest.raises(ConfigError, match=r"no layer called 'conv9'.*\n.*did you mean conv"):
        quantize(FLOAT, Request(calibration, method="minmax", keep_float=("conv9",)))


def test_auto_keeps_just_enough(calibration: Path) -> None:
    """A goal above what int8 gives costs layers; each of them is needed."""
    plain = quantize(FLOAT, Request(calibration, method="minmax", samples=64))
    goal = Goal(decibels=plain.report.decibels + 2)
    request = Request(calibration, method="minmax", samples=64, auto=goal)
    result = quantize(FLOAT, request)
    kept = result.report.kept_float
    assert result.report.decibels >= plain.report.decibels + 2
    assert 0 < len(kept) < len(result.report.layers)
    for index in range(len(kept)):
        fewer = replace(request, auto=None, keep_float=kept[:index] + kept[index + 1 :])
        assert quantize(FLOAT, fewer).report.decibels < plain.report.decibels + 2


def test_auto_keeps_nothing_where_int8_is_good_enough(calibration: Path) -> None:
    result = quantize(FLOAT, Request(calibration, method="minmax", samples=64, auto=Goal(points=0.5)))
    assert result.report.kept_float == ()


# Small models: one trait each.


def model_of(
    nodes: list[onnx.NodeProto], constants: dict[str, Array], shape: list[int | str], opset: int = 17
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def quantize_small(
    model: onnx.ModelProto,
    folder: Path,
    shape: tuple[int, ...],
    change: Callable[[Request], Request] = lambda r: r,
) -> Quantized:
    onnx.save(model, folder / "small.onnx")
    np.save(folder / "calib.npy", np.random.default_rng(1).uniform(-1, 1, (32, *shape)).astype(np.float32))
    return quantize(folder / "small.onnx", change(Request(folder / "calib.npy", method="minmax")))


WEIGHTS = np.random.default_rng(2).normal(0, 0.3, (4, 3, 3, 3)).astype(np.float32)
CONV = helper.make_node("Conv", ["x", "w"], ["c"], "conv", pads=[1, 1, 1, 1])


def node(op_type: str, inputs: str, output: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op_type, inputs.split(), [output], **attributes)


BEHIND: dict[str, list[onnx.NodeProto]] = {
    "Sigmoid": [node("Sigmoid", "c", "y")],
    "Tanh": [node("Tanh", "c", "y")],
    "HardSwish": [node("HardSwish", "c", "y")],
    "LeakyRelu": [node("LeakyRelu", "c", "y", alpha=0.1)],
    "Clip": [node("Clip", "c zero one", "y")],
    "Add": [node("Relu", "c", "r"), node("Add", "c r", "y")],
    "Mul": [node("Sigmoid", "c", "r"), node("Mul", "c r", "y")],
    "Concat": [node("Sigmoid", "c", "r"), node("Concat", "c r", "y", axis=1)],
    "MaxPool": [node("MaxPool", "c", "p", kernel_shape=[2, 2]), node("Relu", "p", "y")],
    "AveragePool": [node("AveragePool", "c", "y", kernel_shape=[2, 2])],
    "GlobalAveragePool": [node("GlobalAveragePool", "c", "y")],
    "Pad": [node("Pad", "c pads", "y")],
    "Slice": [node("Slice", "c starts ends", "y")],
    "Softmax": [node("Flatten", "c", "f"), node("Softmax", "f", "y")],
    "MatMul": [node("Flatten", "c", "f"), node("MatMul", "f matrix", "y")],
}
OPERANDS: dict[str, Array] = {
    "zero": np.asarray(0, np.float32),
    "one": np.asarray(1, np.float32),
    "pads": np.asarray([0, 0, 1, 1, 0, 0, 1, 1]),
    "starts": np.asarray([0, 0, 1, 1]),
    "ends": np.asarray([1, 2, 3, 3]),
    "matrix": np.random.default_rng(4).normal(0, 0.2, (100, 3)).astype(np.float32),
}


@pytest.mark.parametrize("name", BEHIND)
def test_operator_becomes_integer(name: str, tmp_path: Path) -> None:
    """Each of these behind a convolution: nothing but the borders of the model is float."""
    used = {word for item in BEHIND[name] for word in item.input}
    constants = {"w": WEIGHTS, **{word: value for word, value in OPERANDS.items() if word in used}}
    model = model_of([CONV, *BEHIND[name]], constants, [1, 3, 5, 5])
    result = quantize_small(model, tmp_path, (3, 5, 5))
    compiled = compile_model(saved(result, tmp_path), Options("small", "cortex-m3"))
    floats = [
        layer.op.kind
        for layer in compiled.graph.layers()
        if layer.op.kind not in ("Quantize", "Dequantize") and layer.output.dtype.is_float
        and layer.op.kind not in ("Reshape", "Transpose")  # of the float output, at the very end
    ]  # fmt: skip
    assert floats == []
    assert result.report.decibels > 20


def test_layers_without_an_integer_form_stay_float(tmp_path: Path) -> None:
    """Quantising them would cost precision and save nothing."""
    nodes = [
        CONV,
        helper.make_node("LpNormalization", ["c"], ["n"], "norm", axis=1),
        helper.make_node("Sin", ["n"], ["y"], "sin"),
    ]
    result = quantize_small(model_of(nodes, {"w": WEIGHTS}, [1, 3, 5, 5]), tmp_path, (3, 5, 5))
    assert {layer.name: layer.int8 for layer in result.report.layers} == {"conv": True}
    compile_model(saved(result, tmp_path), Options("small", "cortex-m3"))


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


def test_batch_normalisation_goes_into_the_weights(tmp_path: Path) -> None:
    ones = np.ones(4, np.float32)
    nodes = [CONV, helper.make_node("BatchNormalization", ["c", "g", "o", "m", "v"], ["y"], "bn")]
    constants: dict[str, Array] = {"w": WEIGHTS, "g": ones * 2, "o": ones, "m": ones / 2, "v": ones * 3}
    result = quantize_small(model_of(nodes, constants, [1, 3, 5, 5]), tmp_path, (3, 5, 5))
    assert [layer.op_type for layer in result.report.layers] == ["Conv"]
    assert result.report.decibels > 35


def test_noisy_layer_is_warned_about(tmp_path: Path) -> None:
    """One huge channel takes the range: the others drown, and the report says where and what to do."""
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
    assert "--keep-float balance" in advice


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


def test_models_that_are_int8_already_are_refused(calibration: Path) -> None:
    with pytest.raises(ConfigError, match="is quantised already"):
        quantize(SAMPLE / "model.onnx", Request(calibration))


# Inside other commands.


def test_compile_quantises_once(
    calibration: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The result is kept by content: the second build does not calibrate, new data do."""
    calls = []

    def counted(*arguments: object, **named: object) -> Quantized:
        calls.append(arguments)
        return quantize(*arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr("tinyml.quantize.cache.quantize", counted)
    data = tmp_path / "calib.npz"
    data.write_bytes(calibration.read_bytes())
    command = [
        "compile",
        str(FLOAT),
        "-o",
        str(tmp_path / "out"),
        "--name",
        "digits",
        "--quantize",
        str(data),
    ]
    command += ["--quantize", "method=minmax", "--depfile", str(tmp_path / "out.d")]
    assert cli.main(command) == 0
    assert "digits: int8:" in capsys.readouterr().out
    first = (tmp_path / "out" / "digits.c").read_text()
    assert "int8 calibrated on calib.npz" in first
    assert str(data) in (tmp_path / "out.d").read_text()
    assert cli.main(command) == 0
    assert len(calls) == 1
    assert (tmp_path / "out" / "digits.c").read_text() == first
    images, _, held_back = digits()
    np.savez(data, image=images[held_back][:50])
    assert cli.main(command) == 0
    assert len(calls) == 2


def test_verb_prints_and_saves(calibration: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, report = tmp_path / "int8.onnx", tmp_path / "report.json"
    arguments = ["--calibration", str(calibration), "-o", str(model), "--report", str(report)]
    assert cli.main(["quantize", str(FLOAT), *arguments, "--method", "minmax", "--io", "int8"]) == 0
    said = capsys.readouterr().out
    assert "accuracy 100.00 % ->" in said
    assert "conv2" in said
    assert json.loads(report.read_text())["method"] == "minmax"
    assert onnx.load(model).graph.input[0].type.tensor_type.elem_type == TensorProto.INT8


@pytest.mark.parametrize(
    "change,message",
    [
        (["--calibration", "nothing.npz"], "there is no calibration data nothing.npz"),
        (["-o", "int8.tflite"], "is not called so"),
        (["--range", "1"], "is not a range"),
    ],
)
def test_verb_refuses_in_words(
    change: list[str], message: str, calibration: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    arguments = ["quantize", str(FLOAT), "--calibration", str(calibration), "-o", "int8.onnx", *change]
    assert cli.main(arguments) == 1
    assert message in capsys.readouterr().err
    assert list(tmp_path.glob("int8*")) == []


def test_add_writes_the_manifest(
    calibration: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from tinyml.app import cmake, manifest

    app = tmp_path / "app"
    (app / "src").mkdir(parents=True)
    (app / "CMakeLists.txt").write_text(
        "find_package(Zephyr REQUIRED HINTS $ENV{ZEPHYR_BASE})\nproject(app)\n"
    )
    monkeypatch.chdir(app)
    options = ["--quantize", str(calibration), "--quantize", "io=int8", "--quantize", "method=minmax"]
    assert cli.main(["add", str(FLOAT), "--name", "digits", *options]) == 0
    assert "int8:" in capsys.readouterr().out
    (entry,) = manifest.load(app / "tinyml.yaml").models
    assert entry.quantize == {"calibration": "models/calib.npz", "io": "int8", "method": "minmax"}
    assert (app / "models" / "calib.npz").read_bytes() == calibration.read_bytes()
    call = cmake.calls(app / "tinyml.yaml")
    assert f"[=[calibration={(app / 'models' / 'calib.npz').as_posix()}]=]" in call


@pytest.mark.parametrize(
    "text,message",
    [
        ("quantize: {io: int8}", "lacks 'calibration'"),
        ("quantize: {calibration: /abs/c.npz}", "absolute path"),
        ("quantize: {calibration: c.npz, methods: x}", "did you mean 'method'"),
        ("quantize: {calibration: c.npz, method: x}", "no calibration method 'x'"),
        ("quantize: [c.npz]", "must name calibration data"),
    ],
)
def test_manifest_refuses_in_words(text: str, message: str) -> None:
    from tinyml.app import manifest

    with pytest.raises(ConfigError) as refusal:
        manifest.parse(f"models:\n  - name: kws\n    file: kws.onnx\n    {text}\n", "tinyml.yaml")
    assert message in str(refusal.value)
    assert "tinyml.yaml: model 1" in str(refusal.value)


def test_platformio_option(tmp_path: Path) -> None:
    from tinyml.package import platformio

    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "a.onnx").touch()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "calib.npz").touch()
    options = {"custom_tinyml_quantize": "\ndata/calib.npz\nio=int8"}
    (model,) = platformio.read_models(tmp_path, options, platformio.Board(), "portable")
    assert model.quantize == Request(tmp_path / "data" / "calib.npz", io="int8")
    (plain,) = platformio.read_models(tmp_path, {}, platformio.Board(), "portable")
    assert plain.key("x") != model.key("x")


# The guide, as written.

GUIDE = (Path(__file__).parents[2] / "docs" / "quantize.md").read_text(encoding="utf-8")


def snippet(name: str) -> str:
    """The code behind the mark ``<!-- tested: name -->``."""
    found = re.search(rf"<!-- tested: {name} -->\n```\w+\n(.*?)```", GUIDE, re.DOTALL)
    assert found, f"the guide has no tested code called {name}"
    return found[1]


def test_guide_works_as_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "CMakeLists.txt").write_text("find_package(Zephyr REQUIRED HINTS $ENV{ZEPHYR_BASE})\n")
    (tmp_path / "src").mkdir()
    (tmp_path / "model.onnx").write_bytes(FLOAT.read_bytes())
    monkeypatch.chdir(tmp_path)
    exec(snippet("calibration"), {})
    program, *arguments = snippet("quantize").split()
    assert program == "tinyml"
    assert cli.main(arguments) == 0
    said = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    shown = re.search(r"```\n(layer .*?)```", GUIDE, re.DOTALL)
    assert shown
    for line in shown[1].splitlines():  # figures may differ in the last digit on another machine
        words = re.sub(r"[\d.,]+", "#", " ".join(line.split()))
        assert words in [re.sub(r"[\d.,]+", "#", other) for other in said], line
    assert (tmp_path / "model_int8.onnx").is_file()
    assert snippet("add").split()[:2] == ["west", "tinyml"]
    assert cli.main(snippet("add").split()[2:]) == 0
    shown = re.search(r"```yaml\n(.*?)```", GUIDE, re.DOTALL)
    assert shown
    assert (tmp_path / "tinyml.yaml").read_text().endswith(shown[1])


def test_guide_lists_every_key() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]*) \|$", GUIDE, re.MULTILINE))
    assert {key: rows.get(key) for key in KEYS} == KEYS
