# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Labels of examples: every form that ``evaluate`` takes is learnt from, and nothing else is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnxruntime", reason="it is the original's runtime")

import tinyml
from tests.support.adapting import CLASSES, GESTURE, SAMPLES, compiled_for, examples, regression
from tinyml.base.errors import ConfigError
from tinyml.ir import Array
from tinyml.verbs import cli

ONE_HOT = np.eye(CLASSES)
NAMES = ("circle", "idle", "shake", "wave")
WAKE_WORD = SAMPLES / "wake_word" / "model.onnx"


def data(count: int = 6) -> tuple[Array, Array]:
    return examples(compiled_for("host", "last"), count, 5)


@pytest.mark.parametrize("form", ["one-hot", "one-hot of integers", "column", "floats", "names"])
def test_forms_of_labels(form: str) -> None:
    compiled = compiled_for("host", "last", classes=NAMES)
    x, y = data()
    forms = {
        "one-hot": ONE_HOT[y],
        "one-hot of integers": ONE_HOT[y].astype(np.int64),
        "column": y[:, np.newaxis],
        "floats": y.astype(np.float64),
        "names": np.array(NAMES)[y],
    }
    wanted = compiled.adapt(x, y)
    adapted = compiled.adapt(x, forms[form])
    assert adapted.learnt == wanted.learnt
    assert adapted.accuracy(x, forms[form]) == wanted.accuracy(x, y)


def test_a_device_takes_these_forms_too() -> None:
    compiled = compiled_for("host", "last")
    x, y = data()
    wanted = compiled.adapt(x, y).learnt
    with tinyml.connect("host", model=compiled) as device:
        adapter = device.adapter()
        for form in (y, ONE_HOT[y], y[:, np.newaxis], y.astype(np.float32)):
            adapter.factory()
            device.learn(x, form)
            assert adapter.learnt == wanted
        for wrong, words in (
            (np.full(6, 0.5), "sample 0 has the label 0.5, which is no class"),
            (np.full(6, np.nan), "sample 0 has a label that is not a number"),
            (np.full(6, "idle"), "a device knows classes by their numbers"),
            (None, "there are no labels to learn from"),
        ):
            with pytest.raises(ConfigError, match=words):
                device.learn(x, wrong)
        with pytest.raises(tinyml.TinymlError, match="out of range"):
            adapter.learn(ONE_HOT[0])  # not a label: the device says so, whatever its first bytes are
        assert adapter.learnt == wanted


