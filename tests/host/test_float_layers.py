# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Notes about the layers of a quantised model that compute in float."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest

import tinyml
from tests.support.onnx_models import model, node
from tinyml.cost.hints import hints
from tinyml.pipeline import Options, compile_model
from tinyml.verbs.cli import main

RNG = np.random.default_rng(3)
FLOAT = np.float32
SCALE, ZERO = FLOAT(0.05), np.int8(0)


def pair(name: str) -> list[onnx.NodeProto]:
    return [
        node("QuantizeLinear", f"{name} s z", f"{name}_q"),
        node("DequantizeLinear", f"{name}_q s z", f"{name}_d"),
    ]


def weights(*shape: int) -> dict[str, Any]:
    return {"w": RNG.integers(-127, 128, shape).astype(np.int8)}


def notes(tmp_path: Path, nodes: list[onnx.NodeProto], **constants: Any) -> list[str]:
    """Of a model with a quantised dense layer, a tensor ``h`` behind it, and these nodes."""
    first = [*pair("x"), node("DequantizeLinear", "v s z", "v_d"), node("MatMul", "x_d v_d", "h")]
    constants |= {"s": SCALE, "z": ZERO, "v": RNG.integers(-127, 128, (8, 8)).astype(np.int8)}
    content = model([*first, *nodes], {"x": [1, 8]}, "y", **constants)
    path = tmp_path / "m.onnx"
    path.write_bytes(content)
    return [note for note in hints(compile_model(path, Options("m", "cortex-m4"))) if "in float" in note]


def test_a_model_on_integers_has_no_note(tmp_path: Path) -> None:
    last = [*pair("h"), node("DequantizeLinear", "w s z", "w_d"), node("MatMul", "h_d w_d", "y")]
    assert not notes(tmp_path, last, **weights(8, 4))


def test_a_float_model_has_no_note(tmp_path: Path) -> None:
    path = tmp_path / "f.onnx"
    path.write_bytes(model([node("Softmax", "x", "y")], {"x": [1, 8]}, "y"))
    assert not hints(compile_model(path, Options("f", "cortex-m4")))


REAL_WEIGHTS = {"k": RNG.normal(0, 1, (8, 4)).astype(FLOAT)}
SUMS = [node("CumSum", "h_d a", "c"), *pair("c"), node("Relu", "c_d", "y")]


@pytest.mark.parametrize(
    "nodes, constants, words",
    [
        ([node("Softmax", "h_d", "y")], {}, "(softmax 'y') computes in float: nothing quantises the output"),
        (
            [node("MatMul", "h_d k", "y")],
            REAL_WEIGHTS,
            "(dense 'y') computes in float: the weights are",
        ),
        ([node("Erf", "h_d", "e"), node("HardSwish", "e", "y")], {}, "nothing quantises the input"),
        (SUMS, {"a": np.int64(1)}, "no integer form"),
    ],
)
def test_a_note_says_why(
    tmp_path: Path, nodes: list[onnx.NodeProto], constants: dict[str, Any], words: str
) -> None:
    found = notes(tmp_path, [*pair("h"), *nodes], **constants)
    assert any(words in note for note in found), found


def test_sums_beyond_the_accumulator(tmp_path: Path) -> None:
    bias = np.full(4, 2**31 - 1, np.int32)
    last = [
        *pair("h"),
        node("DequantizeLinear", "w s z", "w_d"),
        node("DequantizeLinear", "b bs bz", "b_d"),
        node("Gemm", "h_d w_d b_d", "g"),
        node("QuantizeLinear", "g gs z", "y"),
    ]
    sums = {"b": bias, "bs": SCALE * SCALE, "bz": np.int32(0), "gs": FLOAT(5e6)}
    found = notes(tmp_path, last, **weights(8, 4), **sums)
    assert len(found) == 1, found
    assert "'g'" in found[0]
    assert "may leave 32 bits" in found[0]


def test_many_layers_are_counted(tmp_path: Path) -> None:
    chain = [node("Softmax", f"e{i - 1}" if i else "h_d", f"e{i}" if i < 5 else "y") for i in range(6)]
    found = notes(tmp_path, [*pair("h"), *chain])
    assert any("and 1 more" in note for note in found), found


def test_python_report_and_commands_say_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = "nothing quantises the output"
    notes(tmp_path, [*pair("h"), node("Softmax", "h_d", "y")])
    file = str(tmp_path / "m.onnx")
    compiled = tinyml.compile(file)
    assert any(words in note for note in compiled.notes)
    assert any(words in note for note in compiled.report().notes)
    (tmp_path / "CMakeLists.txt").write_text("find_package(Zephyr)\nproject(app)\n")
    for command in (
        ["compile", file, "-o", str(tmp_path / "out")],
        ["report", file],
        ["add", file, "--app", str(tmp_path)],
    ):
        assert main(command) == 0
        assert words in capsys.readouterr().out, command


def test_blocks_of_weights_are_named_as_the_reason(tmp_path: Path) -> None:
    """int8 activations cannot be added up over blocks with scales of their own."""
    blocked = node("DequantizeLinear", "w t", "w_d", axis=0, block_size=16)
    nodes = [
        *(*pair("x"), node("DequantizeLinear", "v s z", "v_d"), node("MatMul", "x_d v_d", "h")),
        *(*pair("h"), blocked, node("MatMul", "h_d w_d", "y")),
    ]
    constants: dict[str, Any] = {
        "v": RNG.integers(-127, 128, (8, 32)).astype(np.int8),
        "w": RNG.integers(-8, 8, (32, 6)).astype(np.dtype(ml_dtypes.int4)),
        "t": RNG.uniform(0.01, 0.1, (2, 6)).astype(FLOAT),
    }
    path = tmp_path / "m.onnx"
    content = onnx.load_from_string(model(nodes, {"x": [1, 8]}, "y", s=SCALE, z=ZERO, **constants))
    content.opset_import[0].version, content.ir_version = 21, 10
    path.write_bytes(content.SerializeToString())
    compiled = compile_model(path, Options("m", "cortex-m4"))
    assert any(
        "(dense 'y') computes in float: the weights have a scale for each block" in n for n in hints(compiled)
    )
    assert "tinyml_dense_f32_s4" in [chosen.kernel.name for chosen in compiled.selected]
