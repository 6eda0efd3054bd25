# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`tinyml ops` and docs/SUPPORTED_OPS.md describe what the compiler does."""

from __future__ import annotations

import re
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from tinyml.base.errors import UnsupportedError
from tinyml.importers import ModelFile, inventory, read
from tinyml.importers.tflite_graph import _SPECIAL
from tinyml.ops.framework.kernel import kernel_table
from tinyml.ops.framework.reading import ONNX_READERS, TFLITE_CUSTOM_READERS, TFLITE_READERS
from tinyml.verbs.cli import main
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
        helper.make_node("StringConcat", ["a", "a"], ["c"]),
    ]
    value = helper.make_tensor_value_info
    outputs = [value(name, TensorProto.FLOAT, None) for name in ("b", "c")]
    graph = helper.make_graph(nodes, "g", [value("x", TensorProto.FLOAT, [4])], outputs)
    onnx.save(helper.make_model(graph), tmp_path / "m.onnx")
    assert main(["ops", str(tmp_path / "m.onnx")]) == 1
    printed = capsys.readouterr().out
    assert printed.count("not supported") >= 4
    for name in ("RandomNormalLike", "StringConcat"):
        assert f"{name}: operator {name} is not supported" in printed


def test_missing_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ops", str(tmp_path / "absent.onnx")]) == 1
    assert "there is no model file" in capsys.readouterr().err


def test_conditions_of_many_kernels_are_written_once() -> None:
    """Each has a number, which the sections use; no other condition got lost."""
    text = supported_ops.page()
    listed = dict(re.findall(r"^\| (C\d+) \| (.+) \|$", text, re.M))
    assert len(listed) > 10
    rows = [line for line in text.splitlines() if line.count(" | ") == 2]
    for number, condition in listed.items():
        assert not any(condition in row.split(" | ")[2].split(". ") for row in rows)
        assert sum(bool(re.search(rf"\b{number}\b", row)) for row in rows) >= supported_ops.SHARED
    for family in inventory.families():
        for kernel in family.kernels:
            assert all(condition.replace("|", r"\|") in text for condition in kernel.conditions)


def test_all_missing_operators_are_named_at_once() -> None:
    """Also those that only read what another missing operator computes."""
    names = ("Foo", "Relu", "Bar", "Multinomial")
    domains = ("mine", "", "mine", "")
    nodes = [
        helper.make_node(name, [f"t{i}"], [f"t{i + 1}"], domain=domain)
        for i, (name, domain) in enumerate(zip(names, domains, strict=True))
    ]
    graph = helper.make_graph(
        nodes,
        "chain",
        [helper.make_tensor_value_info("t0", TensorProto.FLOAT, [1, 4])],
        [helper.make_tensor_value_info("t4", TensorProto.INT32, [1, 1])],
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("mine", 1)]
    content = helper.make_model(graph, opset_imports=opsets).SerializeToString()
    with pytest.raises(UnsupportedError) as caught:
        read(ModelFile(Path("chain.onnx"), content))
    assert all(
        f"operator {name} is not supported" in str(caught.value) for name in ("Foo", "Bar", "Multinomial")
    )
