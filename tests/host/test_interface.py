# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A model with another interface than the application relies on: caught in the build, and by the header."""

from __future__ import annotations

from pathlib import Path

import pytest

from tinyml.base.errors import ConfigError
from tinyml.emit.interface import _suffixes
from tinyml.pipeline import Options, compile_model
from tinyml.projects import cmake, edit, manifest
from tinyml.settings import interface
from tinyml.settings.interface import Kind
from tinyml.verbs import VERBS
from tinyml.verbs.base import main

DIGITS = Path(__file__).parents[2] / "samples" / "digits" / "model.onnx"


def summary(shape: list[int], dtype: str = "int8") -> dict[str, object]:
    tensor = {"name": "audio", "shape": shape, "dtype": dtype}
    return {"name": "kws", "inputs": [tensor], "outputs": [{**tensor, "name": "scores"}]}


@pytest.mark.parametrize("text", ["int8[1,49,10,1]", "int8 [1, 49, 10, 1]", "int8:1x49x10x1"])
def test_text(text: str) -> None:
    assert interface.parse(text, "here") == Kind("int8", (1, 49, 10, 1))
    assert interface.parse(Kind("int8", (1, 49, 10, 1)).plain, "here") == Kind("int8", (1, 49, 10, 1))


@pytest.mark.parametrize("text", ["int8", "[1,2]", "int8[1,x]", "int8(1,2)"])
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="is not a type with a shape"):
        interface.parse(text, "here")


def test_a_difference_has_both_values() -> None:
    pins = {"input": Kind("int8", (1, 49, 10, 1)), "scores": Kind("int8", (1, 98))}
    interface.check(summary([1, 98]), {"scores": pins["scores"]})
    with pytest.raises(ConfigError) as error:
        interface.check(summary([1, 98]), pins)
    assert "input is int8[1,98], pinned is int8[1,49,10,1]" in str(error.value)
    assert "scores" not in str(error.value)
    with pytest.raises(ConfigError, match="there is no 'video'"):
        interface.check(summary([1, 98]), {"video": pins["input"]})


def test_differences_between_models() -> None:
    assert interface.differences(summary([1, 4]), summary([1, 4])) == []
    assert interface.differences(summary([1, 4]), summary([1, 4], "float32")) == [
        "input: int8[1,4] -> float32[1,4]",
        "output: int8[1,4] -> float32[1,4]",
    ]


def test_differences_of_scales_names_and_numbers() -> None:
    def model(**inputs: float) -> dict[str, object]:
        tensors = [{"name": n, "shape": [2], "dtype": "int8", "scale": s} for n, s in inputs.items()]
        return {"name": "kws", "inputs": tensors, "outputs": []}

    assert interface.differences(model(a=0.5), model(b=0.25)) == [
        "input: scale 0.5 -> 0.25",
        "input: its name 'a' -> 'b'",
    ]
    assert interface.differences(model(a=0.5, b=1), model(b=2, c=0.5)) == [
        "input a: int8[2] is gone",
        "input b: scale 1 -> 2",
        "input c: int8[2] is new",
    ]


def test_manifest_keeps_it_and_cmake_gets_it(tmp_path: Path) -> None:
    text = "models:\n  - name: kws\n    file: kws.onnx\n    interface:\n      input: int8[1,49,10,1]\n"
    (entry,) = manifest.parse(text, "tinyml.yaml").models
    assert entry.interface == {"input": Kind("int8", (1, 49, 10, 1))}
    assert manifest.parse(edit.add_model("", entry), "tinyml.yaml").models == (entry,)
    (tmp_path / "tinyml.yaml").write_text(text)
    assert "[=[INTERFACE]=] [=[input=int8:1x49x10x1]=]" in cmake.calls(tmp_path / "tinyml.yaml")


def test_compile_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["compile", str(DIGITS), "-o", str(tmp_path / "out"), "--name", "digits"]
    assert main(VERBS, [*words, "--interface", "input=int8:1x49"], prog="tinyml", version="0") == 1
    assert "pinned is int8[1,49]" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_macros_for_static_assertions() -> None:
    header = compile_model(DIGITS, Options(name="digits", target="host")).files["digits.h"]
    for line in ("_TYPE TINYML_", "_RANK 4", "_DIM0 1", "_DIM3 "):
        assert f"#define DIGITS_INPUT{line}" in header


def test_float_layers_without_the_fpu_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["compile", str(DIGITS.with_name("model_float.onnx")), "-o", str(tmp_path / "out")]
    assert main(VERBS, [*words, "--no-fpu"], prog="tinyml", version="0") == 0
    assert "Put CONFIG_FPU=y into prj.conf" in capsys.readouterr().out
    assert main(VERBS, words, prog="tinyml", version="0") == 0
    assert "CONFIG_FPU" not in capsys.readouterr().out


def test_names_are_not_doubled() -> None:
    """A tensor called output_label among several outputs is `NAME_output_label`, unless another one is."""
    assert _suffixes(["output_label", "probabilities"], "output") == ["output_label", "output_probabilities"]
    assert _suffixes(["output_label", "label"], "output") == ["output_output_label", "output_label"]
    assert _suffixes(["output_label"], "output") == ["output"]
