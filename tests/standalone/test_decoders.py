# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Decoders with caches on emulated cores, token by token beside onnxruntime."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest

pytest.importorskip("onnxruntime", reason="the reference is onnxruntime")

from tests.support.growing_decoders import Growing, by_onnxruntime, model, samples, texts
from tinyml import harness
from tinyml.ir.interpreter import interpret
from tinyml.pipeline import Options, compile_model
from tinyml.settings.quantize_request import Request

MACHINES = ("qemu-cortex-m3", "qemu-cortex-m4", "qemu-cortex-m55", "qemu-riscv32")
KERNELS = (
    ("qemu-cortex-m3", 1, "tinyml_attention_s8"),
    ("qemu-cortex-m4", 1, "tinyml_attention_s8"),  # a pair of queries would be the same one twice
    ("qemu-cortex-m4", 3, "tinyml_attention_dsp_s8"),
    ("qemu-cortex-m55", 1, "tinyml_attention_mve_s8"),
)
"""A machine, the tokens of a run, and the kernel of attention."""
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


@pytest.mark.parametrize("machine,steps,kernel", KERNELS)
def test_a_cache_of_bytes(machine: str, steps: int, kernel: str, tmp_path: Path) -> None:
    """Every kernel of attention on bytes, up to a position: all bits are those of numpy."""
    shape = replace(SHAPES[0], steps=steps, longest=12 * steps)
    onnx.save(model(shape, 2), tmp_path / "grows.onnx")
    random = np.random.default_rng(2)
    runs = [samples(shape, texts(shape, random)) for _ in range(4)]
    table = {name: np.stack([[run[name] for run in text] for text in runs]) for name in runs[0][0]}
    np.savez(tmp_path / "texts.npz", **table)  # type: ignore[arg-type]
    target = harness.find_machine(machine).target.name
    request = Request(tmp_path / "texts.npz", method="minmax")
    shapes, bounds = {"input_ids": (1, steps)}, {"past_sequence_length": shape.longest}
    options = Options("net", target, shapes=shapes, bounds=bounds, quantize=request)
    made = compile_model(tmp_path / "grows.onnx", options)
    assert [one.kernel.name for one in made.selected].count(kernel) == shape.layers
    found = harness.run_files(made.files, machine, runs[0], options=CHECKED).outputs
    for ours, values in zip(found, interpret(made.graph, runs[0]), strict=True):
        np.testing.assert_array_equal(ours["logits"], values["logits"])
