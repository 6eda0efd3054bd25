# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Estimated cycles of real images: exact on a loop that was counted by hand, and no obstacle when absent."""

from __future__ import annotations

from pathlib import Path

import pytest

from tinyml import harness
from tinyml.base.errors import ToolError
from tinyml.cost import mca, plugin
from tinyml.cost.cycles import BY_MCA, MODELS, Cycles, Unknown, run_files
from tinyml.datasets import arrays
from tinyml.harness import tools
from tinyml.pipeline import Compiled, Options, compile_model
from tinyml.report.collect import collect
from tinyml.verbs.cli import main

DIGITS = Path(__file__).resolve().parents[2] / "samples" / "digits" / "model.onnx"
MACHINES = [name for name, m in harness.MACHINES.items() if m.clock and m.target.name in MODELS]

# 1 + 100 * (2 + 1 + MLA + 1 + 1) + 99 jumps * 2 + 1 + 1 + 2, where MLA takes two cycles on the Cortex-M3.
LOOP = r"""
__attribute__((naked)) int model_run(void)
{
    __asm volatile("movs r0, #100\n"
                   "1: ldr r1, [sp]\n"
                   "ldr r2, [sp, #4]\n"
                   "mla r3, r1, r2, r3\n"
                   "subs r0, #1\n"
                   "bne 1b\n"
                   "movs r0, #0\n"
                   "bx lr\n");
}
"""


def compiled(machine: str) -> Compiled:
    return compile_model(
        DIGITS, Options(target=harness.find_machine(machine).target.name, kernels="portable")
    )


def with_loop(model: Compiled) -> dict[str, str]:
    """The model, which does nothing but the loop."""
    text = model.files["model.c"]
    return {**model.files, "model.c": text.replace("int model_run(void)", f"{LOOP}\nint unused(void)")}


@pytest.mark.parametrize(
    "machine,instructions,cycles", [("qemu-cortex-m3", 503, 903), ("qemu-cortex-m4", 503, 803)]
)
def test_loop_counted_by_hand(machine: str, instructions: int, cycles: int) -> None:
    model = compiled(machine)
    result, found = run_files(with_loop(model), machine, [arrays.pattern_inputs(model.graph)])
    assert result.instructions == [instructions]
    assert isinstance(found, Cycles)
    assert found.total == cycles
    assert "estimate" in found.how


@pytest.mark.parametrize("machine", MACHINES)
def test_layers_and_whole(machine: str) -> None:
    """The layers of a profiled image add up to the plain one, and no layer beats one instruction a cycle
    on cores that execute one at a time."""
    target = harness.find_machine(machine).target.name
    model = compiled(machine)
    samples = [arrays.pattern_inputs(model.graph)] * 2
    _, whole = run_files(model.files, machine, samples)
    options = harness.Options(profile=True)
    counted, parts = run_files(model.files, machine, samples, options=options)
    if target in BY_MCA and not mca.knows(target):
        assert isinstance(whole, Unknown)
        assert "llvm-mca" in whole.why
        return
    assert isinstance(whole, Cycles)
    assert isinstance(parts, Cycles)
    assert counted.layers is not None
    assert parts.layers.keys() == counted.layers.keys()
    assert sum(parts.layers.values()) == parts.total == pytest.approx(whole.total, rel=0.05)
    if target not in BY_MCA:
        assert all(parts.layers[step] > count for step, count in counted.layers.items())


def test_absent_without_harm(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def no_compiler() -> None:
        raise ToolError("no C compiler found (gcc)")

    monkeypatch.setattr(tools, "host_compiler", no_compiler)
    report = collect(DIGITS, Options(target="cortex-m4", kernels="portable"), "qemu-cortex-m4")
    assert report.measured is not None
    assert report.measured.instructions > 0
    assert report.measured.cycles_estimated is None
    assert report.measured.cycles_note == "no estimate: no C compiler found (gcc)"
    assert main(["bench", str(DIGITS), "--on", "qemu-cortex-m4", "--kernels", "portable"]) == 0
    assert "cycles of cortex-m4: no estimate: no C compiler found (gcc)" in capsys.readouterr().out


def test_emulator_without_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin, "_interface", lambda image: 99)  # which no QEMU takes
    model = compiled("qemu-cortex-m4")
    samples = [arrays.pattern_inputs(model.graph)]
    result, found = run_files(model.files, "qemu-cortex-m4", samples)
    assert result.instructions
    assert isinstance(found, Unknown)
    assert "plugin" in found.why


def test_commands(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    arguments = [str(DIGITS), "--kernels", "portable", "--on", "qemu-cortex-m4", "--mhz", "100"]
    for verb in ("profile", "report", "bench"):
        assert main([verb, *arguments]) == 0
        printed = capsys.readouterr().out
        assert "est. cycles" in printed
        assert "ms" in printed
        assert "without wait states" in printed
    with pytest.raises(SystemExit):
        main(["bench", *arguments[:-1], "fast"])
    assert "not a clock rate" in capsys.readouterr().err
