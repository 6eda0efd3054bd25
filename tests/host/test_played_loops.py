# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Loops that are data: equal to compiled code, and refused where they could leave their memory or not end."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.first_sight import branches
from tests.host import test_loops_kept_tflite as tflite
from tests.host.test_player import assert_equal
from tests.ops import binary
from tests.support import loop_models as models
from tests.support import onnx_models
from tests.support.onnx_models import branch, node
from tests.support.programs import build_program
from tests.support.slot_images import errors
from tinyml import harness
from tinyml.base.errors import ModelError, ToolError
from tinyml.cores.targets import find_target
from tinyml.emit.model import Provenance
from tinyml.harness.program_build import RUNTIME_C, RUNTIME_INCLUDE, SANITIZERS
from tinyml.importers import ModelFile
from tinyml.ir.interpreter import interpret
from tinyml.ops.framework.kernel import Record, Table
from tinyml.ops.framework.play_sheet import PLAYED_LOOPS, PlaySheet
from tinyml.ops.framework.program import NULL, Call, Memory, Operand, Repeat, Step, Turns
from tinyml.pipeline import Options, compile_graph, compile_model
from tinyml.player.call_work import work_of
from tinyml.player.encode import HEADER, checksum, encode
from tinyml.player.kernels import KERNELS
from tinyml.player.program import Program, UnplayableError
from tinyml.player.table import sources, table
from tinyml.slots import image
from tinyml.slots.data import data_image
from tinyml.slots.data_reading import read_data
from tinyml.slots.data_text import describe
from tinyml.slots.play import play_files
from tinyml.slots.version import Version

STEPS = 60
MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    "scan": lambda: models.filter_scan(STEPS),
    "scan, last part first": lambda: models.filter_scan(STEPS, scan_input_directions=[1, 0]),
    "scan, last row first": lambda: models.filter_scan(STEPS, scan_output_directions=[0, 1]),
    "loop": lambda: models.counted_loop(STEPS),
    "loop that ends by its condition": lambda: models.counted_loop(STEPS, STEPS - 11),
    "loop that may not begin": lambda: models.permitted_loop(STEPS),
    "loop with as many steps as an input says": lambda: models.settling_loop(STEPS, begins=True, rows=True),
    "nested": lambda: models.nested_loop(STEPS, STEPS + 10),
    "quantized": lambda: models.qdq_scan(STEPS),
    "on uint8": lambda: models.integer_scan(STEPS),
    "on int8": lambda: models.integer_scan(STEPS, onnx.TensorProto.INT8),
    "nested, with a condition": lambda: models.settling_scan(STEPS),
    "with a recurrent layer": lambda: models.recurrent_scan(STEPS),
    "with a branch": lambda: models.choosing_scan(STEPS),
    "with a dense layer behind it": lambda: models.gated_scan(STEPS, rows=True),
}


@pytest.mark.parametrize("name", MODELS)
def test_loops_are_played_as_they_are_compiled(name: str) -> None:
    model = MODELS[name]()
    compiled = compile_model(models.file(model), Options(target="host"))
    played = data_image(compiled, Version(1, 0, 0, 0))
    assert "tinyml_play_loop" in {kernel.name for kernel in played.kernels}
    text = "\n".join(describe(read_data(played.content)))
    assert "tinyml_play_loop" in text
    for seed in (1, 2):
        assert_equal(played.content, compiled, sample(model, seed), name)


def sample(model: onnx.ModelProto, seed: int) -> dict[str, np.ndarray]:
    found = models.sample(model, seed)
    kinds = {i.name: i.type.tensor_type.elem_type for i in model.graph.input}
    return {
        name: array.astype(onnx.helper.tensor_dtype_to_np_dtype(kinds[name])) for name, array in found.items()
    }


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_a_while_of_tflite_is_played(dtype: str) -> None:
    """One with a state, rows of x that the number of the turn chooses, and a list of all states."""
    compiled = compile_model(ModelFile(Path("loop.tflite"), tflite.model(dtype)), Options(target="host"))
    played = data_image(compiled, Version(1, 0, 0, 0))
    x = np.random.default_rng(1).integers(-100, 100, (tflite.STEPS, tflite.WIDTH)).astype(dtype)
    assert {"tinyml_play_loop", "tinyml_play_update"} <= {kernel.name for kernel in played.kernels}
    assert_equal(played.content, compiled, {"x": x}, dtype)


