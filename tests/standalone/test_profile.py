# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Profiling on every core: the layers add up to the whole, and profiling costs nothing when off."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tinyml import arrays, harness
from tinyml.cli import main
from tinyml.errors import ConfigError
from tinyml.pipeline import Options, compile_model
from tinyml.report.collect import collect

DIGITS = Path(__file__).resolve().parents[2] / "samples" / "digits" / "model.onnx"
MACHINES = [name for name, machine in harness.MACHINES.items() if machine.clock]


@pytest.mark.parametrize("machine", MACHINES)
def test_layers_add_up(machine: str) -> None:
    target = harness.find_machine(machine).target.name
    report = collect(DIGITS, Options(target=target, kernels="portable"), machine)
    assert report.measured is not None
    spent = [layer.instructions or 0 for layer in report.layers]
    assert all(count > 0 or layer.free for layer, count in zip(report.layers, spent, strict=True))
    # Calls in the profiled build pass their arguments through the macro: a few instructions each.
    assert abs(sum(spent) - report.measured.instructions) <= 20 * len(spent)
    assert report.measured.other_ram_bytes == 0


@pytest.mark.parametrize("machine", MACHINES)
def test_profiling_changes_no_output_and_costs_nothing_when_off(machine: str) -> None:
    target = harness.find_machine(machine).target.name
    compiled = compile_model(DIGITS, Options(target=target, kernels="portable"))
    samples = [arrays.pattern_inputs(compiled.graph)]
    plain = harness.run_files(compiled.files, machine, samples)
    bare = {
        name: text.replace("TINYML_LAYER(", "JUST(").replace('#include "model.h"', JUST)
        for name, text in compiled.files.items()
    }
    without = harness.run_files(bare, machine, samples)
    assert plain.instructions == without.instructions
    assert plain.footprint == without.footprint
    profiled = harness.run_files(compiled.files, machine, samples, options=harness.Options(profile=True))
    assert profiled.layers is not None
    for name, array in plain.outputs[0].items():
        np.testing.assert_array_equal(profiled.outputs[0][name], array)


JUST = '#include "model.h"\n#define JUST(index, call) call'


def test_host_does_not_count() -> None:
    compiled = compile_model(DIGITS, Options(target="host"))
    with pytest.raises(ConfigError, match="does not count"):
        harness.run_files(
            compiled.files,
            "host",
            [arrays.pattern_inputs(compiled.graph)],
            options=harness.Options(profile=True),
        )


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "p.json"
    assert main(["profile", str(DIGITS), "--on", "qemu-cortex-m4", "--json", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "instructions" in printed
    assert "MAC per instruction" in printed
    assert '"instructions"' in out.read_text()
