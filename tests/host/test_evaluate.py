# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`tinyml evaluate` and ``tinyml.evaluate``: figures on the digits, and every kind of label."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

pytest.importorskip("onnxruntime", reason="it is the original's runtime")
pytest.importorskip("sklearn", reason="the digits data come with scikit-learn")

import tinyml
from tests.support.quantizing import FLOAT, digits
from tests.support.tflite_writer import Call, Part, Value, write
from tinyml.api.evaluated import Question, measure
from tinyml.compare.accuracy import truth
from tinyml.compare.accuracy.scores import classify, regress
from tinyml.harness import Runner
from tinyml.harness.run import Result
from tinyml.ir import Quant
from tinyml.quantize.report import LayerNoise, Report
from tinyml.settings.evaluation import accuracy_of
from tinyml.settings.quantize_request import Request
from tinyml.verbs import cli
from tinyml.verbs.evaluate import EXIT_TOO_LOW

INT8 = FLOAT.parent / "model.onnx"
ACCURACY = 355 / 360  # of both models, as the sample's README states


@pytest.fixture(scope="module")
def held_back(tmp_path_factory: pytest.TempPathFactory) -> Path:
    images, labels, chosen = digits()
    path = tmp_path_factory.mktemp("data") / "test.npz"
    np.savez(path, image=images[chosen], labels=labels[chosen])
    return path


