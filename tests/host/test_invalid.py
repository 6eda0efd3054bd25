# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Files that are wrong: each is refused with a message, and nothing a file contains becomes code."""

from __future__ import annotations

import math
import random
import re
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.depth import some
from tests.invalid import onnx_files, tflite_files
from tests.support.fuzz_targets import TARGETS, compiled, small_limits, tried
from tinyml.base import c, limits
from tinyml.base.errors import TinymlError
from tinyml.base.templates import environment
from tinyml.importers import ModelFile, read
from tinyml.ir import DType, Tensor
from tinyml.ops.framework import fixed_point as fp
from tinyml.ops.pad import PadEdge
from tinyml.ops.resize.tflite import ResizePixels
from tinyml.ops.shared.take import Take
from tinyml.pipeline import Options, compile_model, optimize

ROOT = Path(__file__).resolve().parents[2]
RUNTIME = ROOT / "plugin" / "tinyml" / "runtime" / "include"
CASES = {**onnx_files.cases(), **tflite_files.cases()}


@pytest.mark.parametrize("name", CASES)
def test_refused(name: str) -> None:
    content, message = CASES[name]
    with pytest.raises(TinymlError) as found:
        compiled(content)
    assert message in str(found.value)


@pytest.mark.parametrize("target", TARGETS)
def test_fuzzed(target: str) -> None:
    """A fixed number of inputs, by a fixed seed; ``python -m tools.fuzz`` runs as many as wanted."""
    chosen = TARGETS[target]
    with small_limits():
        for good in chosen.seeds():
            assert tried(chosen, good), "a seed must be a good file"
        for number in range(150 if target in ("onnx", "tflite") else 60):
            rng = random.Random(f"suite {number}")
            try:
                content = chosen.change(rng.choice(chosen.seeds()), rng)
            except (ValueError, TypeError, OverflowError):
                continue  # protobuf does not take the value
            tried(chosen, content)


def test_text_from_outside_is_no_code() -> None:
    """A property of the templates, whatever their callers pass."""
    template = environment("emit").from_string('/* {{ a }} */ "{{ a }}" {{ b }}')
    evil = '*/ int evil; /* "; system("x"); // \\\n#define A\r\n??/'
    text = template.render(a=evil, b=c.Code("*/ trusted\n"))
    comment, literal = text.split("*/ ", 1)[0], text.split('"')[1]
    for ending in ("\n", "\\", "??/"):
        assert ending not in comment + literal
    assert text.count('"') == 2
    assert text.endswith("*/ trusted\n")


def test_names_of_inputs_are_no_code(tmp_path: Path) -> None:
    name = '*/ #error evil /* "\n\\'
    graph = helper.make_graph(
        [helper.make_node("Relu", [name], ["y*/"], name)],
        "g",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 4])],
        [helper.make_tensor_value_info("y*/", TensorProto.FLOAT, None)],
    )
    path = tmp_path / "evil.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    files = compile_model(path, Options("evil", "host", shapes={name: (1, 4)})).files
    code = "\n".join(text for file, text in files.items() if file != "evil.json")
    stripped = re.sub(r'/\*.*?\*/|"(\\.|[^"\\])*"', "", code, flags=re.S)
    assert "evil */" not in code
    assert "#error evil" not in stripped


def test_tables_may_hold_what_is_no_number(tmp_path: Path) -> None:
    values = np.array([np.inf, -np.inf, np.nan, 1], np.float32)
    graph = helper.make_graph(
        [helper.make_node("Max", ["x", "w"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4])],
        [numpy_helper.from_array(values, "w")],
    )
    path = tmp_path / "odd.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    for file, text in compile_model(path, Options("odd", "host")).files.items():
        (tmp_path / file).write_text(text)
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{RUNTIME}", "-c"]
    subprocess.run(["gcc", *flags, tmp_path / "odd.c", "-o", tmp_path / "odd.o"], check=True)


