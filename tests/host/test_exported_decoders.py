# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Language models as transformers and PyTorch export them: as onnxruntime, token by token, in float and int8.

The files are recorded; ``tests/support/record_decoders.py`` made them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

pytest.importorskip("onnxruntime", reason="the quantiser is onnxruntime's")

from tests.support.record_decoders import (
    EXPORTERS,
    FOLDER,
    GROUPS,
    HEADS,
    LAYERS,
    LONGEST,
    STATIC,
    TOKENS,
    WIDTH,
    names,
)
from tinyml import harness
from tinyml.compare.reference import OnnxRuntime
from tinyml.importers import load, read_model
from tinyml.ir import Array
from tinyml.ir.interpreter import interpret
from tinyml.ops.attention.attention import Attention
from tinyml.ops.attention.attention_int8 import AttentionInt8
from tinyml.ops.normalization.normalization import Normalize
from tinyml.pipeline import Compiled, Options, compile_model
from tinyml.quantize.engine import quantize
from tinyml.quantize.measure import Noise
from tinyml.reference.session import Session
from tinyml.settings.quantize_request import Request

FILES = (*(f"{family}_{exporter}" for family in GROUPS for exporter in EXPORTERS), STATIC)
TEXTS = 17
SIZE = WIDTH // HEADS
NORMALS = 2 * LAYERS + 1
Run = dict[str, Array]


def groups(name: str) -> int:
    return GROUPS[name.partition("_")[0]]


def settings(name: str) -> dict[str, tuple[int, ...]]:
    return {past: (1, groups(name), LONGEST, SIZE) for past in names()[0]}


def runs(name: str, tokens: Array) -> list[Run]:
    """What the compiled model is given for a text."""
    position = "cache_position" if name == STATIC else "position_ids"
    shape = (1,) if name == STATIC else (1, 1)
    return [
        {"input_ids": np.array([[token]]), position: np.full(shape, place)}
        for place, token in enumerate(tokens)
    ]


def by_onnxruntime(name: str, text: list[Run]) -> list[Array]:
    """The logits of the file as it came, whose caches grow if they do."""
    session = Session(onnx.load(FOLDER / f"{name}.onnx"))
    before, after = names()
    rows = LONGEST if name == STATIC else 0
    pasts = {past: np.zeros((1, groups(name), rows, SIZE), np.float32) for past in before}
    found = []
    for place, run in enumerate(text):
        mask = {} if name == STATIC else {"attention_mask": np.ones((1, place + 1), np.int64)}
        results = session.run({**run, **mask, **pasts})
        pasts = {past: results[present] for past, present in zip(before, after, strict=True)}
        found.append(results["logits"])
    return found


def count(made: Compiled, kind: type) -> int:
    return sum(isinstance(layer.op, kind) for layer in made.graph.layers())


def tokens(seed: int) -> Array:
    return np.random.default_rng(seed).integers(0, TOKENS, LONGEST)


@pytest.mark.parametrize("name", FILES)
def test_as_onnxruntime(name: str) -> None:
    made = compile_model(FOLDER / f"{name}.onnx", Options("net", "host", shapes=settings(name)))
    assert count(made, Attention) == LAYERS
    assert count(made, Normalize) == NORMALS
    text = runs(name, tokens(1))
    found = harness.run_files(made.files, "host", text).outputs
    for ours, theirs in zip(found, by_onnxruntime(name, text), strict=True):
        np.testing.assert_allclose(ours["logits"], theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", FILES)
def test_on_bytes(name: str, tmp_path: Path) -> None:
    """The C equals numpy and onnxruntime's parts of the int8 file in every bit."""
    texts = [runs(name, tokens(seed)) for seed in range(TEXTS)]
    table = {each: np.stack([[run[each] for run in text] for text in texts]) for each in texts[0][0]}
    np.savez(tmp_path / "texts.npz", **table)  # type: ignore[arg-type]
    result = quantize(FOLDER / f"{name}.onnx", Request(tmp_path / "texts.npz"), settings(name))
    int8 = tmp_path / "int8.onnx"
    onnx.save(result.model, int8)
    made = compile_model(int8, Options("net", "host"))
    assert count(made, AttentionInt8) == LAYERS
    caches = [made.graph.tensors[state.tensor] for state in made.graph.states]
    assert [cache.dtype.value for cache in caches] == ["int8"] * 2 * LAYERS
    text = runs(name, tokens(1))
    theirs = OnnxRuntime(read_model(int8), load(int8)).run(text)
    noise = Noise()
    for ours, values, answer, exact in zip(
        harness.run_files(made.files, "host", text).outputs,
        interpret(made.graph, text),
        theirs,
        by_onnxruntime(name, text),
        strict=True,
    ):
        np.testing.assert_array_equal(ours["logits"], values["logits"])
        np.testing.assert_array_equal(ours["logits"], answer.outputs[0])
        noise.add(exact, ours["logits"])
    assert noise.decibels > 15
