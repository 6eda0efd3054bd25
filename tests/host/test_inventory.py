# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`tinyml ops` and docs/SUPPORTED_OPS.md describe what the compiler does."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from tinyml import inventory
from tinyml.cli import main
from tinyml.importers.tflite_graph import _SPECIAL
from tinyml.kernel import kernel_table
from tinyml.reading import ONNX_READERS, TFLITE_CUSTOM_READERS, TFLITE_READERS
from tools import supported_ops

DIGITS = Path(__file__).parents[2] / "samples" / "digits" / "model.onnx"


def test_page_is_current() -> None:
    assert supported_ops.PAGE.read_text() == supported_ops.page(), "run: python -m tools.supported_ops"


def test_nothing_is_left_out() -> None:
    found = inventory.families()
    assert sum(len(family.onnx) for family in found) == len(ONNX_READERS)
    ours = [
        reader for reader in TFLITE_CUSTOM_READERS.values() if reader.__module__.startswith("tinyml.ops.")
    ]
    assert sum(len(family.tflite) for family in found) == len(TFLITE_READERS) + len(ours)
    assert sum(len(family.kernels) for family in found) == sum(
        len(kernels) for op, kernels in kernel_table().items() if op.__module__.startswith("tinyml.ops.")
    )
    assert set(inventory.SPECIAL_TFLITE) == set(_SPECIAL)


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ops"]) == 0
    printed = capsys.readouterr().out
    assert "CONV_2D" in printed
    assert "QuantizeLinear" in printed


def test_model_that_compiles(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ops", str(DIGITS)]) == 0
    printed = capsys.readouterr().out
    assert "DequantizeLinear  12" in printed
    assert "the model can be compiled" in printed
    assert "not supported" not in printed


def test_model_that_does_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two operators are missing: both are named, in the table and in the reasons."""
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("RandomNormalLike", ["a"], ["b"]),
        helper.make_node("Unique", ["a"], ["c"]),
    ]
    value = helper.make_tensor_value_info
    outputs = [value(name, TensorProto.FLOAT, None) for name in ("b", "c")]
    graph = helper.make_graph(nodes, "g", [value("x", TensorProto.FLOAT, [4])], outputs)
    onnx.save(helper.make_model(graph), tmp_path / "m.onnx")
    assert main(["ops", str(tmp_path / "m.onnx")]) == 1
    printed = capsys.readouterr().out
    assert printed.count("not supported") >= 4
    for name in ("RandomNormalLike", "Unique"):
        assert f"{name}: operator {name} is not supported" in printed


def test_missing_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ops", str(tmp_path / "absent.onnx")]) == 1
    assert "there is no model file" in capsys.readouterr().err
