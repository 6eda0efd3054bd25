# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Front ends on emulated cores: the same numbers as in numpy, and few instructions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.support.micro_reference import RECORDED
from tinyml import harness
from tinyml.bench import frontends, record
from tinyml.features.settings import from_mapping
from tinyml.pipeline import Options, compile_frontend, compile_model
from tools import benchmarks


@pytest.mark.parametrize("machine", harness.CORES)
def test_micro_features_are_equal_on_every_core(machine: str) -> None:
    frontend = from_mapping({"kind": "micro", "step_ms": 30}, "test")
    with np.load(RECORDED) as file:
        sound = np.concatenate([file["speech"][8000:12800], file["noise"][3000:5400]])
    target = harness.find_machine(machine).target.name
    frames = sound.reshape(-1, 480, 1)
    files = compile_frontend(frontend, "micro", target)
    result = harness.run_files(files, machine, [{"samples": frame} for frame in frames], reset_before={0})
    np.testing.assert_array_equal([out["row"] for out in result.outputs], frontend.compute(sound))
    if machine == "qemu-cortex-m4" and result.instructions:
        assert max(result.instructions) <= 60_000  # TensorFlow's own takes 85,760


@pytest.mark.parametrize("coarse", [False, True])
def test_a_frame_of_mel_bands_is_cheap(tmp_path: Path, coarse: bool) -> None:
    """With sums instead of a fast transform, and the zeros of the filters, it took 1,676,831.

    With filters of int8 and their zeros it took 112,637.
    """
    path = tmp_path / "mel.onnx"
    onnx.save(frontends.mel_bands(coarse), path)
    machine = "qemu-cortex-m4"
    compiled = compile_model(path, Options(name="mel", target="cortex-m4"))
    x = np.random.default_rng(0).normal(0, 1, (1, 480, 1)).astype(np.float32)
    result = harness.run_files(compiled.files, machine, [{"x": x}])
    power = np.abs(np.fft.rfft(x[0, :, 0].astype(np.float64), 512)) ** 2
    (filters,) = (
        chosen.layer.input(1).value for chosen in compiled.selected if "_runs_" in chosen.kernel.name
    )
    np.testing.assert_allclose(result.outputs[0]["y"][0], np.log(power @ filters.T + 1e-6), rtol=1e-4)
    assert result.instructions is not None
    assert result.instructions[0] <= 40_000


KEPT = frontends.load(benchmarks.FRAMES)


@pytest.mark.parametrize("kept", KEPT, ids=lambda kept: f"{kept.name} on {kept.machine}")
def test_no_frame_has_become_more_expensive(kept: frontends.Frame) -> None:
    if record.compiler_name([kept.machine]) != record.load(benchmarks.RECORD).compiler:
        pytest.skip("the record holds for another compiler")
    found = frontends.measure(kept.name, kept.machine)
    assert found.instructions <= 1.02 * kept.instructions, (
        "if that is meant: python -m tools.benchmarks --measure"
    )


def test_every_frame_is_recorded() -> None:
    assert [(f.name, f.machine) for f in KEPT] == frontends.everything(benchmarks.FRAME_MACHINES)