BRANCHES = {
    "by a rate": (branches.by_rate, {"rate": [np.int64(100), np.int64(101)]}),
    "nested": (branches.by_sum, {}),
}


@pytest.mark.parametrize("name", BRANCHES)
def test_branches_are_played_as_they_are_compiled(name: str, tmp_path: Path) -> None:
    """Without a loop around them; the branch that is not taken makes no calls."""
    made, choices = BRANCHES[name]
    (tmp_path / "m.onnx").write_bytes(made())
    compiled = compile_model(tmp_path / "m.onnx", Options(target="host"))
    played = data_image(compiled, Version(1, 0, 0, 0))
    rng = np.random.default_rng(1)
    inputs = {name: compiled.graph.tensors[name].shape for name in compiled.graph.inputs}
    for turn in range(6):
        given = {name: rng.normal(size=shape).astype(np.float32) for name, shape in inputs.items()}
        given |= {name: values[turn % 2] for name, values in choices.items()}
        assert_equal(played.content, compiled, given, name)


def test_a_layer_before_the_condition_of_its_branch_runs_in_any_case(tmp_path: Path) -> None:
    late = [
        node("MatMul", "x w", "product"),
        node("ReduceSum", "x", "sum", keepdims=0),
        node("Greater", "sum zero", "positive"),
        node(
            "If",
            "positive",
            "y",
            then_branch=branch([node("Identity", "product", "same")], "same"),
            else_branch=branch([node("Neg", "x", "other")], "other"),
        ),
    ]
    constants = {"w": 2 * np.eye(4, dtype=np.float32), "zero": np.float32(0)}
    (tmp_path / "m.onnx").write_bytes(onnx_models.model(late, {"x": [1, 4]}, "y", opset=18, **constants))
    compiled = compile_model(tmp_path / "m.onnx", Options(target="host"))
    played = data_image(compiled, Version(1, 0, 0, 0)).content
    for x, y in ((1, 2), (-1, 1)):
        sample = {"x": np.full((1, 4), x, np.float32)}
        (found,) = interpret(compiled.graph, [sample])
        np.testing.assert_array_equal(found[compiled.graph.outputs[0]], np.full((1, 4), y))
        assert_equal(played, compiled, sample, str(x))


def ifs(depth: int) -> bytes:
    """Ifs inside one another."""
    graph = branch([node("MatMul", "x w", "product")], "product")
    for level in range(depth):
        last = level == depth - 1
        other = branch([node("Neg", "x", f"other{level}")], f"other{level}")
        nodes = [
            node("Greater", f"sum limit{level}", f"large{level}"),
            node("If", f"large{level}", f"y{level}", then_branch=graph, else_branch=other),
        ]
        graph = branch([node("ReduceSum", "x", "sum", keepdims=0), *nodes] if last else nodes, f"y{level}")
    limits = {f"limit{level}": np.float32(-level) for level in range(depth)}
    return onnx_models.model(
        graph.node, {"x": [1, 4]}, f"y{depth - 1}", opset=18, w=np.eye(4, dtype=np.float32), **limits
    )


def test_conditions_count_as_loops(tmp_path: Path) -> None:
    for depth in (PLAYED_LOOPS, PLAYED_LOOPS + 1):
        (tmp_path / f"{depth}.onnx").write_bytes(ifs(depth))
    most, more = (
        compile_model(tmp_path / f"{depth}.onnx", Options(target="host"))
        for depth in (PLAYED_LOOPS, PLAYED_LOOPS + 1)
    )
    played = data_image(most, Version(1, 0, 0, 0)).content
    for x in (1, 0, -0.4, -0.6, -2):
        assert_equal(played, most, {"x": np.full((1, 4), x, np.float32)}, str(x))
    with pytest.raises(UnplayableError, match="more than 4 loops and conditions are inside one another"):
        data_image(more, Version(1, 0, 0, 0))