def run(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert cli.main(words) != 0
    return " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    "labels,options,message",
    [
        (np.full(6, np.nan), (), "--learn: sample 0 has a label that is not a number"),
        (np.array([0, 1, 2, 0.5, 1, 0]), (), "--learn: sample 3 has the label 0.5, which is no class"),
        (
            np.array([0, 101, 2, 3, 1, 0]),
            (),
            "label 101, which is no class try: whole numbers from 0 to 3",
        ),
        (np.array([0, -1, 2, 3, 1, 0]), (), "--learn: sample 1 has the label -1, which is no class"),
        (
            np.ones((6, 3)),
            (),
            "--learn: a sample has 3 labels try: one class for each sample, or one-hot rows",
        ),
        (None, (), "--learn: there are no labels to learn from try: --learn-labels FILE"),
        (np.zeros(6), ("--rounds", "0"), "0 rounds over the examples try: --rounds N: 1 to 1000"),
    ],
)
def test_labels_that_a_command_refuses(
    labels: Array | None,
    options: tuple[str, ...],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    x, y = data()
    np.savez(tmp_path / "test.npz", x, labels=y)
    if labels is None:
        np.savez(tmp_path / "learn.npz", x)
    else:
        np.savez(tmp_path / "learn.npz", x, labels=labels)
    words = ["evaluate", str(GESTURE), "--adapt", "last", "--data", str(tmp_path / "test.npz")]
    said = run([*words, "--learn", str(tmp_path / "learn.npz"), *options], capsys)
    assert message in said
    assert "adapt(x, y)" not in said


def test_a_command_takes_one_hot_rows_and_names_its_options(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    x, y = data()
    test, learn = str(tmp_path / "test.npz"), str(tmp_path / "learn.npz")
    np.savez(test, x, labels=ONE_HOT[y])
    np.savez(learn, x, labels=ONE_HOT[y])
    words = ["evaluate", str(GESTURE), "--data", test]
    assert cli.main([*words, "--adapt", "last", "--learn", learn]) == 0
    assert "after learning 6 examples (last)" in capsys.readouterr().out
    for options in (["--rounds", "3"], ["--learn-labels", learn]):
        said = run([*words, "--adapt", "last", *options], capsys)
        assert f"{options[0]} says how to learn, and there are no examples try: --learn DATA" in said
    assert "try: --adapt last, or --adapt prototypes" in run([*words, "--learn", learn], capsys)
    few = ["--adapt", "prototypes", "--adapt", "classes=4", "--learn", learn]
    np.savez(learn, x, labels=np.full(6, -1))
    said = run([*words, *few], capsys)
    assert "example 4: all 4 classes have examples try: --adapt prototypes --adapt classes=12" in said


def test_labels_of_the_test_set_that_are_missing_or_fractions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    x, y = data()
    test = str(tmp_path / "test.npz")
    for wrong, message in (
        (np.nan, "sample 2 has a label that is not a number try: leave out samples without a label"),
        (0.5, "sample 2 has the label 0.5: it is neither a class nor 4 values"),
    ):
        labels = y.astype(np.float64)
        labels[2] = wrong
        np.savez(test, x, labels=labels)
        assert message in run(["evaluate", str(GESTURE), "--data", test], capsys)


def test_a_threshold_that_cannot_decide_yet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = SAMPLES / "vibration" / "model.onnx"
    compiled = compiled_for("host", "threshold", model)
    x = np.random.default_rng(1).normal(0, 1, (6, *compiled.inputs[0].shape[1:])).astype(np.float32)
    np.savez(tmp_path / "test.npz", x, labels=np.zeros(6))
    words = ["evaluate", str(model), "--adapt", "threshold", "--data", str(tmp_path / "test.npz")]
    said = run([*words, "--learn", str(tmp_path / "test.npz")], capsys)
    assert "learnt from 6 examples and cannot decide yet" in said


def test_a_regression_has_an_error_instead_of_an_accuracy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = regression(tmp_path)
    compiled = compiled_for("host", {"kind": "last", "rate": 0.05, "loss": "squared"}, path)
    x = np.random.default_rng(2).normal(0, 1, (40, 6)).astype(np.float32)
    y = compiled.adapt().run(x)["y"] + np.array([0.3, -0.2], np.float32)
    with pytest.raises(ConfigError, match="a regression has no accuracy"):
        compiled.adapt().accuracy(x, y)
    with pytest.raises(ConfigError, match="has no mean error"):
        compiled_for("host", "last").adapt().error(x, y)
    np.savez(tmp_path / "test.npz", x, labels=y)
    words = [
        "evaluate",
        str(path),
        "--data",
        str(tmp_path / "test.npz"),
        "--learn",
        str(tmp_path / "test.npz"),
    ]
    assert (
        cli.main([*words, *(w for key in ("last", "rate=0.05", "loss=squared") for w in ("--adapt", key))])
        == 0
    )
    assert "mean absolute error 0.25 before, " in capsys.readouterr().out
    found = tinyml.evaluate(compiled, x, y, learn=x, learn_labels=y).learnt
    assert found is not None
    assert found.accuracy is None
    assert found.error is not None
    assert found.before is not None
    assert found.before == pytest.approx(0.25, abs=0.001)
    assert found.error < 0.4 * found.before
    with pytest.raises(ConfigError, match="1 labels; the model predicts 2 values"):
        compiled.adapt(x, y[:, 0])


def test_a_model_with_state_begins_each_sequence_anew() -> None:
    """As ``device.run`` and ``device.learn`` do."""
    compiled = compiled_for(
        "host", {"kind": "prototypes", "classes": 2}, SAMPLES / "wake_word" / "model.onnx"
    )
    x = np.random.default_rng(4).uniform(0, 26, (8, *compiled.inputs[0].shape[1:])).astype(np.float32)
    adapted, y = compiled.adapt(x, np.zeros(8, np.int64)), np.ones(8, np.int64)
    with tinyml.connect("host", model=compiled) as device:
        device.learn(x, np.zeros(8, np.int64))
        assert device.adapter().learnt == adapted.learnt
        device.learn(x, y)
        adapted.learn(x, y)
        assert device.adapter().learnt == adapted.learnt
        ran = device.run(None, x)
        assert np.array_equal(ran.outputs["scores"], adapted.run(x)["scores"])
        device.run(None, x[:3], reset=False)
        adapted.run(x[:3], reset=False)
        assert device.adapter().learn(1) == adapted.learn_last_run(1) == 1
        assert device.adapter().learnt == adapted.learnt
