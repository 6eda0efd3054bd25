# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Translation validation: what is proved, what is tested, and faults of passes and plans that are found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tinyml.compare.check import Subject, subject
from tinyml.compare.validation import AFFINE, SAME, Part, validate
from tinyml.ir import Graph
from tinyml.memory.plan.validate import PlanError
from tinyml.pipeline import Options, check_plan
from tinyml.verbs.cli import main

ROOT = Path(__file__).resolve().parents[2]
DIGITS = ROOT / "samples" / "digits" / "model.onnx"
STARTS = {"same": SAME, "affine": AFFINE.partition(":")[0]}


@pytest.fixture(scope="module")
def digits() -> Subject:
    return subject(DIGITS, Options("digits", "cortex-m4"))


def verdicts(parts: list[Part]) -> dict[str, str]:
    return {
        part.layers[-1]: "differs" if not part.fine else "proved" if part.proved else "tested"
        for part in parts
    }


def test_convolutions_are_proved_and_pools_are_tested(digits: Subject) -> None:
    parts = validate(digits.imported, digits.compiled.graph)
    found = verdicts(parts)
    assert found["conv1"] == found["conv2"] == found["logits_DequantizeLinear"] == "proved"
    assert found["pool"] == found["dense"] == "tested"
    assert {layer for part in parts for layer in part.layers} == {n.name for n in digits.compiled.graph.nodes}
    hows = [part.how for part in parts if part.proved]
    assert all(any(how.startswith(start) for how in hows) for start in STARTS.values())


def with_constant(graph: Graph, layer: str, operand: int, change: int) -> Graph:
    """A graph whose layer has another constant: the first element is changed."""
    node = next(n for n in graph.nodes if n.name == layer and len(n.inputs) > operand)
    tensor = graph.tensors[node.inputs[operand]]
    values = np.array(tensor.value)
    values.reshape(-1)[0] += change
    return replace(graph, tensors={**graph.tensors, tensor.name: replace(tensor, data=values)})


@pytest.mark.parametrize("layer, operand, change", [("conv2", 1, 8), ("conv2", 2, 20_000), ("dense", 1, 40)])
def test_a_pass_that_changes_a_constant_is_found(
    digits: Subject, layer: str, operand: int, change: int
) -> None:
    """A weight or a bias that is not the one of the file: never proved, and the difference is seen."""
    wrong = with_constant(digits.compiled.graph, layer, operand, change)
    assert verdicts(validate(digits.imported, wrong))[layer] == "differs"


def test_a_small_change_is_not_proved(digits: Subject) -> None:
    """Directed inputs may miss one step of one weight; the coefficients do not."""
    wrong = with_constant(digits.compiled.graph, "conv2", 1, 1)
    assert verdicts(validate(digits.imported, wrong))["conv2"] != "proved"


def test_an_offset_that_moved_is_found(digits: Subject) -> None:
    """The plan's validator is part of it: any tensor of the arena, moved over another."""
    compiled = digits.compiled
    check_plan(compiled)
    name = next(node.outputs[0] for node in compiled.graph.nodes if node.name == "conv2")
    place = compiled.plan.places[name]
    for offset in (place.offset + 4, compiled.plan.arena_bytes):
        places = {**compiled.plan.places, name: replace(place, offset=offset)}
        with pytest.raises(PlanError):
            check_plan(replace(compiled, plan=replace(compiled.plan, places=places)))


def test_the_command_says_what_is_proved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", str(DIGITS), "--validate", "-o", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert f"proved: conv2: {STARTS['affine']}" in said
    assert "tested: pool: 12 directed inputs" in said
    assert "proved: the memory plan" in said
