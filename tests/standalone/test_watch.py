# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Watched models on emulated cores: the counters of numpy in every bit, and what they cost."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import tinyml
from tests.support.watching import CHANNELS, model_of_steps, noise, on_device, several, steps, without_cycles
from tinyml import harness
from tinyml.datasets.arrays import pattern_inputs
from tinyml.ir import DType
from tinyml.pipeline import Options, compile_model

MACHINES = ("qemu-cortex-m3", "qemu-cortex-m4", "qemu-cortex-m55", "qemu-riscv32")
DIGITS = Path(__file__).parents[2] / "samples" / "digits" / "model.onnx"


@pytest.mark.parametrize("machine", MACHINES)
def test_counters_are_equal_everywhere(machine: str, tmp_path: Path) -> None:
    target = harness.find_machine(machine).target.name
    compiled = tinyml.compile(
        several(tmp_path), target=target, watch=True, watch_data=tmp_path / "typical.npz", name="m"
    )
    found, expected = on_device(compiled, machine, noise(20, 3, 1.5))
    assert without_cycles(found) == expected.cbor
    assert found.runs == 20


@pytest.mark.parametrize("machine", MACHINES)
def test_channels_of_an_input_in_rows(machine: str, tmp_path: Path) -> None:
    np.save(tmp_path / "typical.npy", steps(100, 1))
    compiled = tinyml.compile(
        model_of_steps(tmp_path),
        target=harness.find_machine(machine).target.name,
        watch=True,
        watch_data=tmp_path / "typical.npy",
        watch_channels=True,
        io="rows",
        name="m",
    )
    found, expected = on_device(compiled, machine, {"x": steps(20, 2)})
    assert without_cycles(found) == expected.cbor
    assert len(found.channels) == CHANNELS


@pytest.mark.parametrize("machine", ["qemu-cortex-m4", "qemu-riscv32"])
def test_integers_too(machine: str) -> None:
    target = harness.find_machine(machine).target.name
    compiled = tinyml.compile(DIGITS, target=target, watch=True, io="int8", name="digits")
    (name,) = compiled.built.graph.inputs
    tensor = compiled.built.graph.tensors[name]
    assert tensor.dtype is DType.INT8
    data = np.random.default_rng(4).integers(-128, 128, (20, *tensor.shape[1:])).astype(np.int8)
    found, expected = on_device(compiled, machine, {name: data})
    assert without_cycles(found) == expected.cbor


@pytest.mark.skipif("TINYML_MODELS" not in os.environ, reason="TINYML_MODELS names no published models")
@pytest.mark.parametrize("machine", ["qemu-cortex-m0", "qemu-cortex-m4", "qemu-riscv32"])
def test_what_keyword_spotting_pays(machine: str) -> None:
    """On Cortex-M4 at most 1,000 bytes of flash, 256 bytes of RAM and 1 % of the instructions."""
    file = Path(os.environ["TINYML_MODELS"]) / "mlperf_kws_int8.tflite"
    target = harness.find_machine(machine).target.name
    results = []
    for watch in (False, True):
        compiled = compile_model(file, Options(name="kws", target=target, watch=watch))
        results.append(harness.run_files(compiled.files, machine, [pattern_inputs(compiled.graph)]))
    plain, watched = results
    assert plain.footprint is not None
    assert watched.footprint is not None
    assert plain.instructions is not None
    assert watched.instructions is not None
    flash = watched.footprint.total.flash - plain.footprint.total.flash
    found = compiled.summary["watch"]
    assert flash == pytest.approx(found["flash_bytes"] + found["code_bytes"], abs=40)
    assert flash <= 1000 or target != "cortex-m4"
    assert watched.footprint.total.ram - plain.footprint.total.ram <= 256
    assert watched.instructions[0] <= 1.01 * plain.instructions[0]
