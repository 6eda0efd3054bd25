# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Bounds from machine code: small functions whose bounds are known, models, and faults that must be found."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from tests.support.sketch import Sketch
from tinyml import harness
from tinyml.base.errors import ConfigError
from tinyml.bounds import Bound, NoBoundError, bound_files, bound_image
from tinyml.bounds.image_bounds import TOTALS
from tinyml.bounds.images import built_models
from tinyml.cores.toolchains import ARM
from tinyml.datasets import arrays
from tinyml.emit.model import Provenance
from tinyml.harness import tools
from tinyml.harness.generated import read_generated
from tinyml.ir import Array, Quant
from tinyml.ops.conv.conv import Conv
from tinyml.pipeline import Options, compile_graph, compile_model
from tinyml.verbs.cli import main

ROOT = Path(__file__).resolve().parents[2]
DIGITS = ROOT / "samples/digits/model.onnx"


def bound_of(assembly: str, folder: Path, core: str = "cortex-m4") -> Bound:
    """The bound of ``f_run``; ``buffer`` holds 64 unknown bytes, ``table`` is constant."""
    text = (
        ".syntax unified\n.thumb\n.text\n.type f_run, %function\n.thumb_func\n.global f_run\nf_run:\n"
        f"{assembly}\n.size f_run, . - f_run\n"
        ".section .rodata\n.align 2\ntable: .word 7, 5, 3, 1\n"
        ".bss\n.type buffer, %object\n.size buffer, 64\nbuffer: .space 64\n"
        ".type other, %object\n.size other, 4\nother: .space 4\n"
    )
    (folder / "f.s").write_text(text)
    image = folder / "f.elf"
    flags = [f"-mcpu={core}", "-mthumb", "-nostdlib", "-Wl,-Ttext=0x8000,-Tbss=0x20000000,-e,f_run"]
    compiler = tools.cross_compiler(ARM).path
    subprocess.run([str(compiler), *flags, str(folder / "f.s"), "-o", str(image)], check=True)
    return bound_image(image, "f", core, "")


def test_a_loop_by_a_constant_is_exact(tmp_path: Path) -> None:
    found = bound_of("ldr r0, =table\nldr r1, [r0]\n1: subs r1, #1\nbne 1b\nbx lr", tmp_path)
    assert (found.instructions, found.least_instructions) == (2 + 2 * 7 + 1, 2 + 2 * 7 + 1)
    assert found.branches_by_data == 0
    assert found.stack_bytes == 0
    assert found.written == ()
    # the second load needs what the first loads; seven jumps refill the pipeline
    assert found.cycles == 2 + 2 + 7 * 2 + 6 * 3 + 1 + 3


def test_the_longer_way_by_data_counts(tmp_path: Path) -> None:
    ways = "ldr r0, =buffer\nldr r1, [r0]\ncmp r1, #3\nbgt 1f\nnop\nnop\nnop\n1: bx lr"
    found = bound_of(ways, tmp_path)
    assert (found.instructions, found.least_instructions) == (8, 5)


def test_ways_with_returns_of_their_own_count(tmp_path: Path) -> None:
    ways = "ldr r0, =buffer\nldr r1, [r0]\ncmp r1, #3\nbgt 1f\nnop\nnop\nnop\nbx lr\n1: bx lr"
    found = bound_of(ways, tmp_path)
    assert (found.instructions, found.least_instructions) == (8, 5)
    turned = "ldr r0, =buffer\nldr r1, [r0]\ncmp r1, #3\nbgt 1f\nbx lr\n1: nop\nnop\nbx lr"
    assert bound_of(turned, tmp_path).instructions == 7


def test_a_way_by_data_spoils_what_differs(tmp_path: Path) -> None:
    """The counter is 4 or 2 afterwards, so the loop behind it has no bound."""
    start = "ldr r0, =buffer\nldr r1, [r0]\nmovs r2, #4\ncmp r1, #3\nbgt 1f\nmovs r2, #{}\n1: "
    loop = "2: subs r2, #1\nbne 2b\nbx lr"
    assert bound_of(start.format(4) + loop, tmp_path).instructions == 6 + 2 * 4 + 1
    with pytest.raises(
        NoBoundError, match=r"a loop that ends by data, without a known limit, at .* in f_run"
    ):
        bound_of(start.format(2) + loop, tmp_path)


