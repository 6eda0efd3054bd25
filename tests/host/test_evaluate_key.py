# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`evaluate:` in tinyml.yaml: rows of a test set in the Twister test of a model."""

from __future__ import annotations

import re
from pathlib import Path
from shutil import copyfile

import numpy as np
import pytest

import tinyml
from tinyml.base.errors import ConfigError
from tinyml.projects import manifest
from tinyml.verbs.cli import main

DIGITS = Path(__file__).parents[2] / "samples" / "digits" / "model.onnx"
KEY = "evaluate: {data: test.npz, labels: y, min_accuracy: 0.9, rows: 10}"


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """An application with digits, and data whose labels are the model's own decisions but for one."""
    (tmp_path / "src").mkdir()
    (tmp_path / "CMakeLists.txt").write_text("find_package(Zephyr)\n")
    (tmp_path / "prj.conf").write_text("CONFIG_TINYML=y\n")
    copyfile(DIGITS, tmp_path / "digits.onnx")
    rows = np.random.default_rng(5).random((20, 1, 8, 8), np.float32)
    decided = tinyml.run(DIGITS, rows)["logits"].argmax(axis=1)
    decided[4] = (decided[4] + 1) % 10
    np.savez(tmp_path / "test.npz", image=rows, y=decided)
    write(tmp_path, KEY)
    return tmp_path


def write(app: Path, key: str) -> None:
    (app / "tinyml.yaml").write_text(f"models:\n  - name: digits\n    file: digits.onnx\n    {key}\n")


def make(app: Path, *more: str) -> int:
    return main(["test", "digits", "--app", str(app), *more])


def test_rows_are_in_the_test(app: Path) -> None:
    """Every second of the 20 rows: one of them has the wrong label, and 9 of 10 are enough."""
    assert make(app) == 0
    test = app / "tests" / "digits"
    text = (test / "src" / "evaluation.h").read_text()
    figures = dict(re.findall(r"#define EVALUATION_(\w+) +(\w+)", text))
    assert figures == {"ROWS": "10", "NEEDED": "9", "OUTPUT": "0", "SCORES": "10", "IS_NUMBER": "false"}
    assert text.count("static const float row0_") == 10
    classes = re.search(r"evaluation_classes\[\w+\] = \{\s+([\d, ]+),", text)
    assert classes is not None
    stored = np.load(app / "test.npz")["y"].tolist()
    found = [int(word) for word in classes[1].split(",")]
    assert len(found) == 10
    assert all(number in stored for number in found)
    assert "ZTEST(digits, test_accuracy)" in (test / "src" / "main.c").read_text()
    assert "evaluate" not in (test / "tinyml.yaml").read_text()


def test_without_the_key_nothing_changes(app: Path) -> None:
    write(app, "kernels: portable")
    assert make(app) == 0
    assert not (app / "tests" / "digits" / "src" / "evaluation.h").exists()
    assert "accuracy" not in (app / "tests" / "digits" / "src" / "main.c").read_text()


@pytest.mark.parametrize(
    "key,words",
    [
        ("evaluate: {data: no.npz, min_accuracy: 0.9}", "no.npz"),
        ("evaluate: {data: test.npz, labels: z, min_accuracy: 0.9}", "there are no labels 'z'"),
        ("evaluate: {data: test.npz, labels: z.npy, min_accuracy: 0.9}", "z.npy"),
        ("evaluate: {data: bare.npz, min_accuracy: 0.9}", "bare.npz has no labels"),
        ("evaluate: {data: real.npz, min_accuracy: 0.9}", "are not classes"),
        (
            "evaluate: {data: test.npz, labels: y, min_accuracy: 100%, rows: 20}",
            "19 of 20 decisions are right",
        ),
        ("evaluate: {data: test.npz, labels: y, min_accuracy: 0.9, output: x}", "has no output 'x'"),
    ],
)
def test_mistakes_leave_nothing_behind(
    app: Path, key: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = np.zeros((3, 1, 8, 8), np.float32)
    np.savez(app / "bare.npz", image=rows)
    np.savez(app / "real.npz", image=rows, labels=np.full((3, 10), 0.3, np.float32))
    write(app, key)
    assert make(app) == 1
    assert words in capsys.readouterr().err.replace("\n", " ")
    assert not (app / "tests").exists()


@pytest.mark.parametrize(
    "value,message",
    [
        ("test.npz", "'evaluate' must be a mapping"),
        ("{data: a.npz}", "needs the key 'min_accuracy'"),
        ("{min_accuracy: 0.9}", "needs the key 'data'"),
        ("{data: a.npz, min_acuracy: 0.9}", "evaluate has no key 'min_acuracy'"),
        ("{data: a.npz, min_accuracy: 950}", "'950' is not an accuracy"),
        ("{data: a.npz, min_accuracy: many}", "'many' is not an accuracy"),
        ("{data: a.npz, min_accuracy: 0.9, rows: 0}", "0 is not a number of rows"),
        ("{data: 7, min_accuracy: 0.9}", "'data' must be a string"),
        ("{data: /a.npz, min_accuracy: 0.9}", "'evaluate: data' is an absolute path"),
    ],
)
def test_wrong_values(value: str, message: str) -> None:
    text = f"models:\n  - name: a\n    file: a.onnx\n    evaluate: {value}\n"
    with pytest.raises(ConfigError, match=re.escape(message)):
        manifest.parse(text, "tinyml.yaml")


def test_the_entry_is_written_as_it_was_given() -> None:
    (entry,) = manifest.parse(f"models:\n  - name: a\n    file: a.onnx\n    {KEY}\n", "x").models
    assert entry.as_yaml()["evaluate"] == {"data": "test.npz", "labels": "y", "min_accuracy": 0.9, "rows": 10}


def test_labels_by_the_name_of_an_array(app: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = str(app / "test.npz")
    assert tinyml.evaluate(DIGITS, data, "y").accuracy == 0.95
    assert main(["evaluate", str(DIGITS), "--data", data, "--labels", "y"]) == 0
    assert "accuracy 95.00 %" in capsys.readouterr().out
    assert main(["evaluate", str(DIGITS), "--data", data, "--labels", "target"]) == 1
    assert "there are no labels 'target'" in capsys.readouterr().err
