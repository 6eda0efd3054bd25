# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The cases of tests/first_sight, which ``python -m tools.first_sight`` runs too."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.first_sight import Refused, Right, all_cases, complaint
from tests.support.onnx_models import model, node

CASES = all_cases()


def relu() -> bytes:
    return model([node("Relu", "x", "y")], {"x": [1, 3]}, "y")


@pytest.mark.parametrize("name", CASES)
def test_first_sight(name: str) -> None:
    case = CASES[name]
    if isinstance(case, Right):
        pytest.importorskip("ai_edge_litert" if case.suffix == "tflite" else "onnxruntime")
    assert not complaint(case)


def test_a_case_that_fails_says_why() -> None:
    assert "not a model" in complaint(Right("nothing", lambda: b"nothing"))
    assert complaint(Refused("fine", relu, ("no",))) == "it compiles"
    assert "lacks ['purple']" in complaint(Refused("nothing", lambda: b"nothing", ("purple",)))


def test_every_module_has_cases() -> None:
    folder = Path(__file__).parents[1] / "first_sight"
    modules = {path.stem for path in folder.glob("[a-z]*.py")}
    assert modules == {name.split("/")[0] for name in CASES}
