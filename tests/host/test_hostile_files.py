# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Files other than models, paths and time: what a project gives the compiler is refused with a message."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.invalid import onnx_files
from tinyml.base import limits
from tinyml.base.errors import TinymlError
from tinyml.datasets import recordings
from tinyml.features import settings
from tinyml.importers import ModelFile
from tinyml.ir import Op
from tinyml.pipeline import Options, compile_model
from tinyml.projects import manifest
from tinyml.quantize.engine import quantize
from tinyml.settings.quantize_request import Request
from tinyml.verbs.cli import main


def test_every_operator_states_its_operands() -> None:
    def below(kind: type[Op]) -> Iterator[type[Op]]:
        for sub in kind.__subclasses__():
            yield sub
            yield from below(sub)

    silent = {kind.__name__ for kind in below(Op) if "tinyml." in kind.__module__ and not kind.operands}
    assert silent == {"Clamped", "Replacement", "_Scatter", "Take"}, "only base classes have no rules"


def test_compiling_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    node = helper.make_node("Relu", ["x"], ["y"])
    file = ModelFile(Path("slow.onnx"), onnx_files.file([node], [1, 4]).SerializeToString())
    now = itertools.count(0, 100)
    monkeypatch.setattr("tinyml.base.limits.time.monotonic", lambda: next(now))
    monkeypatch.setenv("TINYML_LIMIT_SECONDS", "150")
    with pytest.raises(TinymlError, match="longer than 150 seconds") as found:
        compile_model(file, Options("slow"))
    assert "TINYML_LIMIT_SECONDS=600" in str(found.value)
    limits.check_time()  # only while a model is compiled


LAUGHS = "a: &a [x]\n" + "".join(
    f"{new}: &{new} [*{old}, *{old}, *{old}]\n"
    for old, new in itertools.pairwise("abcdefghijklmnopqrstuvwxyz")
)
"""A list that has 3 ** 25 elements when it is written out."""


@pytest.mark.parametrize(
    "text,message",
    [
        ("[" * 5000, "nested too deeply"),
        ("models: " + "{a: " * 5000, "nested too deeply"),
        ("&a [" + "*a, " * 3 + "]", "must be a mapping"),
        (LAUGHS, "unknown"),
        ('models: [{name: kws, file: "a\\0b.onnx"}]', "NUL"),
        ("models: [{name: kws, file: !!timestamp 2026-13-45}]", "cannot be read"),
        ("models: !!python/object/apply:os.system [true]", "is not YAML"),
    ],
)  # fmt: skip
def test_manifests_that_are_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "tinyml.yaml").write_text(text)
    with pytest.raises(TinymlError, match=message) as found:
        manifest.load(tmp_path / "tinyml.yaml")
    assert len(str(found.value)) < 1000


@pytest.mark.parametrize(
    "words",
    [
        ["compile", "a\0b.onnx", "-o", "out"],
        ["report", "a\0b.onnx"],
        ["verify", "a\0b.tflite"],
        ["quantize", "{model}", "--calibration", "a\0b.npz", "-o", "out.onnx"],
        ["quantize", "{model}", "--calibration", "{data}", "-o", "a\0b.onnx"],
        ["compile", "{model}", "-o", "a\0b"],
        ["verify", "{model}", "--input", "a\0b.npz"],
    ],
    ids=lambda words: " ".join(words).replace("\0", "0"),
)
def test_nul_in_a_path_is_a_message(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, data = tmp_path / "m.onnx", tmp_path / "data.npz"
    node = helper.make_node("Gemm", ["x", "w"], ["y"])
    onnx.save(onnx_files.file([node], [1, 4], {"w": onnx_files.ones(4, 3)}), model)
    np.savez(data, x=np.ones((4, 1, 4), np.float32))
    assert main([word.format(model=model, data=data) for word in words]) != 0
    assert "is not a file name" in "".join(capsys.readouterr())


@pytest.mark.parametrize(
    "value,method,message",
    [(3e38, "minmax", "scaled as it was for the training"), (1e-40, "percentile", "use minmax")],
)
def test_calibration_with_senseless_values(value: float, method: str, message: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "data.npz", x=np.full((4, 1, 4), value, np.float32))
    node = helper.make_node("Gemm", ["x", "w"], ["y"])
    model = onnx_files.file([node], [1, 4], {"w": onnx_files.ones(4, 3)}).SerializeToString()
    with pytest.raises(TinymlError, match=message):
        quantize(ModelFile(Path("m.onnx"), model), Request(tmp_path / "data.npz", method=method))


def test_an_input_that_is_an_output(tmp_path: Path) -> None:
    """Float16 weights change nothing between the two."""
    np.savez(tmp_path / "data.npz", x=np.ones((4, 1, 4), np.float32))
    model = onnx_files.file(
        [helper.make_node("Gemm", ["x", "w"], ["y"])], [1, 4], {"w": onnx_files.ones(4, 3)}
    )
    model.graph.output.append(model.graph.input[0])
    file = ModelFile(Path("m.onnx"), model.SerializeToString())
    with pytest.raises(TinymlError, match="the input 'x' is an output of the model, too"):
        quantize(file, Request(tmp_path / "data.npz"))
    quantize(file, Request(tmp_path / "data.npz", weights="float16"))


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY", b"PK\x05\x06" + bytes(18), b"\x80\x04N."])
def test_recordings_that_are_no_arrays(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(content)
    frontend = settings.from_mapping({"kind": "normalize", "rate": 50, "axes": 3}, "test")
    with pytest.raises(TinymlError, match="array"):
        recordings.samples(tmp_path / "a.npy", frontend)


def test_recordings_have_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.save(tmp_path / "a.npy", np.ones((100, 3), np.float32))
    frontend = settings.from_mapping({"kind": "normalize", "rate": 50, "axes": 3}, "test")
    monkeypatch.setenv("TINYML_LIMIT_SAMPLES_BYTES", "1000")
    with pytest.raises(TinymlError, match="at most 1,000"):
        recordings.samples(tmp_path / "a.npy", frontend)
