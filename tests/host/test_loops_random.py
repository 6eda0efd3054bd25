# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Random loops: numpy and C under sanitizers compute what onnxruntime computes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import loop_models
from tests.support.batch import Item, run_batch
from tests.support.interpret import interpret
from tests.support.random_loops import RandomLoop
from tinyml import importers
from tinyml.importers import rolling
from tinyml.ir.verifier import verify
from tinyml.pipeline import Options, compile_model
from tinyml.reference.session import answers

MODELS = 24


def test_random_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also short ones, which would be unrolled."""
    monkeypatch.setattr(rolling, "MOST_LAYERS", 0)
    items, wanted, kept = [], {}, 0
    for seed in range(MODELS):
        model = RandomLoop(seed).model
        sample = loop_models.sample(model, seed)
        names = [one.name for one in model.graph.output]
        expected = dict(zip(names, answers(model, sample), strict=True))
        graph = importers.read(loop_models.file(model))
        verify(graph, "import")
        kept += any(one.op.kind == "Loop" for one in graph.nodes)
        found = interpret(graph, sample)
        for name, array in expected.items():
            np.testing.assert_allclose(found[name], array, rtol=1e-4, atol=1e-4, err_msg=f"{seed} {name}")
        compiled = compile_model(loop_models.file(model), Options(target="host", name=f"loop{seed}"))
        items.append(Item(compiled.name, compiled.files, [sample]))
        wanted[compiled.name] = expected
    assert kept > MODELS * 3 / 4
    for name, outcome in run_batch(items).items():
        assert not outcome.failure, f"{name}: {outcome.failure}"
        for output, array in wanted[name].items():
            np.testing.assert_allclose(
                outcome.outputs[0][output], array, rtol=1e-4, atol=1e-4, err_msg=f"{name} {output}"
            )
