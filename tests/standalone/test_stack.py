# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The bound on the stack that reports state holds on emulated machines, and is not far from what runs use."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.invalid.onnx_files import file, ones
from tinyml import harness
from tinyml.datasets import arrays
from tinyml.harness import stack
from tinyml.pipeline import Options, compile_model

ROOT = Path(__file__).resolve().parents[2]


def with_library_calls(folder: Path) -> Path:
    """An LSTM, whose cell is called by its address, and functions that come from the C library."""
    nodes = [
        helper.make_node("LSTM", ["x", "w", "r"], ["h"], hidden_size=3),
        helper.make_node("Squeeze", ["h", "axis"], ["s"]),
        helper.make_node("Abs", ["s"], ["a"]),
        helper.make_node("Pow", ["a", "p"], ["b"]),
        helper.make_node("Sin", ["b"], ["c"]),
        helper.make_node("Softmax", ["c"], ["y"]),
    ]
    constants = {
        "w": ones(1, 12, 2),
        "r": ones(1, 12, 3),
        "axis": np.array([1]),
        "p": np.array([0.3], np.float32),
    }
    onnx.save(file(nodes, [4, 1, 2], constants), folder / "library.onnx")
    return folder / "library.onnx"


@pytest.mark.parametrize("machine", ["qemu-cortex-m3", "qemu-cortex-m55", "qemu-riscv32"])
@pytest.mark.parametrize("model", ["digits", "library"])
def test_no_run_exceeds_the_bound(model: str, machine: str, tmp_path: Path) -> None:
    path = ROOT / "samples/digits/model.onnx" if model == "digits" else with_library_calls(tmp_path)
    target = harness.find_machine(machine).target.name
    compiled = compile_model(path, Options(model, target, kernels="portable"))
    samples = [arrays.pattern_inputs(compiled.graph)]
    used = harness.run_files(compiled.files, machine, samples).stack_bytes
    bound = stack.bound_of_files(compiled.files, machine)
    assert used is not None
    assert bound is not None
    assert used <= bound <= used + 2 * stack.LIBRARY_BYTES
