# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Operators from outside: files of the user and packages, in every way to name them, and broken ones."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import tinyml
from tests.support.tflite_writer import Call, Part, Value, write
from tinyml.base.errors import ConfigError, RegistrationError, UnsupportedError
from tinyml.ir.interpreter import interpret
from tinyml.ops.framework import outside
from tinyml.ops.framework.reading import ONNX_READERS
from tinyml.projects import cmake, manifest
from tinyml.projects.platformio import model_files
from tinyml.projects.platformio import project as projects
from tinyml.projects.platformio.boards import Board
from tinyml.verbs.cli import main

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "samples" / "custom_operator"
MODEL = SAMPLE / "models" / "curve.onnx"
OPERATORS = SAMPLE / "mexican_hat.py"


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """Operators of one test are not those of another."""
    undo = outside.snapshot()
    yield
    undo()


@pytest.fixture
def changed(tmp_path: Path) -> Callable[[str, str], Path]:
    """A copy of the sample's operator in which one text is replaced by another."""

    def change(old: str, new: str, file: str = "mexican_hat.py") -> Path:
        for path in SAMPLE.glob("mexican_hat.*"):
            shutil.copyfile(path, tmp_path / path.name)
        text = (tmp_path / file).read_text()
        assert old in text
        (tmp_path / file).write_text(text.replace(old, new))
        return tmp_path / "mexican_hat.py"

    return change


def curve(reading: float) -> float:
    """The temperature that the sample's network approximates."""
    return 1 / (1 / 298.15 + np.log(reading / (1 - reading)) / 3950) - 273.15


def test_the_compiled_operator_computes_what_numpy_computes() -> None:
    model = tinyml.compile(MODEL, target="host", operators=[OPERATORS])
    readings = np.array([[0.2], [0.5], [0.8]], np.float32)
    found = tinyml.run(model, readings).outputs["celsius"].reshape(-1)
    np.testing.assert_allclose(found, [curve(float(r)) for r in readings[:, 0]], atol=0.2)
    source = model.files["curve.c"]
    assert source.count("static void mexican_hat_f32(") == 1
    assert "arena 0..64 -> 0..64" in source  # in place


def test_without_the_file_the_model_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"com\.example::MexicanHat") as caught:
        tinyml.compile(MODEL)
    assert "docs/operators.md" in str(caught.value)


def test_commands_treat_it_like_any_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = ["--operators", str(OPERATORS)]
    assert main(["verify", str(MODEL), *own]) == 0
    assert "numpy, because onnxruntime does not know MexicanHat" in capsys.readouterr().out
    assert main(["report", str(MODEL), *own]) == 0
    assert "mexican_hat_f32" in capsys.readouterr().out
    depfile = tmp_path / "curve.d"
    assert main(["compile", str(MODEL), *own, "-o", str(tmp_path), "--depfile", str(depfile)]) == 0
    listed = depfile.read_text()
    assert all(str(SAMPLE / name) in listed for name in ("mexican_hat.py", "mexican_hat.c"))


