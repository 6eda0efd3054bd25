# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""samples/writer: its int8 model is about as good as the float one, and computes the same everywhere."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

pytest.importorskip("onnxruntime", reason="the reference is onnxruntime")

import tinyml
from tinyml import harness
from tinyml.compare.reference import OnnxRuntime
from tinyml.importers import load, read_model
from tinyml.ir import Array
from tinyml.ir.interpreter import interpret
from tinyml.pipeline import Compiled, Options, compile_model
from tools import page_tables
from tools.environment import ROOT

WRITER = ROOT / "samples" / "writer"
INT8, FLOAT = WRITER / "model.onnx", WRITER / "model_float.onnx"
PARTS = ("held_back", "quantize", "export", "language_model", "text")


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, ModuleType]]:
    """The sample's modules, which do not stay: other samples have modules of the same names."""
    monkeypatch.syspath_prepend(WRITER)
    for name in PARTS:
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield {name: importlib.import_module(name) for name in PARTS}
    for name in PARTS:
        sys.modules.pop(name, None)


def compiled(path: Path) -> Compiled:
    return compile_model(path, Options("writer", "host"))


def test_int8_needs_hardly_more_bits_than_float(parts: dict[str, ModuleType]) -> None:
    lines = parts["text"].held_back()[::4]
    int8, real = (parts["held_back"].bits_per_character(path, lines) for path in (INT8, FLOAT))
    assert 1.5 < real < 1.8
    assert abs(int8 - real) < 0.04


def test_caches_are_bytes_in_the_plan() -> None:
    int8, real = compiled(INT8), compiled(FLOAT)
    for made, name in ((int8, "int8"), (real, "float32")):
        caches = [made.graph.tensors[state.tensor] for state in made.graph.states]
        assert [(cache.dtype.value, cache.shape) for cache in caches] == [(name, (1, 2, 96, 16))] * 4
    assert 4 * int8.summary["state_bytes"] == real.summary["state_bytes"]
    assert int8.plan.arena_bytes < real.plan.arena_bytes


def test_c_equals_numpy_and_onnxruntime(parts: dict[str, ModuleType]) -> None:
    """Two texts, one after the other, until the caches are full."""
    made = compiled(INT8)
    lines = [parts["text"].numbers(["", line]) for line in parts["text"].held_back()]
    data = parts["quantize"].runs([line for line in lines if len(line) >= parts["export"].ROWS][:2])
    runs: list[dict[str, Array]] = [
        {name: data[name][text, place] for name in data} for text in range(2) for place in range(96)
    ]
    ours = harness.run_files(made.files, "host", runs).outputs
    theirs = OnnxRuntime(read_model(INT8), load(INT8)).run(runs)
    for found, values, answer in zip(ours, interpret(made.graph, runs), theirs, strict=True):
        np.testing.assert_allclose(found["probabilities"], values["probabilities"], rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(found["probabilities"], answer.outputs[0], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    "core,title", [("cortex-m4", "Cortex-M4"), ("cortex-m3", "Cortex-M3, without an FPU")]
)
def test_the_estimate_is_that_of_the_last_character(core: str, title: str) -> None:
    """Of a run that sees all keys; no figure was fitted to this model."""
    found = tinyml.cost(INT8, core, kernels="portable")
    rows = page_tables.written(ROOT / "docs" / "decoders.md", "decoder").splitlines()
    (row,) = (row for row in rows if row.startswith(f"| {title} | int8 |"))
    counted = int(row.split("|")[-2].replace(",", ""))
    assert found.instructions is not None
    assert found.instructions_error is not None
    assert abs(found.instructions / counted - 1) < 0.12