@pytest.mark.parametrize("function", ["mod", "fmod"])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64"])
def test_remainders_of_integers_are_played(function: str, dtype: str) -> None:
    (case,) = [case for case in binary.CASES if case.name == f"{function}_{dtype}"]
    origin = Provenance(case.name, "0" * 64, "")
    compiled = compile_graph(case.graph(), "model", origin, Options(target="host"))
    assert_equal(data_image(compiled, Version(1, 0, 0, 0)).content, compiled, case.inputs, case.name)


def test_the_image_does_not_grow_with_the_steps() -> None:
    """Calls of 30 and of 300 turns differ in numbers alone."""
    sizes = []
    for steps in (30, 300):
        compiled = compile_model(models.file(models.counted_loop(steps)), Options(target="cortex-m4"))
        sizes.append(read_data(data_image(compiled, Version(1, 0, 0, 0)).content))
    assert [call.kernel for call in sizes[0].run] == [call.kernel for call in sizes[1].run]


def test_a_loop_with_nothing_to_do_is_left_out() -> None:
    model = models.idle_loop(STEPS)
    compiled = compile_model(models.file(model), Options(target="host"))
    assert [node.name for node in compiled.graph.nodes] == ["idle"]
    played = data_image(compiled, Version(1, 0, 0, 0))
    assert not read_data(played.content).run
    assert_equal(played.content, compiled, sample(model, 1), "idle")


def test_more_steps_than_the_bound() -> None:
    """The run of the player fails as that of compiled code does."""
    file = models.file(models.settling_loop(None))
    compiled = compile_model(file, Options(target="host", bounds={"settling": 3}))
    never = {"h0": np.ones((1, models.WIDTH), np.float32), "small": np.float32(-1)}
    soon = {**never, "small": np.float32(100)}
    assert_equal(data_image(compiled, Version(1, 0, 0, 0)).content, compiled, soon, "bounded")
    played = play_files(data_image(compiled, Version(1, 0, 0, 0)).content, "host")
    for files in (compiled.files, played):
        with pytest.raises(ToolError, match="more results than its bound"):
            harness.run_files(files, "host", [never])


def test_a_bound_that_the_self_test_exceeds() -> None:
    """The message names the bound, and says why the model runs when it is packed."""
    file = models.file(models.settling_loop(None))
    compiled = compile_model(file, Options(target="host", bounds={"settling": 1}))
    with pytest.raises(
        ModelError, match=r"self-test .* on noise: Loop 'settling' has more steps than its bound"
    ):
        data_image(compiled, Version(1, 0, 0, 0))


MAIN = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tinyml/player.h>

static int run(void) { return 0; }
static void reset(void) { }

