# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What a build depends on: every file that was read, and those that change while the compiler runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tinyml import pipeline
from tinyml.base.errors import ConfigError, ModelError
from tinyml.base.naming import check_unique
from tinyml.emit.output_folder import write_depfile
from tinyml.pipeline import Options, compile_model, write_folder
from tinyml.projects import yaml_text
from tinyml.projects.platformio.model_files import external_files
from tinyml.settings.model_forms import Shapes
from tinyml.settings.written import parse_bytes


def matmul(folder: Path, location: str, value: float = 1.0) -> Path:
    """A model whose weights are in a file beside it."""
    weights = numpy_helper.from_array(np.full((4, 3), value, np.float32), "w")
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 3])
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", [x], [y], [weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    path = folder / "model.onnx"
    (folder / location).unlink(missing_ok=True)
    onnx.save(model, path, save_as_external_data=True, location=location, size_threshold=0)
    return path


def dependencies(depfile: Path) -> list[str]:
    return depfile.read_text().replace("\\\n", " ").split(": ", 1)[1].split()


def test_a_depfile_names_external_data(tmp_path: Path) -> None:
    """PyTorch writes `model.onnx.data` by default: new weights in it must reach the firmware."""
    model = matmul(tmp_path, "model.onnx.data")
    rule = tmp_path / "model.d"
    command = [sys.executable, "-m", "tinyml", "compile", str(model), "-o", str(tmp_path / "out")]
    subprocess.run([*command, "--depfile", str(rule)], check=True, capture_output=True)
    assert {str(model), str(tmp_path / "model.onnx.data")} <= set(dependencies(rule))


@pytest.mark.parametrize("length", [5, 127, 128, 200])
def test_platformio_finds_external_data_of_any_name(tmp_path: Path, length: int) -> None:
    name = "d" * length
    assert external_files(matmul(tmp_path, name)) == [tmp_path / name]


def test_a_model_that_is_replaced_meanwhile_is_newer_than_the_c(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = matmul(tmp_path, "data")
    summarize = pipeline.summarize  # type: ignore[attr-defined]

    def replaced(*arguments: Any) -> Any:
        matmul(tmp_path, "data", 2.0)
        return summarize(*arguments)

    monkeypatch.setattr(pipeline, "summarize", replaced)
    compiled = compile_model(model, Options())
    write_folder(compiled, tmp_path / "out", depfile=tmp_path / "model.d", sources=compiled.files_read)
    source = tmp_path / "out" / "model.c"
    assert source.stat().st_mtime_ns < (tmp_path / "data").stat().st_mtime_ns
    monkeypatch.undo()
    compiled = compile_model(model, Options())
    write_folder(compiled, tmp_path / "out", depfile=tmp_path / "model.d", sources=compiled.files_read)
    assert source.stat().st_mtime_ns >= (tmp_path / "data").stat().st_mtime_ns


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such files")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "model.onnx")
    with pytest.raises(ModelError, match="is not a file"):
        compile_model(tmp_path / "model.onnx", Options())


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere, names of files are Unicode")
def test_names_that_are_not_utf8(tmp_path: Path) -> None:
    source = tmp_path / os.fsdecode(b"caf\xe9.onnx")
    write_depfile(tmp_path / "model.d", tmp_path / "model.c", [source])
    assert os.fsencode(source) in (tmp_path / "model.d").read_bytes()


def test_names_that_rules_cannot_hold_are_left_out(tmp_path: Path) -> None:
    names = ["plain", "a b", "a\\b", "a%b", "a\tb", "$a", "a[1]"]
    write_depfile(tmp_path / "model.d", Path("model.c"), [Path(name) for name in names])
    assert (tmp_path / "model.d").read_text() == "model.c: \\\n  plain \\\n  a\\ b\n"


@pytest.mark.parametrize("text", ["0x10", "010", "0b11"])
def test_numbers_in_other_bases_are_refused(text: str) -> None:
    """YAML reads them as 16, 8 and 3; the shape 0x10 means something else."""
    read = yaml_text.read(f"key: {text}")["key"]
    with pytest.raises(ConfigError, match="is not a shape"):
        Shapes().read({"x": read}, "tinyml.yaml")
    with pytest.raises(ConfigError, match="is not a number of bytes"):
        parse_bytes(str(read))


@pytest.mark.parametrize("other", ["kws_input", "kws_output_left", "KWS_RUN", "kws_weights", "kws_feed"])
def test_no_model_is_called_like_a_member_of_another(other: str) -> None:
    with pytest.raises(ConfigError, match=f"no other can be called '{other}'"):
        check_unique(["kws", other])
    check_unique(["kws", "kws_2", "kws_inputs", "kws_runner"])


@pytest.mark.parametrize("declared,fine", [([1], True), (["N"], True), ([1, 1, 1], True), ([2, 1, 3], False)])
def test_another_number_of_axes_in_the_declaration(tmp_path: Path, declared: list[Any], fine: bool) -> None:
    """CatBoost and scikit-learn's RidgeClassifier declare [N] and compute [N, 1]; onnxruntime runs them."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, declared)
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, tmp_path / "m.onnx")
    if not fine:
        with pytest.raises(ModelError, match="its nodes compute 1x1"):
            compile_model(tmp_path / "m.onnx", Options())
        return
    notes = compile_model(tmp_path / "m.onnx", Options()).graph.notes
    assert any("declares its output 'y' as" in note for note in notes)
