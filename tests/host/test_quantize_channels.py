# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Unequal channels, which one scale per tensor suits badly: equalised, exactly, and only where that helps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

pytest.importorskip("onnxruntime", reason="the quantiser is onnxruntime's")

from tests.support.onnx_models import model, node
from tinyml.importers import ModelFile
from tinyml.quantize import improve
from tinyml.quantize.channels import Groups
from tinyml.quantize.engine import Quantized, quantize
from tinyml.quantize.equalize import equalized
from tinyml.quantize.linear import linear_layers
from tinyml.quantize.prepare import prepare
from tinyml.reference.session import Session
from tinyml.settings.quantize_request import Request

F = np.float32
C = 12


def unequal(spread: float = 3.0, limit: bool = False) -> bytes:
    """Conv, depthwise, residual 1x1, pool, dense; channels differ by factors of up to e^(2 spread)."""
    rng = np.random.default_rng(7)
    first, second = (np.exp(rng.uniform(-spread, spread, C)) for _ in range(2))
    constants: dict[str, Any] = {
        "w1": rng.normal(0, 0.5, (C, 3, 3, 3)) * first[:, None, None, None],
        "b1": rng.normal(0, 0.2, C) * first,
        "wd": rng.normal(0, 0.5, (C, 1, 3, 3)) * (second / first)[:, None, None, None],
        "bd": rng.normal(0, 0.2, C) * second,
        "w2": rng.normal(0, 0.2, (C, C, 1, 1)) * (second[:, None] / second)[:, :, None, None],
        "b2": rng.normal(0, 0.2, C) * second,
        "w3": rng.normal(0, 0.3, (10, 16 * C)) / np.repeat(second, 16),
        "b3": rng.normal(0, 0.2, 10),
    }
    last = [node("Clip", "d low high", "dr")] if limit else [node("Relu", "d", "dr")]
    nodes = [
        node("Conv", "x w1 b1", "a", pads=[1, 1, 1, 1]),
        node("Relu", "a", "ar"),
        node("Conv", "ar wd bd", "d", pads=[1, 1, 1, 1], group=C),
        *last,
        node("Conv", "dr w2 b2", "p"),
        node("Add", "p dr", "s"),
        node("MaxPool", "s", "m", kernel_shape=[2, 2], strides=[2, 2]),
        node("Flatten", "m", "f"),
        node("Gemm", "f w3 b3", "y", transB=1),
    ]
    constants = {name: values.astype(F) for name, values in constants.items()}
    if limit:
        constants |= {"low": np.array(0, F), "high": np.array(6, F)}
    return model(nodes, {"x": [1, 3, 8, 8]}, "y", **constants)


def inputs(count: int = 60) -> np.ndarray:
    return np.random.default_rng(5).normal(0, 1, (count, 3, 8, 8)).astype(F)


def quantized(content: bytes, folder: Path, **choices: Any) -> Quantized:
    (folder / "m.onnx").write_bytes(content)
    np.savez(folder / "c.npz", x=inputs())
    return quantize(folder / "m.onnx", Request(folder / "c.npz", **choices))


def prepared(content: bytes) -> onnx.ModelProto:
    return prepare(ModelFile(Path("m.onnx"), content), {}).model


@pytest.mark.parametrize("strength", [1.0, 0.5])
def test_the_float_model_computes_the_same(strength: float) -> None:
    before = prepared(unequal())
    after = equalized(before, [{"x": row[None]} for row in inputs(8)], strength)
    assert after is not None
    for row in inputs(4):
        wanted, found = (Session(m).run({"x": row[None]})["y"] for m in (before, after))
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4 * float(np.abs(wanted).max()))
    changed = [
        a.name for a, b in zip(before.graph.initializer, after.graph.initializer, strict=True) if a != b
    ]
    assert {"w1", "wd", "w2", "w3"} <= {*changed}


def test_equal_channels_gain_many_decibels_for_no_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    better = quantized(unequal(), tmp_path)
    assert "channels equalised" in better.report.steps
    monkeypatch.setattr(improve, "STRENGTHS", ())
    plain = quantized(unequal(), tmp_path)
    assert "channels equalised" not in plain.report.steps
    assert better.report.decibels > plain.report.decibels + 15
    assert better.report.int8_bytes == plain.report.int8_bytes
    names = [[n.op_type for n in result.model.graph.node] for result in (better, plain)]
    assert names[0] == names[1]


def dense(spread: float) -> bytes:
    """Two dense layers; by hand, the channels between them are equal with a spread of 0."""
    rng = np.random.default_rng(11)
    factors = np.exp(rng.uniform(-spread, spread, 16))
    constants: dict[str, Any] = {
        "w1": rng.normal(0, 0.4, (16, 192)) * factors[:, None],
        "b1": rng.normal(0, 0.1, 16) * factors,
        "w2": rng.normal(0, 0.3, (6, 16)) / factors,
        "b2": rng.normal(0, 0.1, 6),
    }
    nodes = [
        node("Flatten", "x", "f"),
        node("Gemm", "f w1 b1", "a", transB=1),
        node("Relu", "a", "r"),
        node("Gemm", "r w2 b2", "y", transB=1),
    ]
    return model(
        nodes, {"x": [1, 3, 8, 8]}, "y", **{name: values.astype(F) for name, values in constants.items()}
    )