@pytest.mark.parametrize("size,scale", [(10, 0.7), (10, 0.3), (7, 1.4286), (3, 2.3333333), (100, 0.29)])
def test_resized_extents_are_those_of_onnxruntime(size: int, scale: float) -> None:
    """In float32; ONNX's shape inference, in double precision, gives one less for some."""
    scales = np.array([1, 1, 1, scale], np.float32)
    node = helper.make_node("Resize", ["x", "", "s"], ["y"], mode="nearest")
    model = onnx_files.file([node], [1, 1, 1, size], {"s": scales})
    session = pytest.importorskip("tinyml.reference.session")
    (wanted,) = session.answers(model, {"x": np.zeros((1, 1, 1, size), np.float32)})
    graph = read(ModelFile(Path("resize.onnx"), model.SerializeToString()))
    assert graph.tensors["y"].shape == wanted.shape


@pytest.mark.parametrize("parts", ["a b t t", "b t b", "t t", "b t t t c", "a a b b t t"])
def test_a_part_may_be_joined_twice(parts: str, tmp_path: Path) -> None:
    """The plan's validator found that a copy overwrote what it copied."""
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("Split", ["r", "n"], ["a", "b", "c"], axis=0),
        helper.make_node("Transpose", ["c"], ["t"], perm=[0, 1]),
        helper.make_node("Concat", parts.split(), ["y"], axis=0),
    ]
    onnx.save(onnx_files.file(nodes, [6, 4], {"n": np.array([2, 2, 2])}), tmp_path / "twice.onnx")
    compile_model(tmp_path / "twice.onnx", Options("twice"))


def test_limits_can_be_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    node = helper.make_node("Relu", ["x"], ["y"])
    content = onnx_files.file([node], [1, 4096]).SerializeToString()
    monkeypatch.setenv("TINYML_LIMIT_TENSOR_ELEMENTS", "1000")
    with pytest.raises(TinymlError, match="TINYML_LIMIT_TENSOR_ELEMENTS=4096"):
        compiled(content)
    monkeypatch.setenv("TINYML_LIMIT_TENSOR_ELEMENTS", "4096")
    compiled(content)
    monkeypatch.setenv("TINYML_LIMIT_TENSOR_ELEMENTS", "many")
    with pytest.raises(TinymlError, match="is not a limit"):
        compiled(content)


def test_limits_are_documented() -> None:
    page = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    for name, (default, meaning) in limits.DEFAULTS.items():
        assert f"| `{limits.VARIABLE}{name.upper()}` | {default:,} | {meaning} |" in page


def test_a_graph_that_is_refused_never_reaches_a_pass() -> None:
    """The rules hold before the first pass, not only after the last."""
    for name in some(CASES):
        content, _ = CASES[name]
        with pytest.raises(TinymlError):
            optimize(read(ModelFile(Path("model"), content)))


def test_a_subgraph_may_call_itself_once() -> None:
    compiled(tflite_files.call_once_of_itself())


@pytest.mark.parametrize(
    "small,huge",
    [
        (ResizePixels(5, 3), ResizePixels(2**20, 2**20)),
        (PadEdge((0, 1, 0, 0), (0, 2, 1, 0)), PadEdge((0, 2**20, 0, 0), (0, 0, 2**20, 0))),
    ],
    ids=["resize", "pad"],
)
def test_an_extent_is_known_before_its_table_is_made(
    small: Take, huge: Take, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Limits can then refuse it, before tables fill the memory."""
    x = Tensor("x", (1, 2, 2, 1), DType.INT8)
    assert small.extents(x.shape) == tuple(map(len, small.picks(x.shape)))
    monkeypatch.setattr(type(huge), "picks", lambda self, shape: pytest.fail("a table"))
    assert math.prod(huge.infer([x])[0].shape) > 2**39


def test_the_smallest_scale_saturates() -> None:
    """A limit of 6 is more steps of this scale than a float32 can hold."""
    assert fp.quantize_scalar(6.0, 1e-45, 0, -128, 127) == 127
    assert fp.quantize_scalar(-6.0, 1e-45, 0, -128, 127) == -128
    assert fp.quantize_scalar(math.inf, 0.5, 0, -128, 127) == 127
    assert fp.quantize_multiplier(math.inf) == (fp.INT32_MAX, 30)
    assert fp.quantize_multiplier(math.nan) == (0, 0)
    compiled(tflite_files.smallest_scale("int8"))
    compiled(tflite_files.smallest_scale("int16"))