# What is changed, and what the message says: the file and the line where the mistake is.
BROKEN = {
    "syntax": ("class MexicanHat(Op):", "class MexicanHat(Op:", r"mexican_hat.py:\d+: "),
    "import": ("elementwise = True", "elementwise = Truth", r"mexican_hat.py:\d+: NameError: .*Truth"),
    "infer": ("return (TensorType(x.shape, x.dtype),)", "return x.shapes", r"mexican_hat.py:\d+: Attribute"),
    "reader": ('node.attr("width", 1.0)', "node.width", r"mexican_hat.py:\d+: AttributeError"),
    "emit": ("sheet.x()}", "sheet.inputs}", r"mexican_hat.py:\d+: AttributeError"),
    "reserved name": (
        "        sheet.line(",
        '        sheet.line("float y = 0;")\n        sheet.line(',
        r"mexican_hat.py:\d+: ValueError: 'y' is reserved in 'float y = 0;': x, x0,",
    ),
    "c file": ('("mexican_hat.c",)', '("other.c",)', r"cannot read .*other.c"),
    "rule": ("(present(1),)", "(present(2),)", "at least 2 inputs"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_mistakes_name_the_file_and_the_line(
    what: str, changed: Callable[..., Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    old, new, message = BROKEN[what]
    out = tmp_path / "out"
    assert main(["compile", str(MODEL), "--operators", str(changed(old, new)), "-o", str(out)]) == 1
    said = capsys.readouterr().err
    assert "Traceback" not in said
    assert re.search(message, said), said
    assert not out.exists()


def test_mistakes_are_messages_in_python_and_platformio_too(changed: Callable[..., Path]) -> None:
    """Both call the pipeline, not the command line."""
    with pytest.raises(ConfigError, match=r"mexican_hat.py:\d+: AttributeError"):
        tinyml.compile(MODEL, operators=[changed("sheet.x()}", "sheet.inputs}")])


def test_nothing_of_a_file_that_fails_stays_registered(changed: Callable[..., Path]) -> None:
    before = set(ONNX_READERS)
    file = changed("wavelet", "curve")
    file.write_text(file.read_text() + "\n1 / 0\n")
    with pytest.raises(ConfigError, match=r"mexican_hat.py:\d+: ZeroDivisionError"):
        outside.load([file])
    assert set(ONNX_READERS) == before


def test_a_second_file_with_the_same_operator_is_refused(changed: Callable[..., Path]) -> None:
    outside.load([OPERATORS])
    outside.load([OPERATORS])  # the same file again is no second registration
    with pytest.raises(RegistrationError, match="MexicanHat is registered twice"):
        outside.load([changed("wavelet", "curve")])


def test_a_file_that_changed_after_it_was_loaded(changed: Callable[..., Path]) -> None:
    file = changed("wavelet", "curve")
    outside.load([file])
    file.write_text(file.read_text() + "\n")
    with pytest.raises(ConfigError, match="has changed since it was loaded"):
        outside.load([file])


def test_missing_files_and_folders(tmp_path: Path) -> None:
    for path in (tmp_path / "none.py", tmp_path):
        with pytest.raises(ConfigError, match="cannot read the operators in"):
            outside.load([path])


def test_a_kernel_that_writes_outside_its_output_is_caught(
    changed: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """`verify` builds models with operators from outside with sanitizers."""
    file = changed("i < count", "i <= count", "mexican_hat.c")
    assert main(["verify", str(MODEL), "--operators", str(file)]) == 1
    said = capsys.readouterr().err
    assert "mexican_hat_f32 (curve.c:" in said
    assert "reads 4 bytes outside the inputs, outputs and scratch memory of its layer" in said
    assert len(said.splitlines()) < 6


def test_custom_operators_of_tflite(tmp_path: Path) -> None:
    file = tmp_path / "scale.py"
    file.write_text(
        """
from tinyml.plugin import *
from dataclasses import dataclass

@dataclass(frozen=True)
class Scale(Op):
    factor: int = 1
    def infer(self, inputs):
        return (TensorType(inputs[0].shape, inputs[0].dtype),)
    def evaluate(self, layer, inputs):
        return (inputs[0] * self.factor,)

class ScaleLoop(InPlace):
    name = "scale loop"
    def emit(self, layer, sheet):
        with sheet.block(f"for (int i = 0; i < {layer.output.elements}; i++) {{"):
            sheet.line(f"{sheet.y()}[i] = {sheet.x()}[i] * {layer.op.factor};")

register_kernels(Scale, ScaleLoop())

@tflite_custom_op("MyScale")
def read(node, build):
    return [build.add1(Scale(node.custom_options[0]), [node.input(0)])]
"""
    )
    values = [Value("x", (1, 4)), Value("y", (1, 4))]
    call = Call("CUSTOM", ["x"], ["y"], custom="MyScale", custom_options=b"\x03")
    model = tmp_path / "scale.tflite"
    model.write_bytes(write(Part(values, [call], ["x"], ["y"])))
    with pytest.raises(UnsupportedError, match="MyScale: no reader for this custom operator"):
        tinyml.compile(model)
    compiled = tinyml.compile(model, target="host", operators=[file])
    found = tinyml.run(compiled, np.array([[1, 2, 3, 4]], np.float32)).outputs["y"]
    assert found.reshape(-1).tolist() == [3, 6, 9, 12]


def test_installed_packages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "hats_for_tests.py").write_text(OPERATORS.read_text())
    shutil.copyfile(SAMPLE / "mexican_hat.c", tmp_path / "mexican_hat.c")
    install(tmp_path, "hats", "hats_for_tests")
    monkeypatch.syspath_prepend(tmp_path)
    assert "mexican_hat_f32" in tinyml.compile(MODEL, target="host").files["curve.c"]
    install(tmp_path / "more", "wigs", "wigs_that_are_not_there")
    monkeypatch.syspath_prepend(tmp_path / "more")
    with pytest.raises(ConfigError, match="operators of the package wigs cannot be loaded: ModuleNotFound"):
        outside.load_installed()


def install(folder: Path, package: str, module: str) -> None:
    """What pip leaves of a package that offers the operators of ``module``."""
    facts = folder / f"{package}-1.0.dist-info"
    facts.mkdir(parents=True)
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(f"[{outside.ENTRY_POINTS}]\n{package} = {module}\n")


def test_manifest_and_cmake(tmp_path: Path) -> None:
    text = "models:\n  - {name: a, file: a.onnx, operators: [ops/mine.py]}\n"
    (entry,) = manifest.parse(text, "tinyml.yaml").models
    assert entry.operators == ("ops/mine.py",)
    assert entry.as_yaml()["operators"] == ["ops/mine.py"]
    (tmp_path / "tinyml.yaml").write_text(text)
    assert f"OPERATORS]=] [=[{tmp_path.as_posix()}/ops/mine.py" in cmake.calls(tmp_path / "tinyml.yaml")
    for wrong in ("5", "[5]", "{a: b}", "[/abs/mine.py]"):
        with pytest.raises(ConfigError):
            manifest.parse(f"models:\n  - {{name: a, file: a.onnx, operators: {wrong}}}\n", "tinyml.yaml")


def test_platformio(tmp_path: Path) -> None:
    shutil.copytree(SAMPLE, tmp_path / "app")
    project = tmp_path / "app"
    (model,) = projects.read_models(project, {}, Board(), cmsis_nn=False)
    assert model.options.operators == (project / "mexican_hat.py",)
    assert project / "mexican_hat.c" in model_files.operator_files(model)
    given = {"custom_tinyml_models": "models/curve.onnx", "custom_tinyml_operators": "none.py"}
    with pytest.raises(ConfigError, match=r"no operator file none\.py"):
        projects.read_models(project, given, Board(), cmsis_nn=False)


def test_add_writes_the_operators_into_the_manifest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    app = tmp_path / "app"
    shutil.copytree(SAMPLE, app)
    (app / "tinyml.yaml").unlink()
    own = ["--operators", str(app / "mexican_hat.py")]
    assert main(["add", str(app / "models" / "curve.onnx"), "--app", str(app), *own]) == 0
    (entry,) = manifest.load(app / "tinyml.yaml").models
    assert entry.operators == ("mexican_hat.py",)
    outside.snapshot()()
    assert main(["verify", "curve", "--app", str(app)]) == 0
    elsewhere = tmp_path / "elsewhere.py"
    elsewhere.write_text("")
    arguments = ["add", str(MODEL), "--name", "b", "--app", str(app), "--operators", str(elsewhere)]
    assert main(arguments) == 1
    assert "outside the application's repository" in capsys.readouterr().err


def test_new_operator(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new-operator", "HardThing", "--domain", "org.example", "-o", str(tmp_path)]) == 0
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"hard_thing.py", "hard_thing.c", "test_hard_thing.py"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_hard_thing.py"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "plugin")}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert main(["new-operator", "HardThing", "-o", str(tmp_path)]) == 1
    assert "already exists" in capsys.readouterr().err
    for wrong in ("hardThing", "Hard-Thing", "3D"):
        assert main(["new-operator", wrong, "-o", str(tmp_path)]) == 1
    assert {path.name for path in tmp_path.iterdir()} >= names


def test_sources_become_part_of_the_model(
    changed: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """C that no kernel names: listed in tinyml.yaml, or with the operators."""
    file = changed('c_files = ("mexican_hat.c",)', "c_files = ()")
    own = tmp_path / "mexican_hat.c"
    compiled = tinyml.compile(MODEL, target="host", operators=[file, own])
    assert compiled.files["curve.c"].count("static void mexican_hat_f32(") == 1
    command = ["compile", str(MODEL), "-o", str(tmp_path / "c"), "--depfile", str(tmp_path / "d")]
    assert main([*command, "--operators", str(file), "--operators", str(own)]) == 0
    assert str(own) in (tmp_path / "d").read_text(), "a change compiles the model again"
    text = "models:\n  - {name: a, file: a.onnx, operators: [mine.py], sources: [ops/mine.c]}\n"
    (entry,) = manifest.parse(text, "tinyml.yaml").models
    written = entry.as_yaml()
    assert (written["operators"], written["sources"]) == (["mine.py"], ["ops/mine.c"])
    (tmp_path / "tinyml.yaml").write_text(text)
    assert f"{tmp_path.as_posix()}/ops/mine.c" in cmake.calls(tmp_path / "tinyml.yaml")
    with pytest.raises(ConfigError, match=r"'mine\.py' in 'sources' is not a C file"):
        manifest.parse("models:\n  - {name: a, file: a.onnx, sources: [mine.py]}\n", "tinyml.yaml")
    assert main(["report", str(MODEL), "--operators", str(file), "--operators", str(tmp_path / "no.c")]) == 1
    assert "no.c" in capsys.readouterr().err


def test_quantising_keeps_them_in_float(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("onnxruntime", reason="the quantiser is onnxruntime's")
    np.savez(tmp_path / "data.npz", reading=np.linspace(0.05, 0.95, 32, dtype=np.float32).reshape(32, 1, 1))
    command = ["quantize", str(MODEL), "--calibration", str(tmp_path / "data.npz"), "--method", "minmax"]
    int8 = tmp_path / "int8.onnx"
    assert main([*command, "-o", str(int8), "--operators", str(OPERATORS)]) == 0
    assert "MexicanHat: computed in float" in " ".join(capsys.readouterr().out.split())
    compiled = tinyml.compile(int8, target="host", operators=[OPERATORS])
    kinds = [layer["op"] for layer in compiled.summary["layers"]]
    assert kinds == ["Quantize", "Dense", "Dequantize", "MexicanHat", "Quantize", "Dense", "Dequantize"]
    exact = tinyml.compile(MODEL, target="host", operators=[OPERATORS])
    samples = [{"reading": np.array([[x]], np.float32)} for x in np.linspace(0.1, 0.9, 9)]
    degrees = [
        np.array([run["celsius"][0, 0] for run in interpret(model.built.graph, samples)])
        for model in (exact, compiled)
    ]
    assert np.abs(degrees[0] - degrees[1]).max() < 15  # the reading has 256 steps, and the hats are narrow