def test_memory_that_differs_is_unknown_too(tmp_path: Path) -> None:
    code = (
        "sub sp, #8\nldr r0, =buffer\nldr r1, [r0]\nmovs r2, #4\nstr r2, [sp]\ncmp r1, #3\nbgt 1f\n"
        "movs r2, #{}\nstr r2, [sp]\nmovs r2, #4\n1: ldr r3, [sp]\n2: subs r3, #1\nbne 2b\nadd sp, #8\nbx lr"
    )
    found = bound_of(code.format(4), tmp_path)
    assert found.instructions == 10 + 1 + 8 + 2
    assert found.stack_bytes == 8
    with pytest.raises(NoBoundError, match="ends by data"):
        bound_of(code.format(5), tmp_path)


def test_an_early_end_is_bounded_by_the_counter(tmp_path: Path) -> None:
    start = "ldr r0, =buffer\nmovs r1, #9\n"
    search = "1: ldrb r2, [r0], #1\ncmp r2, #7\nbeq 2f\nsubs r1, #1\nbne 1b\n2: bx lr"
    found = bound_of(start + search, tmp_path)
    assert (found.instructions, found.least_instructions) == (2 + 9 * 5 + 1, 2 + 3 + 1)


def test_a_counter_under_a_condition_by_data_is_known(tmp_path: Path) -> None:
    """As the compiler's library divides: the counter is only moved, and tested, if something is left."""
    start = "ldr r0, =buffer\nmovs r1, #5\n"
    loop = "1: ldrb r2, [r0], #1\ncmp r2, #0\nit ne\nsubsne r1, r1, #1\nbne 1b\nbx lr"
    found = bound_of(start + loop, tmp_path)
    assert (found.instructions, found.least_instructions) == (2 + 5 * 5 + 1, 2 + 5 + 1)


def test_a_comparison_under_a_condition_by_data_is_known(tmp_path: Path) -> None:
    """Two ends of a loop in one branch, one of them by a counter."""
    start = "ldr r0, =buffer\nmovs r1, #0\nmovs r3, #6\n"
    loop = "1: ldrb r2, [r0], #1\nadds r1, #1\ncmp r2, #0\nit ne\ncmpne r3, r1\nbgt 1b\nbx lr"
    found = bound_of(start + loop, tmp_path)
    assert (found.instructions, found.least_instructions) == (3 + 6 * 6 + 1, 3 + 6 + 1)


def test_a_register_is_zero_where_a_branch_says_so(tmp_path: Path) -> None:
    code = "ldr r0, =buffer\nldrb r2, [r0]\ncbnz r2, 2f\nadds r2, #3\n1: subs r2, #1\nbne 1b\n2: bx lr"
    found = bound_of(code, tmp_path)
    assert (found.instructions, found.least_instructions) == (3 + 1 + 3 * 2 + 1, 3 + 1)


def test_each_entry_of_a_table_is_a_way(tmp_path: Path) -> None:
    switch = (
        "ldr r0, =buffer\nldrb r1, [r0]\ncmp r1, #2\nbhi 9f\ntbb [pc, r1]\n"
        "0: .byte (1f - 0b) / 2, (2f - 0b) / 2, (3f - 0b) / 2, 0\n"
        "1: b 9f\n2: nop\nnop\nnop\nb 9f\n3: nop\nb 9f\n9: bx lr"
    )
    found = bound_of(switch, tmp_path)
    assert (found.instructions, found.least_instructions) == (5 + 4 + 1, 4 + 1)


def test_ways_meet_at_the_start_of_a_loop(tmp_path: Path) -> None:
    """A branch before the start of its loop, which it runs into from above: 3 ways in each of 40 turns."""
    loop = (
        "ldr r0, =buffer\nmovs r1, #40\nb 3f\n"
        "1: cmp r2, #2\nbeq 4f\n2: subs r1, #1\nbeq 5f\n"
        "3: ldrb r2, [r0]\ncmp r2, #3\nble 1b\nnop\nsubs r1, #1\nbne 3b\n5: bx lr\n4: nop\nnop\nb 2b"
    )
    found = bound_of(loop, tmp_path)
    assert (found.instructions, found.least_instructions) == (3 + 40 * 10 + 1, 3 + 40 * 6 + 1)


