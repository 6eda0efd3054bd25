# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""An int8 transformer of KWT-1's size: what stays float, its RAM, and its instructions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("onnxruntime", reason="the quantiser is onnxruntime's")

from tests.support.interpret import interpret
from tests.support.transformers import KWT_1
from tinyml import harness
from tinyml.ops.attention.attention_int8 import AttentionInt8
from tinyml.ops.normalization.normalization import Normalize
from tinyml.ops.quantization.quantize import Dequantize, Quantize
from tools.transformer_figures import compiled, figures, inputs, quantized

ONE_LAYER = replace(KWT_1, layers=1)
MOST = {"qemu-cortex-m4": 1.25, "qemu-cortex-m55": 0.38}
"""Instructions per multiplication."""


@pytest.fixture(scope="module")
def model() -> bytes:
    return quantized(ONE_LAYER)


def test_only_normalisations_stay_float(model: bytes) -> None:
    graph = compiled(model, "cortex-m4").graph
    real = [
        layer.op
        for layer in graph.layers()
        if any(t is not None and t.dtype.is_float for t in (*layer.inputs, *layer.outputs))
    ]
    between = [op for op in real if not isinstance(op, Quantize | Dequantize) and not op.movement]
    assert len(between) == 2 * ONE_LAYER.layers + 1
    assert all(isinstance(op, Normalize) for op in between)
    assert sum(isinstance(node.op, AttentionInt8) for node in graph.nodes) == ONE_LAYER.layers


@pytest.fixture(scope="module")
def two_layers() -> bytes:
    """In parts, the last layer computes only the scores of the token that the classifier reads."""
    return quantized(replace(KWT_1, layers=2))


@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m55"])
def test_ram_is_a_third_of_that_of_the_parts(two_layers: bytes, target: str) -> None:
    apart, joined = (compiled(two_layers, target, part).summary["arena_bytes"] for part in (True, False))
    assert 3 * joined <= apart


def test_the_device_computes_what_python_does(model: bytes) -> None:
    made = compiled(model, "cortex-m4")
    sample = {"input": inputs(ONE_LAYER)[:1]}
    (found,) = harness.run_files(made.files, "qemu-cortex-m4", [sample]).outputs
    wanted = interpret(made.graph, sample)["scores"]
    assert float(np.std(wanted)) > 0
    step = float(np.min(np.diff(np.unique(wanted))))
    assert float(np.abs(found["scores"] - wanted).max()) <= 2 * step  # float normalisations, rounded to bytes


@pytest.mark.deep
@pytest.mark.parametrize("machine", MOST)
def test_instructions(machine: str) -> None:
    assert figures(quantized(), machine).per_mac <= MOST[machine]