int main(int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i += 2) { /* file, limit of work */
        static struct tinyml_tensor tensors[2];
        uint32_t bytes;
        FILE *const file = fopen(argv[i], "rb");
        uint8_t *image, *arena;
        struct tinyml_player player = {
            .tensors = tensors, .run_model = run, .reset_model = reset, .tensor_count = 2,
            .work_limit = (uint32_t)strtoul(argv[i + 1], NULL, 0), .arena_bytes = ARENA,
        };
        int error;

        fseek(file, 0, SEEK_END);
        bytes = (uint32_t)ftell(file);
        rewind(file);
        image = aligned_alloc(16, bytes);
        arena = malloc(ARENA); /* not a byte more, as the sanitizer knows */
        memset(arena, 0, ARENA);
        player.memory[TINYML_PLAYER_ARENA] = arena;
        if (fread(image, 1, bytes, file) != bytes) {
            return 1;
        }
        error = tinyml_player_open(&player, image, bytes);
        printf("%d", error);
        if (error == 0) {
            printf(" %d", tinyml_player_run(&player));
            for (uint32_t at = 0; at < ARENA; at++) {
                printf(" %u", arena[at]);
            }
        }
        printf("\\n");
        fclose(file);
        free(image);
        free(arena);
    }
    return 0;
}
"""
ARENA = 16
ERRORS = errors(Path(RUNTIME_INCLUDE) / "tinyml" / "slot.h")
NAMES = ("tinyml_play_loop", "tinyml_play_fill", "tinyml_play_abs_f32")
ALWAYS, NEVER = (Table(name, np.asarray([value], np.uint8)) for name, value in (("always", 1), ("never", 0)))


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("loops"), NAMES)


def build(folder: Path, names: Sequence[str]) -> Path:
    """What opens and runs images, with these kernels, under sanitizers."""
    kernels = [KERNELS[name] for name in names]
    (folder / "main.c").write_text(
        MAIN.replace("ARENA", str(ARENA)).replace(f"PLAYER_{ARENA}", "PLAYER_ARENA")
    )
    (folder / "table.c").write_text(table(kernels))
    files = [folder / "main.c", folder / "table.c", *(RUNTIME_C / name for name in sources(kernels))]
    return build_program(
        folder / "program", files, ("-std=c11", "-O1", *SANITIZERS), (RUNTIME_C, RUNTIME_INCLUDE)
    )


def fill(position: int, value: int, *loops: int, size: int = 1, step: int = 0) -> Call:
    record = Record("tinyml_play_fill", "", {".bytes": str(size), ".value": str(value)})
    return Call("tinyml_play_fill", record, (Operand(Memory.ARENA, position, step, loops=loops),), 0)


def loop(turns: int, *steps: Step, condition: Operand = NULL, bounded: bool = False) -> Turns:
    record = Record("tinyml_play_loop", "", {".turns": str(turns), ".bounded": str(int(bounded))})
    return Turns(Call("tinyml_play_loop", record, (condition,), 0), list(steps))


def without_body(words: int) -> Call:
    record = Record("tinyml_play_loop", "", {".turns": "2", ".words": str(words)})
    return Call("tinyml_play_loop", record, (NULL,), 0)


def absolute(step: int) -> Call:
    """A float becomes another one, whose place changes."""
    record = Record("tinyml_play_abs_f32", "", {".count": "1"})
    operands = (Operand(Memory.ARENA, 0), Operand(Memory.ARENA, 4, loops=(step,)))
    return Call("tinyml_play_abs_f32", record, operands, 0)


def nested(depth: int, call: Call) -> Step:
    return loop(2, nested(depth - 1, call)) if depth > 1 else loop(2, call)


def image_of(steps: Sequence[Step], work: int | None = None, change: tuple[str, int] | None = None) -> bytes:
    """``work``: instead of what the steps are; ``change``: a member of the first loop, and its value."""
    port = image.Port("y", (1,), 2, 1, 0.0, 0, in_state=False, offset=0)
    facts = image.Facts(
        name="loops",
        version=Version(1, 0, 0, 0),
        sha256=bytes(32),
        core=0,
        arena_bytes=ARENA,
        arena_alignment=16,
        state_bytes=0,
        state_alignment=16,
        inputs=(),
        outputs=(port,),
        interface=image.DATA,
    )
    start = image.code_offset(facts)
    encoded = encode(Program(steps, (), (ALWAYS, NEVER)), start, work_of(steps) if work is None else work, 1)
    content = bytearray(encoded.content)
    if change is not None:
        run = HEADER.unpack_from(content)[5] - start
        place = first_loop(struct.unpack_from(f"<{(len(content) - run) // 4}I", content, run))
        struct.pack_into("<I", content, place - start + 4 * MEMBERS.index(change[0]), change[1])
    payload = bytearray(image.payload(facts, image.Entries(start, 0, 0), bytes(content)))
    place = start - image.HEADER_BYTES
    struct.pack_into("<I", payload, place, checksum(bytes(payload), place))
    sealed = image.seal(0, facts.version, bytes(payload), flags=0)
    return sealed + bytes(-len(sealed) % 16)


MEMBERS = ("turns", "words", "bounded")


def first_loop(words: Sequence[int]) -> int:
    """The position of its record."""
    at = 0
    while words[at] & 0x3FF or not words[at] >> 10 & 7:
        at += 2 + (words[at] >> 10 & 7)
    return words[at + 1]


def played(program: Path, folder: Path, content: bytes, limit: int = 0) -> str | list[int]:
    """The error by name, or what the run returns and the arena after it."""
    (folder / "image").write_bytes(content)
    command = [str(program), str(folder / "image"), str(limit)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    error, *rest = map(int, done.stdout.split())
    return rest if error == 0 else ERRORS[error]


def arena(*values: int, status: int = 0) -> list[int]:
    return [status, *values, *(0,) * (ARENA - len(values))]


ACCEPTED: dict[str, tuple[list[Step], list[int]]] = {
    "as many bytes as turns": ([loop(ARENA, fill(0, 7, 1))], arena(*(7,) * ARENA)),
    "from the last one": ([loop(3, fill(2, 7, -1))], arena(7, 7, 7)),
    "steps of two loops, in both directions": (
        [loop(2, loop(3, fill(4, 7, 8, -2)))],
        arena(7, 0, 7, 0, 7, 0, 0, 0, 7, 0, 7, 0, 7),
    ),
    "a repetition in a loop": (
        [loop(2, Repeat(3, [fill(0, 7, 8, step=2)]))],
        arena(7, 0, 7, 0, 7, 0, 0, 0, 7, 0, 7, 0, 7),
    ),
    "as many loops as there may be": ([nested(PLAYED_LOOPS, fill(0, 7, 8, 4, 2, 1))], arena(*(7,) * ARENA)),
    "two loops, one behind the other": (
        [loop(2, fill(0, 7, 1)), loop(2, fill(4, 8, 1))],
        arena(7, 7, 0, 0, 8, 8),
    ),
    "calls behind an inner loop": (
        [loop(2, loop(2, fill(0, 7, 2, 1)), fill(8, 9, 1))],
        arena(*[7] * 4, *[0] * 4, 9, 9),
    ),
    "a condition that ends it": (
        [fill(0, 1), loop(9, fill(4, 7, 1), fill(0, 0), condition=Operand(Memory.ARENA, 0)), fill(1, 5)],
        arena(0, 5, 0, 0, 7),
    ),
    "a condition that does not hold at first": (
        [loop(9, fill(4, 7), condition=Operand(Memory.IMAGE, table="never"), bounded=True), fill(1, 5)],
        arena(0, 5),
    ),
    "a condition for each turn of the loop around it": (
        [fill(0, 1), loop(2, loop(3, fill(4, 7, 4, 1), condition=Operand(Memory.ARENA, 0, loops=(1,))))],
        arena(1, 0, 0, 0, 7, 7, 7),
    ),
    "more turns than the bound: what is behind it is not played": (
        [loop(3, fill(4, 7, 1), condition=Operand(Memory.IMAGE, table="always"), bounded=True), fill(0, 5)],
        arena(0, 0, 0, 0, 7, 7, 7, status=-28),
    ),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_loops_do(name: str, program: Path, tmp_path: Path) -> None:
    steps, wanted = ACCEPTED[name]
    assert played(program, tmp_path, image_of(steps)) == wanted


def sheet() -> PlaySheet:
    """With a condition that is the first byte of the arena."""
    compiled = compile_model(models.file(models.counted_loop(STEPS)), Options(target="host"))
    layer = compiled.selected[0].layer
    return PlaySheet(layer, find_target("host"), "loop", where={"condition": Operand(Memory.ARENA, 0)})


def test_loops_without_steps() -> None:
    noted = sheet()
    with noted.turns(3, "NULL", False), noted.turns(4, "condition", False):
        pass
    assert noted.steps == []


@pytest.mark.parametrize("holds", [False, True])
def test_a_bounded_loop_without_steps(holds: bool, program: Path, tmp_path: Path) -> None:
    """It ends at once, or not within its bound: then what is behind it is not played."""
    noted = sheet()
    with noted.turns(STEPS, "condition", True):
        pass
    steps = [fill(0, int(holds)), *noted.steps, fill(1, 5)]
    wanted = arena(1, status=-28) if holds else arena(0, 5)
    assert played(program, tmp_path, image_of(steps)) == wanted


WHOLE = 1 << 31
REFUSED: dict[str, tuple[list[Step], tuple[str, int] | None, str]] = {
    "one byte too few": ([loop(ARENA + 1, fill(0, 7, 1))], None, "CALL"),
    "one byte before the arena": ([loop(3, fill(1, 7, -1))], None, "CALL"),
    "the sum of two steps": ([loop(3, loop(3, fill(0, 7, 6, 2)))], None, "CALL"),
    "the sum of a step and a repetition's": ([loop(3, Repeat(3, [fill(0, 7, 6, step=2)]))], None, "CALL"),
    "up and down, of which one is outside": ([loop(3, loop(3, fill(3, 7, 6, -2)))], None, "CALL"),
    "a step that wraps around": ([loop(3, fill(0, 7, WHOLE))], None, "CALL"),
    "turns that wrap around": ([loop(5, fill(0, 7, 1 << 30))], None, "CALL"),
    "no turn": ([loop(1, fill(0, 7))], ("turns", 0), "CALL"),
    "no body": ([loop(1, fill(0, 7))], ("words", 0), "CALL"),
    "a body that ends in a call": ([loop(1, fill(0, 7))], ("words", 2), "CALL"),
    "a body that ends behind all calls": ([loop(1, fill(0, 7))], ("words", 4), "CALL"),
    "a body of any length": ([loop(1, fill(0, 7))], ("words", 0xFFFFFFFF), "CALL"),
    "bodies that overlap": (
        [loop(1, loop(1, fill(0, 7), fill(1, 7)))],
        ("words", 6),
        "CALL",
    ),
    "too many inside one another": ([nested(PLAYED_LOOPS + 1, fill(0, 7))], None, "CALL"),
    "a condition outside": ([loop(2, fill(0, 7), condition=Operand(Memory.ARENA, ARENA))], None, "CALL"),
    "far behind the arena": ([loop(3, fill(0, 7, 0x3FFFFFFF))], None, "CALL"),
    "a condition that moves outside": (
        [loop(2, loop(2, fill(0, 7), condition=Operand(Memory.ARENA, ARENA - 1, loops=(1,))))],
        None,
        "CALL",
    ),
    "a loop in a repetition": ([Repeat(2, [without_body(3), fill(0, 7)])], None, "CALL"),
    "a loop without a body in a loop": ([loop(2, without_body(0))], None, "CALL"),
    "a step that leaves no number aligned": ([loop(2, absolute(2))], None, "CALL"),
    "turns without end": ([loop(0xFFFFFFFF, loop(0xFFFFFFFF, fill(0, 7)))], None, "WORK"),
    "more turns than the work that is stated": ([loop(2, fill(0, 7))], ("turns", 3), "WORK"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str, program: Path, tmp_path: Path) -> None:
    steps, change, wanted = REFUSED[name]
    work = None if wanted == "WORK" and change else 0xFFFFFFFF
    assert played(program, tmp_path, image_of(steps, work, change)) == wanted


def test_a_limit_of_work(program: Path, tmp_path: Path) -> None:
    """What a device accepts, whatever a pack states: to the last turn."""
    steps: list[Step] = [loop(100, loop(7, fill(0, 7)))]
    work = work_of(steps)
    assert work == 100 * (16 + 7 * (16 + 16 + 1))
    assert played(program, tmp_path, image_of(steps), work) == arena(7)
    assert played(program, tmp_path, image_of(steps), work - 1) == "WORK"
    assert played(program, tmp_path, image_of(steps, work - 1)) == "WORK"


def test_a_firmware_without_loops(tmp_path: Path) -> None:
    program = build(tmp_path, NAMES[1:])
    assert played(program, tmp_path, image_of([loop(2, fill(0, 7))])) == "KERNEL"
    assert played(program, tmp_path, image_of([Repeat(2, [fill(0, 7, step=1)])])) == arena(7, 7)