@pytest.mark.parametrize("make, spread", [(dense, 2.0), (unequal, 3.0)])
def test_unequal_channels_end_where_equal_ones_are(
    make: Callable[[float], bytes], spread: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the channels had been equalised by hand, whichever method suited the unequal ones best."""
    found = quantized(make(spread), tmp_path).report
    monkeypatch.setattr(improve, "STRENGTHS", ())
    by_hand, plain = (quantized(make(each), tmp_path).report for each in (0.0, spread))
    assert plain.decibels < by_hand.decibels - 10
    assert found.decibels > by_hand.decibels - 1
    assert found.int8_bytes == by_hand.int8_bytes == plain.int8_bytes


def test_the_report_states_what_the_file_computes(tmp_path: Path) -> None:
    result = quantized(unequal(), tmp_path)
    original, made = Session(onnx.load_from_string(unequal())), Session(result.model)
    rows = [{"x": row[None]} for row in inputs()]
    wanted = np.stack([original.run(row)["y"] for row in rows]).astype(np.float64)
    found = np.stack([made.run(row)["y"] for row in rows]).astype(np.float64)
    moved = np.square(wanted - wanted.mean(axis=0)).sum() * len(rows) / (len(rows) - 1)
    assert result.report.decibels == pytest.approx(
        10 * np.log10(moved / np.square(found - wanted).sum()), abs=1e-3
    )
    for before, after in result.report.steps.values():
        assert after >= before + improve.GAIN


def test_twice_the_same_file(tmp_path: Path) -> None:
    one, two = (quantized(unequal(), tmp_path).model.SerializeToString(deterministic=True) for _ in range(2))
    assert one == two


def test_similar_channels_stay_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no trial is better, the file is the one without equalising."""
    monkeypatch.setattr(improve, "GAIN", 100.0)
    result = quantized(unequal(), tmp_path)
    assert result.report.steps == {}
    monkeypatch.setattr(improve, "STRENGTHS", ())
    assert quantized(unequal(), tmp_path).model == result.model


def test_a_limit_ends_the_chain() -> None:
    free = Groups(prepared(unequal(limit=True))).free()
    assert [[maker.output[0] for maker in group.makers] for group in free] == [["a"]]
    whole = Groups(prepared(unequal())).free()
    assert [[maker.output[0] for maker in group.makers] for group in whole] == [["a"], ["p", "d"]]


def test_what_others_see_is_not_scaled() -> None:
    """An output of the model, and a tensor that an unknown operator reads, keep their units."""
    content = onnx.load_from_string(unequal())
    content.graph.output.append(onnx.helper.make_tensor_value_info("ar", onnx.TensorProto.FLOAT, None))
    made = [
        maker.output[0]
        for group in Groups(prepared(content.SerializeToString())).free()
        for maker in group.makers
    ]
    assert {*made} == {"d", "p"}


def test_the_body_of_a_condition_sees_what_is_outside() -> None:
    """A tensor that only an inner graph reads keeps its unit, whether that branch runs or not."""
    content = onnx.load_from_string(unequal())
    make, info = onnx.helper.make_node, onnx.helper.make_tensor_value_info
    bodies = [
        onnx.helper.make_graph(
            [make(op, ["ar"], [f"{op}_y"])], op, [], [info(f"{op}_y", onnx.TensorProto.FLOAT, [1, C, 8, 8])]
        )
        for op in ("Sin", "Cos")
    ]
    content.graph.node.append(make("If", ["choice"], ["z"], then_branch=bodies[0], else_branch=bodies[1]))
    content.graph.input.append(info("choice", onnx.TensorProto.BOOL, []))
    content.graph.output.append(info("z", onnx.TensorProto.FLOAT, [1, C, 8, 8]))
    made = [maker.output[0] for group in Groups(content).free() for maker in group.makers]
    assert {*made} == {"d", "p"}


def test_columns_times_rows_are_the_outputs() -> None:
    """Strides, dilations, groups, uneven padding, and dense layers either way round."""
    rng = np.random.default_rng(3)
    convolutions: list[tuple[dict[str, Any], tuple[int, ...]]] = [
        ({"strides": [2, 1], "pads": [1, 0, 2, 1]}, (6, 4, 3, 2)),
        ({"dilations": [2, 2], "group": 2}, (6, 2, 2, 3)),
        ({"auto_pad": "SAME_UPPER", "strides": [2, 2]}, (5, 4, 3, 3)),
        ({"auto_pad": "SAME_LOWER", "group": 4}, (8, 1, 2, 2)),
    ]
    for more, shape in convolutions:
        weights = rng.normal(0, 1, shape).astype(F)
        made = onnx.load_from_string(
            model([node("Conv", "x w", "y", **more)], {"x": [1, 4, 9, 8]}, "y", w=weights)
        )
        x = rng.normal(0, 1, (1, 4, 9, 8)).astype(F)
        (layer,) = linear_layers(made)
        found = np.einsum("grk,gnk->ngr", layer.rows(), layer.columns(x, 10**6))
        wanted = np.moveaxis(Session(made).run({"x": x})["y"], 1, -1)
        np.testing.assert_allclose(found.reshape(wanted.shape), wanted, rtol=1e-4, atol=1e-4)
        assert np.array_equal(layer.shaped(layer.rows()), weights)
    dense: list[tuple[dict[str, Any], tuple[int, ...]]] = [({"transB": 1}, (5, 7)), ({}, (7, 5))]
    for more, shape in dense:
        made = onnx.load_from_string(
            model([node("Gemm", "x w", "y", **more)], {"x": [2, 7]}, "y", w=rng.normal(0, 1, shape).astype(F))
        )
        x = rng.normal(0, 1, (2, 7)).astype(F)
        (layer,) = linear_layers(made)
        found = np.einsum("grk,gnk->ngr", layer.rows(), layer.columns(x, 100))[:, 0]
        np.testing.assert_allclose(found, Session(made).run({"x": x})["y"], rtol=1e-4, atol=1e-5)
