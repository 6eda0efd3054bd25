# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Profiling on every core: the layers add up to the whole, and profiling costs nothing when off."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import tinyml
from tinyml import harness
from tinyml.base.errors import ConfigError
from tinyml.datasets import arrays
from tinyml.pipeline import Options, compile_model
from tinyml.report.collect import collect
from tinyml.verbs.cli import main

DIGITS = Path(__file__).resolve().parents[2] / "samples" / "digits" / "model.onnx"


@pytest.mark.parametrize("machine", harness.CORES)
def test_layers_add_up(machine: str) -> None:
    target = harness.find_machine(machine).target.name
    report = collect(DIGITS, Options(target=target, kernels="portable"), machine)
    assert report.measured is not None
    spent = [layer.instructions or 0 for layer in report.layers]
    assert all(count > 0 or layer.free for layer, count in zip(report.layers, spent, strict=True))
    # Calls in the profiled build pass their arguments through the macro: a few instructions each.
    assert abs(sum(spent) - report.measured.instructions) <= 20 * len(spent)
    assert report.measured.other_ram_bytes == 0


@pytest.mark.parametrize("machine", harness.CORES)
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


JUST = """#include "model.h"
#define JUST(index, call) do { call; __asm__ volatile("" ::: "memory"); } while (0)
"""
"""A layer without the macro that profiling changes, but with the barrier behind it."""


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
    assert re.search(r"instructions, \d+\.\d\d per MAC", printed)
    assert '"instructions"' in out.read_text()


def test_trace(tmp_path: Path) -> None:
    """A slice per layer that costs something, one after the other; with a clock rate, in microseconds."""
    plain, timed = tmp_path / "plain.json", tmp_path / "timed.json"
    words = ["profile", str(DIGITS), "--on", "qemu-cortex-m4"]
    assert main([*words, "--trace", str(plain)]) == 0
    slices = [event for event in json.loads(plain.read_text())["traceEvents"] if event["ph"] == "X"]
    report = collect(DIGITS, Options(target="cortex-m4"), "qemu-cortex-m4")
    assert [event["dur"] for event in slices] == [
        layer.instructions for layer in report.layers if layer.instructions
    ]
    for one, next_one in pairwise(slices):
        assert one["ts"] + one["dur"] == next_one["ts"]
    assert slices[1]["args"]["kernel"] == "tinyml_conv_pairs_s8"
    assert main([*words, "--mhz", "100", "--trace", str(timed)]) == 0
    events = json.loads(timed.read_text())["traceEvents"]
    assert "100 MHz" in events[1]["args"]["name"]
    found = [event["dur"] for event in events if event["ph"] == "X"]
    cycles = report.layers[2].cycles_estimated or report.layers[2].instructions
    assert cycles
    assert found[1] == pytest.approx(cycles / 100)


@pytest.mark.parametrize("machine", harness.CORES)
def test_connected_to_a_core(machine: str) -> None:
    """`tinyml.connect` without Zephyr: results and, but for the call, instructions of `tinyml.run`."""
    expected = tinyml.run(DIGITS, on=machine)
    assert expected.instructions is not None
    with tinyml.connect(machine, model=DIGITS) as device:
        found = device.run(None)
        spent = device.profile().cycles
    assert np.array_equal(found["logits"], expected["logits"])
    assert abs(spent / expected.instructions[0] - 1) < 0.01
