# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Decoders with caches on emulated cores, token by token beside onnxruntime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

pytest.importorskip("onnxruntime", reason="the reference is onnxruntime")

from tests.support.growing_decoders import Growing, by_onnxruntime, model, samples, texts
from tinyml import harness
from tinyml.pipeline import Options, compile_model

MACHINES = ("qemu-cortex-m3", "qemu-cortex-m4", "qemu-cortex-m55", "qemu-riscv32")
CHECKED = harness.Options(check_arena=True)
SHAPES = [
    Growing("llama", layers=2, groups=2, many=2, size=8, longest=12),
    Growing("gpt2", layers=1, groups=2, many=1, size=6, longest=12, steps=3, positions=False),
]


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.style)
def test_a_past_that_grows_by_concat(machine: str, shape: Growing, tmp_path: Path) -> None:
    file = model(shape, 2)
    onnx.save(file, tmp_path / "grows.onnx")
    target = harness.find_machine(machine).target.name
    shapes, bounds = {"input_ids": (1, shape.steps)}, {"past_sequence_length": shape.longest}
    made = compile_model(tmp_path / "grows.onnx", Options("net", target, shapes=shapes, bounds=bounds))
    tokens = texts(shape, np.random.default_rng(2))
    found = harness.run_files(made.files, machine, samples(shape, tokens), options=CHECKED).outputs
    for ours, theirs in zip(found, by_onnxruntime(file, shape, tokens), strict=True):
        np.testing.assert_allclose(ours["logits"], theirs, rtol=1e-4, atol=1e-5)
