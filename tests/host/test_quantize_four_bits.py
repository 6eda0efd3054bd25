# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Weights of four bits: better than the nearest step, as small as stated, the same in every runtime."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto

pytest.importorskip("onnxruntime", reason="the quantiser is onnxruntime's")

from tests.host.test_quantize_channels import inputs, unequal
from tests.support.quantizing import FLOAT, digits, run_host, saved, write_calibration
from tinyml.base.errors import ConfigError
from tinyml.ir import Array
from tinyml.pipeline import Options, compile_model
from tinyml.quantize import rounding
from tinyml.quantize.engine import Quantized, quantize
from tinyml.quantize.report import Report
from tinyml.reference.session import Session
from tinyml.settings.quantize_request import Goal, Request


@pytest.fixture(scope="module")
def request_(tmp_path_factory: pytest.TempPathFactory) -> Request:
    folder = tmp_path_factory.mktemp("data")
    images, labels, held_back = digits()
    np.savez(folder / "test.npz", image=images[held_back][:100], labels=labels[held_back][:100])
    calibration = write_calibration(folder)
    return Request(calibration, "minmax", weights="int4", test=folder / "test.npz", samples=100)


@pytest.fixture(scope="module")
def int4(request_: Request) -> Quantized:
    return quantize(FLOAT, request_)


def four_bit_weights(model: onnx.ModelProto) -> dict[str, onnx.TensorProto]:
    return {
        t.name: t for t in model.graph.initializer if t.data_type == TensorProto.INT4 and "zero" not in t.name
    }


