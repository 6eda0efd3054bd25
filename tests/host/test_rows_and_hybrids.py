# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`run` and `verify` on several rows, models with state, hybrid models, and classes as outputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.stateful import FRAME, stream
from tests.support.tflite_writer import Call, Part, Value, write
from tinyml import importers
from tinyml.ir import Array, Quant
from tinyml.ir.interpreter import interpret
from tinyml.quantize.measure import decision
from tinyml.verbs.cli import main


@pytest.fixture
def hybrid(tmp_path: Path) -> str:
    """A dense layer with int8 weights and float activations."""
    stored = np.random.default_rng(3).integers(-90, 90, (7, 40)).astype(np.int8)
    w = Value.constant("w", stored, Quant.per_tensor(0.02, 0))
    call = Call("FULLY_CONNECTED", ["x", "w", ""], ["y"], "FullyConnectedOptions")
    path = tmp_path / "hybrid.tflite"
    path.write_bytes(write(Part([Value("x", (1, 40)), w, Value("y", (1, 7))], [call], ["x"], ["y"])))
    return str(path)


def test_compile_says_that_hybrid_layers_are_float(
    hybrid: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compile", hybrid, "-o", str(tmp_path / "out")]) == 0
    assert "note: hybrid (dynamic-range) layers are computed in float" in capsys.readouterr().out


def test_verify_allows_what_litert_loses_in_hybrid_layers(
    hybrid: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    assert main(["verify", hybrid]) == 0
    printed = capsys.readouterr().out
    assert "note: hybrid (dynamic-range)" in printed
    assert main(["verify", hybrid, "--tolerance", "1e-5"]) == 3


def test_verify_is_exact_on_hybrid_layers_against_numpy(
    hybrid: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", hybrid, "--reference", "numpy"]) == 0
    assert "(allowed 0.05)" not in capsys.readouterr().out


def test_a_model_with_state_steps_through_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Equal frames give different outputs as long as the ring has not forgotten its first content."""
    model, given, saved = tmp_path / "stream.tflite", tmp_path / "x.npz", tmp_path / "y.npz"
    model.write_bytes(stream())
    frames = np.ones((6, *FRAME[1:]), np.float32)
    np.savez(given, x=frames)
    assert main(["run", str(model), "--input", str(given), "--output", str(saved)]) == 0
    with np.load(saved) as content:
        found = content["out0"]
    assert found.shape == (6, 3)
    graph = importers.load(model)
    runs = interpret(graph, [{"x": frame[None]} for frame in frames])
    wanted = np.concatenate([values[graph.outputs[0]] for values in runs])
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
    assert not np.allclose(found[0], found[1])
    np.testing.assert_array_equal(found[4], found[5])
    assert main(["verify", str(model), "--input", str(given), "--reference", "numpy"]) == 0
    assert "sample 5" in capsys.readouterr().out


@pytest.mark.parametrize(
    "output, expected",
    [
        (np.array([7], np.int64), 7),  # ArgMax
        (np.array([[0]], np.int32), 0),
        (np.array(True), 1),
        (np.array([0.4], np.float32), 0),  # a probability
        (np.array([0.6], np.float32), 1),
        (np.array([0.1, 0.2, 0.7], np.float32), 2),
        (np.array([[3, -4]], np.int8), 0),
    ],
)
def test_decision(output: Array, expected: int) -> None:
    assert decision(output) == expected
