# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""``--auto`` on a transformer, whose many conversions can make a mixture dearer than float."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnxruntime", reason="the quantiser is onnxruntime's")

from tests.support.onnx_models import model, node
from tinyml.cost.price import instructions
from tinyml.quantize.engine import quantize
from tinyml.settings.quantize_request import Goal, Request

F = np.float32
STEPS, WIDTH, HEADS = 6, 16, 2


def transformer() -> bytes:
    """A projection, one encoder block with two heads, and a dense layer."""
    rng = np.random.default_rng(4)
    nodes: list[Any] = []
    constants: dict[str, Any] = {
        "heads": np.array([0, STEPS, HEADS, WIDTH // HEADS]),
        "flat": np.array([0, STEPS, WIDTH]),
        "scale": np.array((WIDTH // HEADS) ** -0.5, F),
    }

    def dense(x: str, y: str, inputs: int = WIDTH, outputs: int = WIDTH) -> None:
        constants[f"{y}_w"] = rng.normal(0, inputs**-0.5, (inputs, outputs)).astype(F)
        constants[f"{y}_b"] = rng.normal(0, 0.05, outputs).astype(F)
        nodes.extend([node("MatMul", f"{x} {y}_w", f"{y}_m"), node("Add", f"{y}_m {y}_b", y)])

    def norm(x: str, y: str) -> None:
        constants[f"{y}_s"] = rng.uniform(0.8, 1.2, WIDTH).astype(F)
        nodes.append(node("LayerNormalization", f"{x} {y}_s", y))

    dense("x", "e", 5)
    norm("e", "n")
    for part, perm in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])):
        dense("n", part)
        nodes.append(node("Reshape", f"{part} heads", f"{part}_r"))
        nodes.append(node("Transpose", f"{part}_r", f"{part}_t", perm=perm))
    nodes += [
        node("MatMul", "q_t k_t", "scores"),
        node("Mul", "scores scale", "scaled"),
        node("Softmax", "scaled", "shares", axis=-1),
        node("MatMul", "shares v_t", "seen"),
        node("Transpose", "seen", "seen_t", perm=[0, 2, 1, 3]),
        node("Reshape", "seen_t flat", "seen_f"),
    ]
    dense("seen_f", "o")
    nodes.append(node("Add", "e o", "r"))
    norm("r", "m")
    dense("m", "y", WIDTH, 3)
    return model(nodes, {"x": [1, STEPS, 5]}, "y", **constants)


def test_auto_is_not_dearer_than_float(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(transformer())
    np.savez(tmp_path / "c.npz", x=np.random.default_rng(1).normal(0, 1, (12, STEPS, 5)).astype(F))
    found = quantize(
        tmp_path / "m.onnx", Request(tmp_path / "c.npz", method="minmax", auto=Goal(decibels=45))
    )
    choices = {choice.name: choice for choice in found.report.choices}
    assert {"float in the fewest layers", "float everywhere"} <= {*choices}
    assert all(choice.decibels >= 45 for choice in choices.values())
    known = [choice.instructions for choice in choices.values() if choice.instructions is not None]
    (taken,) = (choice for choice in choices.values() if choice.taken)
    assert taken.instructions == min(known) == instructions(found.model.SerializeToString(), "cortex-m4")
    assert len(set(known)) > 1
    by_type = {layer.name: layer.kind for layer in found.report.layers}
    assert [by_type[name] for name in ("n", "m")] == ["float", "float"], "in the table, like all others"