def correlated(groups: int, count: int, width: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(4)
    mixing = rng.normal(0, 1, (width, width)) / np.sqrt(width)
    x = rng.normal(0, 1, (groups, 400, width)) @ mixing
    moments = np.matmul(np.swapaxes(x, 1, 2), x) / 400
    return rng.normal(0, 1, (groups, count, width)), rounding.damped(moments)


@pytest.mark.parametrize("groups, count, width, together", [(1, 6, 40, 1), (5, 2, 9, 1), (1, 12, 16, 4)])
def test_outputs_change_less_than_with_the_nearest_step(
    groups: int, count: int, width: int, together: int
) -> None:
    rows, moments = correlated(groups, count, width)
    best, nearest = (f(rows, moments, together) for f in (rounding.four_bits, rounding.nearest))
    assert best.error < 0.7 * nearest.error
    assert best.values.min() >= rounding.LOW
    assert best.values.max() <= rounding.HIGH
    assert best.scales.shape == (groups, count // together)
    real = best.values * np.repeat(best.scales.astype(np.float64), together, axis=1)[:, :, None]
    apart = rows - real
    assert best.error == pytest.approx(float(np.einsum("gri,gij,grj->", apart, moments, apart)), rel=1e-4)


def test_close_to_the_best_of_all_roundings() -> None:
    """Four weights, one scale: all 81 neighbours by up to one step are no better."""
    rows, moments = correlated(1, 8, 4)
    found = rounding.four_bits(rows, moments)
    for row in range(8):
        scale = float(found.scales[0, row])
        least = min(
            float((rows[0, row] - q * scale) @ moments[0] @ (rows[0, row] - q * scale))
            for step in itertools.product((-1, 0, 1), repeat=4)
            if (q := found.values[0, row] + np.array(step)).min() >= -8 and q.max() <= 7
        )
        apart = rows[0, row] - found.values[0, row] * scale
        assert float(apart @ moments[0] @ apart) <= 1.25 * least + 1e-12


def test_every_weight_has_four_bits(int4: Quantized) -> None:
    onnx.checker.check_model(int4.model, full_check=True)
    assert len(four_bit_weights(int4.model)) == 3
    plain, mixed, small = int4.report.variants
    assert [v.name for v in int4.report.variants] == ["int8", "mixed", "int4"]
    weights = sum(int(np.prod(t.dims)) for t in four_bit_weights(int4.model).values())
    assert (plain.weight_bytes, small.weight_bytes) == (weights, weights // 2)
    assert small.weight_bytes <= mixed.weight_bytes <= plain.weight_bytes
    assert int4.report.decibels == small.decibels > 22
    assert {layer.weights for layer in int4.report.layers if layer.op_type in ("Conv", "Gemm")} == {"int4"}
    assert Report.from_json(int4.report.as_json()) == int4.report


def test_the_table_states_what_the_file_does(int4: Quantized, request_: Request) -> None:
    assert request_.test is not None
    data = np.load(request_.test)
    session = Session(int4.model)
    right = [
        int(session.run({"image": x[None]})["logits"].argmax()) == y
        for x, y in zip(data["image"], data["labels"], strict=True)
    ]
    assert int4.report.variants[2].accuracy == np.mean(right)
    assert int4.report.variants[2].tested == 100
    assert np.mean(right) > 0.93


def test_onnxruntime_and_the_compiled_model_agree(int4: Quantized, tmp_path: Path) -> None:
    path = saved(int4, tmp_path)
    images, _, held_back = digits()
    rows = images[held_back][:24]
    found = run_host(compile_model(path, Options("digits", "host")), rows)
    exact = np.concatenate([Session(int4.model).run({"image": row[None]})["logits"] for row in rows])
    np.testing.assert_array_equal(found, exact.reshape(found.shape))


def test_the_same_file_again(int4: Quantized, request_: Request) -> None:
    again = quantize(FLOAT, request_).model
    assert again.SerializeToString(deterministic=True) == int4.model.SerializeToString(deterministic=True)


def test_mixed_keeps_eight_bits_where_four_lose_most(tmp_path: Path) -> None:
    """A goal between int8 and int4 leaves some layers with eight bits; the report says which and why."""
    (tmp_path / "m.onnx").write_bytes(unequal())
    np.savez(tmp_path / "c.npz", x=inputs())
    request = Request(tmp_path / "c.npz", "minmax", weights="mixed")
    low, _, high = (v.decibels for v in quantize(tmp_path / "m.onnx", request).report.variants[::-1])
    goal = Goal(decibels=(low + high) / 2)
    result = quantize(tmp_path / "m.onnx", replace(request, max_loss=goal))
    plain, mixed, small = result.report.variants
    assert result.report.decibels >= (goal.decibels or 0)
    assert small.weight_bytes < mixed.weight_bytes < plain.weight_bytes
    assert small.decibels < mixed.decibels < plain.decibels
    eight = {n.name for n in result.report.layers if n.op_type in ("Conv", "Gemm") and not n.weights}
    assert eight
    assert eight == set(result.report.eight_bits)
    assert all("four bits in this layer alone leave" in why for why in result.report.eight_bits.values())
    with pytest.raises(ConfigError, match="int8 itself gives"):
        quantize(tmp_path / "m.onnx", replace(request, max_loss=Goal(decibels=90)))


def test_layers_that_cannot_have_four_bits_are_named(request_: Request) -> None:
    result = quantize(FLOAT, replace(request_, keep_float=("conv1",)))
    assert result.report.eight_bits == {"conv1": "it stays float"}
    assert len(four_bit_weights(result.model)) == 2
    with pytest.raises(
        ConfigError, match=r"no layer .* four bits: it stays float; its activations are int16"
    ):
        quantize(FLOAT, replace(request_, keep_float=("conv1",), int16=("dense",)))


@pytest.mark.parametrize(
    "choices, message",
    [
        ({"weights": "int2"}, "weights cannot be 'int2'"),
        ({"weights": "int4", "max_loss": Goal(points=1)}, "a maximum loss chooses layers for mixed weights"),
    ],
)
def test_wrong_choices(choices: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Request(Path("c.npz"), **choices)  # type: ignore[arg-type]
