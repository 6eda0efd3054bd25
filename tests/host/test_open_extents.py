# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Extents that a model leaves open become 1, and every command that reads the model says so."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.support.tflite_writer import Call, Part, Value, write
from tinyml import importers
from tinyml.base.errors import ModelError
from tinyml.importers import ModelFile
from tinyml.verbs.cli import main

NOTE = (
    "note: input 'x' leaves batch and sequence_length open: taken as 1, so its shape is 1x1x4; "
    "--shape x=?x?x4 sets them"
)


@pytest.fixture
def sequence(tmp_path: Path) -> Path:
    """A dense layer on each element of a sequence of any length."""
    value = helper.make_tensor_value_info
    weights = numpy_helper.from_array(np.eye(4, dtype=np.float32), "w")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"], name="dense")],
        "sequence",
        [value("x", TensorProto.FLOAT, ["batch", "sequence_length", 4])],
        [value("y", TensorProto.FLOAT, ["batch", "sequence_length", 4])],
        [weights],
    )
    path = tmp_path / "sequence.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


def test_compile_report_and_verify_say_it(
    sequence: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["compile", str(sequence), "-o", str(tmp_path / "c")]) == 0
    assert f"sequence: {NOTE}\n" in capsys.readouterr().out
    facts, page = tmp_path / "facts.json", tmp_path / "page.html"
    assert main(["report", str(sequence), "--json", str(facts), "--html", str(page)]) == 0
    assert NOTE in capsys.readouterr().out
    assert json.loads(facts.read_text())["notes"] == [NOTE.removeprefix("note: ")]
    assert "sequence_length open: taken as 1" in page.read_text()
    assert main(["verify", str(sequence), "--reference", "numpy"]) == 0
    assert NOTE in capsys.readouterr().out
    given = ["--shape", "x=1x3x4"]
    assert main(["verify", str(sequence), "--reference", "numpy", *given]) == 0
    assert "note:" not in capsys.readouterr().out


def test_an_error_says_it_before_it_blames_the_file(tmp_path: Path) -> None:
    value = helper.make_tensor_value_info
    weights = numpy_helper.from_array(np.ones((2, 1, 5), np.float32), "w")
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["y"], name="conv")],
        "sound",
        [value("x", TensorProto.FLOAT, [1, 1, "samples"])],
        [value("y", TensorProto.FLOAT, None)],
        [weights],
    )
    path = tmp_path / "sound.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    with pytest.raises(ModelError, match="not larger than the input") as error:
        importers.read(ModelFile(path, path.read_bytes()))
    assert error.value.hint.startswith("input 'x' leaves samples open: taken as 1")


def test_add_says_it(
    sequence: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "CMakeLists.txt").write_text("find_package(Zephyr REQUIRED)\n")
    assert main(["add", str(sequence), "--app", str(tmp_path)]) == 0
    assert NOTE in capsys.readouterr().out


def test_an_input_of_another_length_hints_at_shape(
    sequence: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    np.savez(tmp_path / "x.npz", x=np.zeros((1, 16, 4), np.float32))
    words = ["verify", str(sequence), "--reference", "numpy", "--input", str(tmp_path / "x.npz")]
    assert main(words) == 1
    assert "for one run on all of the data --shape x=1x16x4" in capsys.readouterr().err
    assert main([*words, "--shape", "x=1x16x4"]) == 0


def test_tflite_says_it_where_the_file_does() -> None:
    x = Value("x", (1, 5, 4), signature=(-1, 5, 4))
    part = Part([x, Value("y", (1, 5, 4))], [Call("RELU", ["x"], ["y"])], ["x"], ["y"])
    graph = importers.read(ModelFile(Path("m.tflite"), write(part)))
    assert graph.open_inputs == ("x",)
    assert graph.notes == (
        "input 'x' leaves axis 0 open: taken as 1, so its shape is 1x5x4; --shape x=?x5x4 sets it",
    )
    given = importers.read(ModelFile(Path("m.tflite"), write(part)), {"x": (2, 5, 4)})
    assert (given.open_inputs, given.notes) == ((), ())
