# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Names of models: one rule for defaults, and names that would break a build are refused."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.sketch import Sketch
from tinyml.base import naming
from tinyml.base.c_keywords import KEYWORDS
from tinyml.base.errors import ConfigError
from tinyml.emit.model import Provenance
from tinyml.ir import DType
from tinyml.ops.elementwise.unary import Unary
from tinyml.pipeline import Options, compile_graph, compile_model
from tinyml.projects import manifest
from tinyml.projects.platformio import project
from tinyml.projects.platformio.boards import Board

ROOT = Path(__file__).parents[2]
MODEL = ROOT / "samples" / "digits" / "model.onnx"


@pytest.mark.parametrize(
    "file,name",
    [
        ("kws.onnx", "kws"),
        ("KWS-Small v2.tflite", "kws_small_v2"),
        ("2fast.onnx", "model_2fast"),
        ("größe.onnx", "gr_e"),
        ("_.onnx", "model"),
        ("string.onnx", "string_model"),
        ("Math.onnx", "math_model"),
        ("pthread.onnx", "pthread_model"),
        ("Wire.onnx", "wire_model"),
        ("int.onnx", "int_model"),
        ("null.onnx", "null"),
        ("class.onnx", "class_model"),
        ("aux.onnx", "aux_model"),
        ("tinyml.onnx", "model"),
        ("tinyml_kws.onnx", "kws"),
        ("tinyml-2.onnx", "model_2"),
        ("tinyml_int.onnx", "int_model"),
        (f"{'long-' * 40}.onnx", ("long_" * 40)[:94].strip("_")),
    ],
)
def test_default_names(file: str, name: str) -> None:
    assert naming.model_name(Path("folder") / file) == name
    naming.check_name(name)


@pytest.mark.parametrize(
    "name,reason,suggestion",
    [
        ("my-kws", "a prefix in C", "my_kws"),
        ("_x", "a prefix in C", "x"),
        ("", "a prefix in C", "model"),
        ("string", "string.h would hide a standard C header", "string_model"),
        ("Math", "Math.h would hide a standard C header", "math_model"),
        ("dirent", "a POSIX header", "dirent_model"),
        ("int", "of C", "int_model"),
        ("NULL", "of C", "null"),
        ("template", "keyword of C++", "template_model"),
        ("nul", "Windows", "nul_model"),
        ("tinyml_kws", "belong to the runtime", "kws"),
    ],
)
def test_a_bad_name_is_refused_with_a_good_one(name: str, reason: str, suggestion: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(reason)) as caught:
        naming.check_name(name)
    assert caught.value.hint.endswith(f"for example {suggestion}")
    naming.check_name(suggestion)


def test_a_name_that_is_too_long_for_files() -> None:
    naming.check_name("a" * 100)
    with pytest.raises(ConfigError, match="it has 101 characters"):
        naming.check_name("a" * 101)


def test_every_reserved_name_gets_an_allowed_default() -> None:
    headers = (name for names in naming.HEADERS.values() for name in names)
    for name in (*headers, *naming.CPP_KEYWORDS, *naming.DEVICES, *KEYWORDS):
        naming.check_name(naming.model_name(Path(f"{name}.onnx")))


def test_all_ways_in_use_the_same_default(tmp_path: Path) -> None:
    (tmp_path / "String.onnx").write_bytes(MODEL.read_bytes())
    compiled = compile_model(tmp_path / "String.onnx", Options(target="host"))
    assert compiled.name == "string_model"
    assert "string_model.h" in compiled.files
    for options in ({}, {"custom_tinyml_models": "String.onnx"}):
        (model,) = project.read_models(tmp_path, options, Board(), cmsis_nn=False)
        assert model.name == "string_model"


def test_all_ways_in_refuse_the_same_names(tmp_path: Path) -> None:
    (tmp_path / "a.onnx").write_bytes(MODEL.read_bytes())
    with pytest.raises(ConfigError, match=r"string\.h would hide"):
        compile_model(tmp_path / "a.onnx", Options("string", target="host"))
    with pytest.raises(ConfigError, match=r"string\.h would hide"):
        manifest.parse("models: [{name: string, file: a.onnx}]", "tinyml.yaml")
    with pytest.raises(ConfigError, match=r"string\.h would hide"):
        project.read_models(tmp_path, {"custom_tinyml_models": "string=a.onnx"}, Board(), cmsis_nn=False)


def test_short_names_are_the_distinctive_end() -> None:
    assert naming.short("conv1") == "conv1"
    assert naming.short("a/BatchNorm;a/Conv2D;a/relu") == "a/relu"
    assert naming.short("a/relu;") == "a/relu"
    assert naming.short("x" * 41) == "..." + "x" * 37
    assert naming.short("abcdefgh", 6) == "...fgh"


def test_long_names_are_short_for_people_and_whole_in_json() -> None:
    whole = ";".join(["functional/" + "fused_batch_norm/" * 10 + "FusedBatchNormV3", "functional/relu/Relu"])
    sketch = Sketch()
    graph = sketch.graph(sketch.add(Unary("abs"), sketch.input((4,), DType.FLOAT32)))
    (node,) = graph.nodes
    graph = replace(graph, nodes=(replace(node, name=whole),))
    compiled = compile_graph(graph, "net", Provenance("net", "0" * 64, ""), Options(target="host"))
    (layer,) = json.loads(compiled.files["net.json"])["layers"]
    assert layer["name"] == whole
    assert naming.short(whole) == "functional/relu/Relu"
    assert whole not in compiled.files["net.c"]