@pytest.mark.parametrize("model", [INT8, FLOAT], ids=["int8", "float"])
def test_digits(model: Path, held_back: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "figures.json"
    words = ["evaluate", str(model), "--data", str(held_back), "--json", str(file), "--against", str(FLOAT)]
    assert cli.main([*words, "--min-accuracy", "98.6"]) == 0
    printed = capsys.readouterr().out
    assert "accuracy 98.61 % (355 of 360 samples)" in printed
    assert "decisions differ from model_float.onnx in onnxruntime" in printed
    figures = json.loads(file.read_text())
    assert figures["classification"]["accuracy"] == ACCURACY
    confusion = np.asarray(figures["classification"]["confusion"])
    assert (confusion.shape, confusion.sum(), confusion.trace()) == ((10, 10), 360, 355)
    assert figures["original"]["accuracy"] == ACCURACY
    (output,) = figures["original"]["outputs"]
    assert output["snr_db"] > (100 if model == FLOAT else 25)
    if model == FLOAT:
        assert figures["original"]["changed"] == 0


def test_too_low_is_an_exit_code(held_back: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A share, as in tinyml.yaml, or per cent: 0.99 must not pass as 0.99 %."""
    words = ["evaluate", str(INT8), "--data", str(held_back), "--min-accuracy"]
    assert cli.main([*words, "0.99"]) == EXIT_TOO_LOW
    assert "less than 99 %" in capsys.readouterr().out
    assert cli.main([*words, "101"]) == 1
    assert "--min-accuracy: '101' is not an accuracy" in capsys.readouterr().err


def test_accuracies() -> None:
    assert [accuracy_of(text) for text in (0.95, "95%", "95", "95.0 %", 1, ".5")] == [0.95] * 4 + [1, 0.5]


def test_labels_in_every_form() -> None:
    images, labels, chosen = digits()
    images, labels = images[chosen][:40], labels[chosen][:40]
    names = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
    compiled = tinyml.compile(INT8, target="host")
    plain = tinyml.evaluate(compiled, images, labels, classes=names)
    assert plain.accuracy is not None
    assert plain.accuracy > 0.9
    assert plain == tinyml.evaluate(compiled, images, np.asarray(names)[labels], classes=names)
    assert plain == tinyml.evaluate(compiled, images, np.eye(10)[labels], classes=names)
    assert "seven" in plain._repr_html_()
    unlabelled = tinyml.evaluate(compiled, images)
    assert unlabelled.classification is None
    assert unlabelled.original is not None
    assert unlabelled.original.changed == 0
    raw = tinyml.evaluate(compiled, images, task="raw")
    assert raw.original is not None
    assert raw.original.changed is None


def test_csv_with_names(tmp_path: Path) -> None:
    images, labels, _ = digits()
    lines = [
        ",".join([f"digit{label}", *map(str, image.reshape(-1).tolist())])
        for image, label in zip(images[:20], labels[:20], strict=True)
    ]
    header = ",".join(["label", *(f"pixel{n}" for n in range(64))])
    (tmp_path / "test.csv").write_text("\n".join([header, *lines]))
    (tmp_path / "names.txt").write_text("\n".join(f"digit{n}" for n in range(10)))
    words = ["evaluate", str(INT8), "--data", str(tmp_path / "test.csv"), "--classes"]
    assert cli.main([*words, str(tmp_path / "names.txt"), "--min-accuracy", "90"]) == 0
    assert cli.main([*words, "yes,no"]) == 1


def test_folder_of_images_and_the_order_of_classes(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="Pillow reads images")
    images, labels, chosen = digits()
    for number, (pixels, label) in enumerate(zip(images[chosen][:40], labels[chosen][:40], strict=True)):
        folder = tmp_path / f"{'jihgfedcba'[label]}"  # alphabetical order is not the order of the outputs
        folder.mkdir(exist_ok=True)
        image.fromarray(np.rint(pixels[0] * 255).astype(np.uint8)).save(folder / f"{number}.png")
    compiled = tinyml.compile(INT8, target="host")
    right = tinyml.evaluate(compiled, tmp_path, classes=tuple("jihgfedcba"))
    assert right.accuracy is not None
    assert right.accuracy > 0.9
    alphabetical = tinyml.evaluate(compiled, tmp_path)
    assert alphabetical.accuracy is not None
    assert alphabetical.accuracy < 0.5


def linear(weights: Any) -> onnx.ModelProto:
    """x @ weights."""
    array = np.asarray(weights, np.float32)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, array.shape[0]])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, array.shape[1]])
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "linear",
        [x],
        [y],
        [numpy_helper.from_array(array, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_regression() -> None:
    x = np.linspace(0, 1, 60, dtype=np.float32).reshape(20, 3)
    labels = x @ np.asarray([[1], [2], [3]], np.float32) + 0.25
    found = tinyml.evaluate(linear([[1], [2], [3]]), x, labels)
    assert found.task == "values"
    assert found.regression is not None
    assert found.regression.mae == pytest.approx(0.25, abs=1e-5)
    assert found.regression.r2 is not None
    assert 0 < found.regression.r2 < 1
    assert "mean absolute error 0.25" in "\n".join(found.headline())


def test_scikit_learn_with_names() -> None:
    pytest.importorskip("skl2onnx", reason="skl2onnx exports the estimators")
    from sklearn import datasets, ensemble

    data = datasets.load_iris()
    x, names = data.data.astype(np.float32)[::3], data.target_names[data.target][::3]
    estimator = ensemble.RandomForestClassifier(n_estimators=4, max_depth=3, random_state=0).fit(x, names)
    found = tinyml.evaluate(estimator, x, names)  # the model has the names of its classes
    assert found.accuracy == estimator.score(x, names)
    assert found.original is not None
    assert found.original.changed == 0


@pytest.mark.parametrize(
    "change,message",
    [
        ({"data": "nothing.npz"}, "there is no data nothing.npz"),
        ({"labels": np.zeros(3)}, "has 3 labels for 20 samples"),
        ({"labels": np.full(20, "cat")}, "labels are names.*classes gives"),
        ({"labels": np.full(20, "cat"), "classes": ("dog",)}, "no class is called 'cat'"),
        ({"labels": np.zeros((20, 2)), "task": "values"}, "2 labels; the model predicts 10 values"),
        ({"output": "nothing"}, "no output 'nothing'"),
        ({"against": linear([[1], [2]])}, "compare models that take and return"),
        ({"task": "guess"}, "unknown task 'guess'"),
    ],
)
def test_mistakes(change: dict[str, Any], message: str) -> None:
    with pytest.raises(tinyml.ConfigError, match=f"(?s){message}"):
        tinyml.evaluate(**{"model": INT8, "data": digits()[0][:20], **change})


def test_scores() -> None:
    found = classify(np.asarray([0, 1, 1, 2]), np.asarray([0, 1, 2, 2]), ("a", "b", "c", "d"))
    assert found.accuracy == 0.75
    assert found.confusion == ((1, 0, 0, 0), (0, 1, 0, 0), (0, 1, 1, 0), (0, 0, 0, 0))
    assert [(s.name, s.samples, s.recall, s.precision) for s in found.classes] == [
        ("a", 1, 1.0, 1.0),
        ("b", 1, 1.0, 0.5),
        ("c", 2, 0.5, 1.0),
        ("d", 0, None, None),
    ]
    assert regress(np.ones((4, 1)), np.ones((4, 1))).r2 is None
    assert classify(np.asarray([7]), np.asarray([-1])).classes[0].name == "-1"


@pytest.mark.parametrize(
    "labels,width,task",
    [
        (np.asarray([0, 1]), 1, "classes"),
        (np.asarray([0, 5]), 1, "values"),
        (np.asarray([0.5, 1]), 1, "values"),
        (np.asarray([0.0, 2.0]), 3, "classes"),
        (np.asarray([0, 3]), 3, "classes"),
        (np.asarray([[0.1, 0.2, 0.3], [0, 0, 1]]), 3, "values"),
        (np.asarray([[0, 1, 0], [0, 0, 1]]), 3, "classes"),
    ],
)
def test_labels_say_what_is_asked(labels: Any, width: int, task: str) -> None:
    assert truth.choose_task("auto", np.zeros((2, width)), labels, False) == task


class Measuring(Runner):
    """A board that takes a thousand cycles and gives nothing but zeros."""

    def __init__(self, board: str) -> None:
        self.name = self.board = board

    def run(self, files: Mapping[str, str], samples: Sequence[Mapping[str, Any]]) -> Result:
        assert files
        return Result([{"logits": np.zeros((1, 10), np.float32)} for _ in samples], cycles=[900, 1100])


def test_energy_is_that_of_the_board(held_back: Path) -> None:
    """Of measured cycles, and only for a board with a published figure; of estimated ones for a core."""
    compiled = tinyml.compile(INT8, target="cortex-m4")
    request = Request(held_back, samples=2)

    def on(place: Runner) -> tinyml.Evaluation:
        return measure(compiled, place, request, compiled.model, Question())

    found = on(Measuring("nucleo_l4r5zi"))
    (energy,) = found.energies
    assert (found.cycles, found.cycles_measured, energy.chip) == (1000, True, "STM32L4R5")
    assert (energy.least_microjoules, energy.most_microjoules) == pytest.approx((0.323, 0.365))
    assert found.headline()[-1] == f"energy: 0.323 to 0.365 {energy.unit()}, from measured cycles"
    assert found.as_json()["energies"][0]["source"] == energy.source
    for board in ("nucleo_f446re", "board_of_nobody"):
        assert on(Measuring(board)).energies == ()
    assert tinyml.evaluate(INT8, held_back, samples=2).energies == ()  # of the host


def test_quantize_warns_of_lost_accuracy() -> None:
    layer = LayerNoise("gru", "GRU", "int8", 47.0, 3.0)
    report = Report(
        "minmax", {}, 200, 47.0, {"y": 47.0}, 0.1, {"y": 0.95}, 0.97, 0.93, (layer,), (), (), 400, 100
    )
    (line,) = report.advice()
    assert line.startswith("accuracy falls by 4.0 points although the outputs have 47.0 dB: --auto 0.5")
    assert replace(report, accuracy_int8=0.965).advice() == []
    assert replace(report, samples=10, accuracy_int8=0.9).advice() == []


def test_a_step_of_a_dense_layer_is_explained(tmp_path: Path) -> None:
    """LiteRT rounds once, which is checked before it is named."""
    pytest.importorskip("ai_edge_litert")
    rng = np.random.default_rng(5)
    values = [
        Value("x", (1, 64), "int8", Quant.per_tensor(0.02, 3)),
        Value.constant("w", rng.integers(-127, 128, (16, 64)).astype(np.int8), Quant.per_tensor(0.01, 0)),
        Value.constant("b", rng.integers(-900, 900, 16).astype(np.int32), Quant.per_tensor(0.0002, 0)),
        Value("y", (1, 16), "int8", Quant.per_tensor(0.13, -5)),
    ]
    call = Call("FULLY_CONNECTED", ["x", "w", "b"], ["y"], "FullyConnectedOptions")
    model = tmp_path / "dense.tflite"
    model.write_bytes(write(Part(values, [call], ["x"], ["y"])))
    data = rng.integers(-128, 128, (400, 64)).astype(np.int8)
    found = tinyml.evaluate(model, data, task="raw")
    assert found.original is not None
    assert 0 < found.original.outputs[0].largest < 0.14
    assert found.headline()[-1].startswith("note: ")
    assert "round once" in found.headline()[-1]
    assert "--reference" not in found.headline()[-1]


def test_before_and_after_it_has_learnt(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Digits of a camera that sees them a pixel further: `--learn` says what examples of them bring."""
    images, labels, chosen = digits()
    moved = np.roll(images, 1, axis=-1)
    test, examples, file = tmp_path / "test.npz", tmp_path / "learn.npz", tmp_path / "figures.json"
    held = np.arange(len(labels))[chosen][:40]
    others = np.setdiff1d(np.arange(len(labels)), held)[:100]
    np.savez(test, image=moved[held], labels=labels[held])
    np.savez(examples, image=moved[others], labels=labels[others])
    words = ["evaluate", str(INT8), "--data", str(test), "--adapt", "last", "--json", str(file)]
    assert cli.main([*words, "--learn", str(examples), "--rounds", "2"]) == 0
    figures = json.loads(file.read_text())
    learnt = figures["learnt"]
    assert (learnt["kind"], learnt["examples"], learnt["rounds"]) == ("last", 100, 2)
    assert learnt["before"] == figures["classification"]["accuracy"]
    assert learnt["accuracy"] > learnt["before"] + 0.1
    printed = " ".join(capsys.readouterr().out.split())
    assert "% before, " in printed
    assert "% after learning 100 examples, 2 times each (last)" in printed
    compiled = tinyml.compile(INT8, target="host", adapt="last")
    adapted = compiled.adapt()
    for _ in range(2):
        adapted.learn(examples)
    assert adapted.accuracy(test) == learnt["accuracy"]
    found = tinyml.evaluate(compiled, test, learn=examples, rounds=2)
    assert found.learnt is not None
    assert found.learnt.accuracy == learnt["accuracy"]
    assert cli.main([*words, "--learn", str(examples), "--rounds", "0"]) != 0
    assert cli.main(["evaluate", str(INT8), "--data", str(test), "--learn", str(examples)]) != 0
    assert "was not compiled to learn" in " ".join(capsys.readouterr().err.split())