KERNEL = (
    "push {{lr}}\nbl kernel\npop {{pc}}\n.size f_run, . - f_run\n"
    ".macro function name\n.type \\name, %function\n.thumb_func\n\\name:\n.endm\n"
    "function kernel\npush {{r4, lr}}\nldr r5, =buffer\nmovs r0, #{total}\nbl {states}\nmovs r4, #10\n"
    "1: ldrb r2, [r5]\ncbz r2, 2f\nbl part\n2: subs r4, #1\nbne 1b\npop {{r4, pc}}\n"
    "function {states}\nbx lr\n.size {states}, 2\n{part}\n.size part, . - part\n"
)
AROUND = 3 + 6 + 1 + 10 * 5  # with a call of the part in each turn


@pytest.mark.parametrize("total", [0, 3, 10])
def test_a_total_of_calls_counts(total: int, tmp_path: Path) -> None:
    """The part is called in up to ten turns, and takes four instructions at most."""
    part = "function part\nldrb r2, [r5, #1]\ncbz r2, 3f\nnop\n3: bx lr"
    found = bound_of(KERNEL.format(states="calls_of_part", total=total, part=part), tmp_path)
    assert found.instructions == AROUND + 4 * total
    assert found.least_instructions == 3 + 6 + 1 + 10 * 4
    assert found.assumptions[-1] == f"part {TOTALS}"


def test_a_call_with_a_total_ends_when_it_returns(tmp_path: Path) -> None:
    part = "function part\nnop\nb behind\n.size part, . - part\nfunction rest\nbehind: nop\nbx lr"
    text = KERNEL.format(states="calls_of_part", total=2, part=part).replace(".size part, . - part\n", "", 1)
    assert bound_of(text, tmp_path).instructions == AROUND + 2 * 4


def test_a_total_of_turns_counts(tmp_path: Path) -> None:
    """Two turns in each of ten calls; what is around the loop counts as often as it runs."""
    part = "function part\nmovs r3, #2\n3: nop\nsubs r3, #1\nbne 3b\nbx lr"
    found = bound_of(KERNEL.format(states="turns_of_part", total=7, part=part), tmp_path)
    assert found.instructions == AROUND + 10 * 2 + 7 * 3


def test_a_total_of_the_model_itself_does_not_count(tmp_path: Path) -> None:
    """It is said in NAME_run(), which has other layers; and for a name that is no part."""
    part = "function part\nbx lr"
    said = KERNEL.format(states="calls_of_part", total=2, part=part)
    assert bound_of(said, tmp_path).instructions == AROUND + 2
    inside = said.replace("bl kernel\n", "movs r0, #2\nbl calls_of_part\nbl part\nbl part\nbl part\n")
    assert bound_of(inside, tmp_path).instructions == 3 - 1 + 2 + 1 + 3 * 2
    named = said.replace("calls_of_part", "calls_of_another")
    assert bound_of(named, tmp_path).instructions == AROUND + 10


def test_written_bytes_have_names(tmp_path: Path) -> None:
    found = bound_of("ldr r0, =buffer\nmovs r1, #0\nstrh r1, [r0, #62]\nstr r1, [r0, #64]\nbx lr", tmp_path)
    assert [(one.symbol, one.bytes) for one in found.written] == [("buffer", 2), ("other", 4)]


