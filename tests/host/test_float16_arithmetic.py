# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""``arithmetic: float16``: which layers add up in float16, what others say, and how results are judged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.onnx_models import model, node
from tinyml.base.errors import ConfigError
from tinyml.compare import check
from tinyml.harness import Standalone
from tinyml.ops.weighted.float16_sums import LARGEST_SUM, summed, tiles
from tinyml.pipeline import Compiled, Options, compile_model
from tinyml.slots.data_pack import pack_data
from tinyml.slots.version import Version

RNG = np.random.default_rng(9)
HALVES = RNG.normal(0, 0.2, (64, 48)).astype(np.float16)


def saved(folder: Path, weights: Any = HALVES) -> Path:
    values = weights.astype(np.float32)
    content = model([node("MatMul", "x m", "y")], {"x": (1, len(values))}, "y", m=values)
    (folder / "m.onnx").write_bytes(content)
    return folder / "m.onnx"


def compiled(path: Path, **options: Any) -> Compiled:
    return compile_model(path, Options("m", **{"target": "cortex-m55", "arithmetic": "float16", **options}))


def kernel(found: Compiled) -> str:
    (name,) = (one.kernel.name for one in found.selected if "dense" in one.kernel.name)
    return name


@pytest.mark.parametrize("target", ["cortex-m55", "cortex-m85", "host"])
@pytest.mark.parametrize("optimize", ["balanced", "speed", "size", "ram"])
def test_a_user_allows_it(tmp_path: Path, target: str, optimize: str) -> None:
    path = saved(tmp_path)
    found = compiled(path, target=target, optimize=optimize)
    assert kernel(found) == "tinyml_dense_f16"
    assert not found.graph.notes
    assert "arithmetic float16" in found.files["m.c"]
    plain = compiled(path, target=target, optimize=optimize, arithmetic="float32")
    assert "f32" in kernel(plain)


def test_other_cores_say_that_they_compute_in_float32(tmp_path: Path) -> None:
    found = compiled(saved(tmp_path), target="cortex-m4")
    assert kernel(found) == "tinyml_dense_f32_f16"
    assert [note for note in found.graph.notes if "changes nothing on cortex-m4" in note]


def overflowing() -> Any:
    weights = HALVES.copy()
    weights[:32, 7] = np.float16(LARGEST_SUM / 32)
    return weights


@pytest.mark.parametrize(
    "weights, name",
    [
        (HALVES + np.float32(1e-5), "tinyml_dense_f32"),
        (overflowing(), "tinyml_dense_f32_f16"),
        (HALVES[:8, :20], "tinyml_dense_f32"),
    ],
    ids=["not_float16", "could_overflow", "few"],
)
def test_layers_that_stay_in_float32(tmp_path: Path, weights: Any, name: str) -> None:
    found = compiled(saved(tmp_path, weights))
    assert kernel(found) == name
    assert [note for note in found.graph.notes if "changes nothing in this model" in note]


def test_inputs_up_to_1024_stay_finite() -> None:
    """The largest weights that the compiler accepts, rounded up in every sum."""
    weights = np.full((1, 32), np.float16(LARGEST_SUM / 32), np.float32)
    assert weights.sum() <= LARGEST_SUM
    assert np.isfinite(summed(np.full((1, 32), 1024.0), weights, None)).all()


def test_blocks_end_after_32_products() -> None:
    """In a single float16 sum, 2,048 ones would be followed by ones that are lost."""
    ones = np.ones((1, 4096), np.float32)
    assert summed(ones, ones, np.array([0.5], np.float32)) == 4096.5


def test_tiles_hold_every_weight_once() -> None:
    for filters in (1, 7, 8, 13, 16, 24, 31):
        rows = np.arange(2 * filters * 5).reshape(2, filters, 5)
        found = tiles(rows)
        np.testing.assert_array_equal(np.sort(found), np.arange(rows.size))
        assert set(found[: filters * 5]) == set(rows[0].reshape(-1)), "groups follow each other"


def test_verify_allows_the_loss_and_says_why(tmp_path: Path) -> None:
    path = saved(tmp_path)
    x = {"x": RNG.normal(0, 1, (1, 64)).astype(np.float32)}
    for arithmetic, fine in (("float32", True), ("float16", True)):
        subject = check.subject(path, Options("m", "host", arithmetic=arithmetic))
        verdict = check.check(subject, Standalone("host"), [x])
        assert verdict.fine is fine
        assert (verdict.note == check.FLOAT16) is (arithmetic == "float16")
    strict = check.check(subject, Standalone("host"), [x], relative=1e-6)
    assert not strict.fine


def test_models_as_data_refuse_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="the player computes in float32"):
        pack_data(saved(tmp_path), Options("m", arithmetic="float16"), (), Version(1))
