# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`tinyml verify` of loops, rolled and unrolled: what takes time, and which node is blamed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.support import loop_models as models
from tests.support.tflite_case import f32
from tests.support.tflite_writer import Call, Part, write
from tinyml.compare import bisect
from tinyml.compare.check import check, subject
from tinyml.compare.difference import Tolerance
from tinyml.compare.reference import Answer
from tinyml.datasets.generated_samples import generated
from tinyml.harness import Standalone
from tinyml.importers import tflite_graph
from tinyml.pipeline import Options
from tinyml.verbs import verify
from tinyml.verbs.cli import main


@pytest.mark.parametrize("turns", [2430, 2431])
def test_verify_says_that_many_turns_take_time(
    turns: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those of inner loops count in each turn of the outer one."""
    onnx.save(models.nested_loop(30, 80), tmp_path / "m.onnx")
    monkeypatch.setattr(verify, "MANY_TURNS", turns)
    assert main(["verify", str(tmp_path / "m.onnx"), "--samples", "1"]) == 0
    assert ("runs with 2,430 turns of loops" in capsys.readouterr().out) == (turns == 2430)


def test_verify_shows_what_it_computes(tmp_path: Path) -> None:
    """Each run of the reference is a step."""
    onnx.save(models.gated_scan(30), tmp_path / "m.onnx")
    model = subject(tmp_path / "m.onnx", Options("m", "host"))
    shown: list[tuple[str, int, int]] = []
    samples = generated(model.compiled.graph, 2)
    check(model, Standalone("host"), samples, progress=lambda *step: shown.append(step))
    (c, c2, *reference) = shown
    assert (c, c2) == (("the C, on host", 0, 1), ("the C, on host", 1, 1))
    assert [step[1:] for step in reference] == [(0, 2), (1, 2), (2, 2)]


def test_nodes_with_several_outputs_are_not_blamed() -> None:
    """A reference tells the first output of an UNPACK, and ours has a node for each."""
    values = [f32("x", (2, 3)), f32("a", (3,)), f32("b", (3,)), f32("y", (3,))]
    calls = [
        Call("UNPACK", ["x"], ["a", "b"], "UnpackOptions", {"Num": 2, "Axis": 0}),
        Call("SUB", ["a", "b"], ["y"], "SubOptions"),
    ]
    graph = tflite_graph.read(Path("m.tflite"), write(Part(values, calls, ["x"], ["y"])), {})
    x = np.arange(6, dtype=np.float32).reshape(2, 3) ** 2
    wrong = Answer([x[1]], {"a": x[0], "y": x[1]})
    words = bisect.first_wrong_node(graph, [{"x": x}], [wrong], Tolerance())
    assert (words or "").startswith("Binary 'y' is the first node that differs"), words