@pytest.mark.parametrize(
    "code, why",
    [
        ("ldr r0, =table\nstr r0, [r0]\nbx lr", "a store to 0x0000.*, which is no RAM of the image"),
        ("ldr r0, =buffer\nldr r0, [r0]\nbx r0", "a jump whose target depends on data"),
        ("ldr r0, =buffer\nldr r0, [r0]\nblx r0\nbx lr", "a call whose target depends on data"),
        ("ldr r0, =buffer\nldr r0, [r0]\nsub sp, r0\nbx lr", "the stack pointer depends on data"),
        ("push {lr}\nbl f_run\npop {pc}", "calls nest too deeply"),
        ("bkpt 1\nbx lr", r"code that could not be decoded, at 0x8000 in f_run \(bkpt"),
    ],
)
def test_what_has_no_bound_is_refused(code: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(NoBoundError, match=why):
        bound_of(code, tmp_path)


def test_a_store_by_data_is_an_assumption(tmp_path: Path) -> None:
    found = bound_of("ldr r0, =buffer\nldrb r1, [r0]\nstrb r1, [r0, r1]\nbx lr", tmp_path)
    assert found.instructions == 4
    assert "f_run stores to addresses that depend on data" in found.assumptions[0]


PLACES = "movs r1, #0\nmovs r2, #60\nvmov q1[2], q1[0], r1, r1\nvmov q1[3], q1[1], r2, r2\n"


def test_a_vector_is_stored_where_the_words_of_another_say(tmp_path: Path) -> None:
    code = f"ldr r0, =buffer\n{PLACES}vstrb.32 q0, [r0, q1]\nbx lr"
    found = bound_of(code, tmp_path, "cortex-m55")
    assert [(one.symbol, one.bytes) for one in found.written] == [("buffer", 2)]
    assert not found.assumptions
    two = code.replace("vstrb", "movs r3, #2\nvctp.32 r3\nvpst\nvstrbt")
    found = bound_of(two.replace("q1[3], q1[1], r2, r2", "q1[3], q1[1], r1, r2"), tmp_path, "cortex-m55")
    assert [(one.symbol, one.bytes) for one in found.written] == [("buffer", 1)]
    found = bound_of(code.replace("vstrb", "vldrw.u32 q1, [r0]\nvstrb"), tmp_path, "cortex-m55")
    assert "f_run stores to addresses that depend on data" in found.assumptions[0]


@pytest.mark.parametrize(
    "core, filters",
    [("cortex-m4", 1), *((f"cortex-m{core}", filters) for core in (4, 55) for filters in (2, 4, 7))],
)
def test_layers_whose_windows_are_where_they_are_have_exact_bounds(core: str, filters: int) -> None:
    sketch = Sketch(seed=filters)
    x = sketch.input((1, 9, 11, 3), quant=Quant.per_tensor(0.05, 3))
    values = sketch.rng.integers(-60, 61, (filters, 3, 3, 3)).astype(np.int8)
    w = sketch.build.constant(values, "w", Quant((0.01,) * filters, (0,) * filters, 0))
    op = Conv((2, 2), pads=(1, 1, 1, 1), few=True)
    graph = sketch.graph(sketch.add(op, x, w, sketch.bias(filters), quant=Quant.per_tensor(0.1, 4)))
    compiled = compile_graph(graph, "few", Provenance("few", "0" * 64, ""), Options("few", core))
    machine = harness.find_machine(f"qemu-{core}")
    found = bound_files(compiled.files, machine)
    run = harness.run_files(compiled.files, machine.name, [arrays.pattern_inputs(graph)])
    assert run.instructions is not None
    assert found.instructions == found.least_instructions == run.instructions[0]


def adversaries() -> list[Array]:
    """Zeros, both extremes, numbers that are no numbers, and random ones."""
    random = np.random.default_rng(38)
    constants = [np.full((1, 1, 8, 8), value) for value in (0, 1, -1, 1e30, -1e30, np.nan, 1e-40)]
    return [*constants, *(random.normal(0, 4, (1, 1, 8, 8)) for _ in range(3))]


@pytest.mark.parametrize("core, close", [("cortex-m3", 1.1), ("cortex-m4", 1.01), ("cortex-m55", 1.01)])
def test_no_run_exceeds_the_bound(core: str, close: float) -> None:
    """A float input is quantised by the compiler's library on the M3, whose worst case needs denormals."""
    machine = harness.find_machine(f"qemu-{core}")
    compiled = compile_model(DIGITS, Options("digits", core))
    found = bound_files(compiled.files, machine)
    (name,) = compiled.graph.inputs
    shape = compiled.graph.tensors[name].shape
    samples = [{name: values.astype(np.float32).reshape(shape)} for values in adversaries()]
    runs = harness.run_files(compiled.files, machine.name, samples)
    assert runs.instructions is not None
    assert runs.stack_bytes is not None
    assert found.least_instructions <= min(runs.instructions)
    assert max(runs.instructions) <= found.instructions <= close * max(runs.instructions)
    assert runs.stack_bytes <= found.stack_bytes <= runs.stack_bytes + 64
    assert [one.symbol for one in found.written] == ["digits_arena"]
    assert found.written[0].bytes <= compiled.summary["arena_bytes"]
    sums = [layer for layer in found.layers if compiled.summary["layers"][layer.step]["macs"]]
    assert len(sums) == 3
    assert not any(layer.varies for layer in sums)
    assert sum(layer.most for layer in found.layers) == pytest.approx(found.instructions, abs=30)


def changed(files: Mapping[str, str], old: str, new: str) -> dict[str, str]:
    assert old in files["digits.c"]
    return {**files, "digits.c": files["digits.c"].replace(old, new, 1)}


def test_seeded_faults_are_found() -> None:
    """A loop that turns more often, a kernel with a larger frame, a layer that writes outside the arena."""
    machine = harness.find_machine("qemu-cortex-m4")
    files = compile_model(DIGITS, Options("digits", "cortex-m4")).files
    right = bound_files(files, machine)
    loop = "for (int32_t o0 = 0; o0 < 4; o0++)"
    turns = bound_files(changed(files, loop, loop.replace("4", "8")), machine)
    assert turns.instructions > right.instructions + 1000
    body = "static void digits_max_pool1(const int8_t *x, int8_t *y)\n{\n"
    frame = "\tvolatile uint8_t waste[512];\n\twaste[0] = 0;\n"
    deeper = bound_files(changed(files, body, body + frame), machine)
    assert deeper.stack_bytes >= right.stack_bytes + 512 - 392
    stray = "static volatile uint8_t stray;\n\n"
    outside = changed(files, body, stray + body + "\tstray = (uint8_t)x[0];\n")
    assert {one.symbol for one in bound_files(outside, machine).written} == {"digits_arena", "stray"}


def test_the_command_and_the_budget(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["bound", str(DIGITS), "--target", "cortex-m4", "--name", "digits"]
    assert (
        main([*words, "--json", str(tmp_path / "bound.json"), "--instructions", "1000", "--stack", "100"])
        == 1
    )
    said = capsys.readouterr().out
    (found,) = json.loads((tmp_path / "bound.json").read_text())
    assert f"digits: a run can take {found['instructions']:,} instructions, allowed are 1,000" in said
    assert f"a run can take {found['stack_bytes']:,} bytes of stack, allowed are 100" in said
    assert "not shown: interrupts" in said
    compiling = ["compile", str(DIGITS), "--target", "cortex-m4", "-o", str(tmp_path / "out")]
    assert main([*compiling, f"--limit=instructions={found['instructions']}"]) == 0
    assert main([*compiling, f"--limit=instructions={found['instructions'] - 1},the budget"]) != 0
    assert "instructions, the budget allows" in capsys.readouterr().err


def test_the_image_of_a_build(tmp_path: Path) -> None:
    """The folders of a west build: the image, and the generated C of its models beside it."""
    machine = harness.find_machine("qemu-cortex-m4")
    files = compile_model(DIGITS, Options("digits", "cortex-m4")).files
    generated = tmp_path / "tinyml" / "digits"
    for folder in (generated, tmp_path / "zephyr"):
        folder.mkdir(parents=True)
    for name, text in files.items():
        (generated / name).write_text(text)
    image = harness.build(read_generated(generated), machine, tmp_path, harness.Options(lines=True))
    image.path.rename(tmp_path / "zephyr" / "zephyr.elf")
    (built,) = built_models(tmp_path, "digits")
    assert built.bound() == bound_files(files, machine)
    with pytest.raises(ConfigError, match="the image has no model called kws"):
        built_models(tmp_path, "kws")
    (tmp_path / "tinyml" / "other").mkdir()
    (tmp_path / "tinyml" / "other" / "other.c").write_text("/* compiled, and never called */")
    assert len(built_models(tmp_path)) == 1
    with pytest.raises(ConfigError, match=r"lacks the model other: nothing calls it.*\n.*call other_run\(\)"):
        built_models(tmp_path, "other")
