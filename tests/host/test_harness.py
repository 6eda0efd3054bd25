# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The harness on the host, its cache, and its messages when something is missing."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from tests import toy
from tests.support.sketch import Sketch
from tinyml import harness
from tinyml.base.errors import ConfigError, ToolError
from tinyml.cores.machines import CmsdkTimer, Stamp, SystemCounter
from tinyml.harness import faults, objects
from tinyml.harness.footprint import HARNESS, LIBRARY, MODEL, Sizes, read_map
from tinyml.harness.objects import Unit, compile_all
from tinyml.harness.tools import host_compiler
from tinyml.ir import Array, DType
from tinyml.ops.elementwise.unary import Unary
from tinyml.ops.reshape import Reshape
from tinyml.pipeline import Options, compile_built
from tinyml.setup import workspace

CHECKED = harness.Options(strict=True, sanitize=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return toy.write(tmp_path, "host")


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder for this test alone."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "west-tinyml"


def test_outputs_and_state(folder: Path) -> None:
    result = harness.run(folder, "host", [toy.sample()] * 4, reset_before={2}, options=CHECKED)
    assert [int(out["runs"][0]) for out in result.outputs] == [1, 2, 1, 2]
    np.testing.assert_array_equal(result.outputs[1]["y"], toy.sample()["x"] + toy.OFFSETS + 1)
    assert result.instructions is None
    assert result.console == "toy: done\n"


def test_files_that_are_not_on_disk(folder: Path) -> None:
    files = {path.name: path.read_text() for path in folder.iterdir()}
    result = harness.run_files(files, "host", [toy.sample()])
    np.testing.assert_array_equal(result.outputs[0]["y"], toy.sample()["x"] + toy.OFFSETS)


def test_more_inputs_and_outputs_than_a_byte_counts() -> None:
    """Each may be 255; the harness counts outputs on from the inputs."""
    sketch = Sketch()
    inputs = [sketch.input((1,), DType.FLOAT32) for _ in range(200)]
    outputs = [sketch.add(Unary("neg"), tensor) for tensor in inputs[:100]]
    files = compile_built(sketch.graph(*outputs), Options(target="host")).files
    sample = {tensor.name: np.full(1, number, np.float32) for number, tensor in enumerate(inputs)}
    (found,) = harness.run_files(files, "host", [sample]).outputs
    assert [float(value[0]) for value in found.values()] == [-number for number in range(100)]


@pytest.mark.parametrize(
    "mode, words",
    [
        (toy.OUT_OF_BOUNDS, "index 256 out of bounds"),
        (toy.OVERFLOW, "signed integer overflow"),
        (toy.DIVISION_BY_ZERO, "division by zero"),
        (toy.FAILURE, r"toy_run\(\) returned 7 on sample 0"),
    ],
)
def test_sanitizers_find_what_is_wrong(folder: Path, mode: int, words: str) -> None:
    with pytest.raises(ToolError, match=words):
        harness.run(folder, "host", [toy.sample(mode)], options=CHECKED)


def test_hang_is_ended(folder: Path) -> None:
    with pytest.raises(ToolError, match="did not finish on host within 1 seconds"):
        harness.run(folder, "host", [toy.sample(toy.ENDLESS_LOOP)], timeout_seconds=1)


def test_warning_is_an_error_when_strict(folder: Path) -> None:
    with (folder / "toy.c").open("a") as stream:
        stream.write("static int unused;\n")
    harness.run(folder, "host", [toy.sample()])
    with pytest.raises(ToolError, match=r"cannot compile toy.c(.|\n)*unused"):
        harness.run(folder, "host", [toy.sample()], options=harness.Options(strict=True))


@pytest.mark.parametrize(
    "change, words",
    [
        ({"x": None}, "no array for input 'x'(.|\n)*it has: mode"),
        ({"x": np.zeros((4,), np.int16)}, r"'x' of sample 0 has shape \(4,\)(.|\n)*must be \(2, 2\)"),
        ({"x": np.zeros((2, 2), np.int8)}, "'x' of sample 0 is int8(.|\n)*must be int16"),
    ],
)
def test_samples_that_do_not_fit(folder: Path, change: dict[str, Array | None], words: str) -> None:
    arrays: dict[str, Array | None] = {**toy.sample(), **change}
    sample = {name: array for name, array in arrays.items() if array is not None}
    with pytest.raises(ConfigError, match=words):
        harness.run(folder, "host", [sample])


def test_no_samples(folder: Path) -> None:
    with pytest.raises(ConfigError, match="no samples"):
        harness.run(folder, "host", [])


def test_no_model_in_the_folder(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(ConfigError, match="there is no compiled model in"):
        harness.run(tmp_path, "host", [toy.sample()])


def test_model_for_another_core(tmp_path: Path) -> None:
    toy.write(tmp_path, "cortex-m4")
    with pytest.raises(ConfigError, match=r"compiled for cortex-m4(.|\n)*--target host"):
        harness.run(tmp_path, "host", [toy.sample()])


def test_unknown_machine(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"unknown machine 'qemu-z80'(.|\n)*qemu-cortex-m3"):
        harness.run(folder, "qemu-z80", [toy.sample()])


@pytest.mark.parametrize(
    "machine, words",
    [
        ("host", "no C compiler(.|\n)*sudo apt-get install gcc"),
        (
            "qemu-cortex-m3",
            "arm-none-eabi-gcc(.|\n)*apt-get install gcc-arm-none-eabi libnewlib-arm-none-eabi",
        ),
        (
            "qemu-riscv32",
            "riscv64-unknown-elf-gcc and picolibc were not found(.|\n)*"
            "apt-get install gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf",
        ),
    ],
)
def test_missing_compiler(tmp_path: Path, machine: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    toy.write(tmp_path, harness.find_machine(machine).target.name)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(ToolError, match=words):
        harness.run(tmp_path, machine, [toy.sample()])


@pytest.mark.parametrize(
    "machine, package", [("qemu-cortex-m3", "qemu-system-arm"), ("qemu-riscv32", "qemu-system-misc")]
)
def test_missing_qemu(tmp_path: Path, machine: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    image = harness.Image(tmp_path / "image", harness.find_machine(machine))
    with pytest.raises(ToolError, match=f"apt-get install {package}"):
        harness.command(image)


def test_missing_c_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler alone: GCC prints the bare name of a file that it does not find."""
    toy.write(tmp_path, "riscv32")
    compiler = tmp_path / "riscv64-unknown-elf-gcc"
    compiler.write_text('#!/bin/sh\necho "${1#-print-file-name=}"\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolError, match=r"picolibc was not found(.|\n)*install picolibc-riscv64-unknown-elf"):
        harness.run(tmp_path, "qemu-riscv32", [toy.sample()])


def test_missing_cmsis_nn(tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TINYML_CMSIS_NN", "TINYML_WORKSPACE", "ZEPHYR_BASE"):
        monkeypatch.delenv(name, raising=False)
    toy.write(tmp_path, "host", cmsis_nn=["Source/ActivationFunctions/arm_relu_q15.c"])
    with pytest.raises(ToolError, match=r"uses CMSIS-NN, which was not found(.|\n)*--kernels portable"):
        harness.run(tmp_path, "host", [toy.sample()])


def test_cmsis_nn_is_found(own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TINYML_CMSIS_NN", "TINYML_WORKSPACE", "ZEPHYR_BASE"):
        monkeypatch.delenv(name, raising=False)

    def plant(folder: Path) -> Path:
        (folder / "Include").mkdir(parents=True)
        (folder / workspace.CMSIS_NN_MARK).touch()
        return folder

    assert workspace.find_cmsis_nn() is None
    cached = plant(own_cache / "workspace-1" / "modules" / "lib" / "cmsis-nn")
    assert workspace.find_cmsis_nn() == cached
    monkeypatch.setenv("ZEPHYR_BASE", str(tmp_path / "zephyr"))
    assert workspace.find_cmsis_nn() is None, "that of another workspace is not this one's"
    beside = plant(tmp_path / "modules" / "lib" / "cmsis-nn")
    assert workspace.find_cmsis_nn() == beside
    monkeypatch.setenv("TINYML_CMSIS_NN", str(plant(tmp_path / "named")))
    assert workspace.find_cmsis_nn() == tmp_path / "named"
    monkeypatch.setenv("TINYML_CMSIS_NN", str(tmp_path))
    with pytest.raises(ConfigError, match="TINYML_CMSIS_NN names"):
        workspace.find_cmsis_nn()


def test_objects_are_compiled_once(own_cache: Path, tmp_path: Path) -> None:
    source, header = tmp_path / "a.c", tmp_path / "a.h"
    source.write_text('#include "a.h"\nint a = A;\n')
    header.write_text("#define A 1\n")

    def compiled(*flags: str) -> Path:
        return compile_all(host_compiler(), [Unit(source, MODEL, flags)])[0]

    first = compiled()
    made = first.stat().st_ino
    assert first.parent == own_cache / "objects"
    assert compiled() == first
    assert first.stat().st_ino == made
    assert compiled("-O2") != first
    header.write_text("#define A 2\n")
    assert compiled() != first
    header.write_text("#define A 1\n")
    assert compiled() == first
    assert not [path for path in first.parent.iterdir() if path.suffix in (".tmp", ".d")]


def test_old_objects_are_deleted_now_and_then(
    own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a cache that is too large, the least recently used go first."""
    source = tmp_path / "a.c"
    source.write_text("int a;\n")

    def compiled(*flags: str) -> Path:
        return compile_all(host_compiler(), [Unit(source, MODEL, flags)])[0]

    old, young = compiled(), compiled("-O2")
    os.utime(old, (1, 1))
    monkeypatch.setattr(objects, "MAX_CACHE_BYTES", young.stat().st_size)
    assert compiled("-O2") == young
    assert old.exists(), "not in every build"
    os.utime(old.parent / "pruned", (1, 1))
    half = old.parent / "half.tmp"  # of a command that was killed
    half.touch()
    os.utime(half, (1, 1))
    assert compiled("-O2") == young
    assert not old.exists()
    assert not half.exists()
    assert not list(old.parent.glob(f"{old.stem}.*"))
    assert young.exists()


def test_objects_depend_on_all_that_was_included(own_cache: Path, tmp_path: Path) -> None:
    """`cmsis_nn_once.c` includes sources of CMSIS-NN: an update of the library must be compiled."""
    library = tmp_path / "a library" / "Source"
    library.mkdir(parents=True)
    (library.parent / "Include").mkdir()
    (library / "b.c").write_text("int b = 1;\n")
    source = tmp_path / "all.c"
    source.write_text('#include "../Source/b.c"\n')

    def compiled() -> bytes:
        unit = Unit(source, MODEL, (), (library.parent / "Include",))
        return compile_all(host_compiler(), [unit])[0].read_bytes()

    first = compiled()
    assert compiled() == first
    (library / "b.c").write_text("int b = 2;\n")
    assert compiled() != first
    (library / "b.c").write_text("this is not C\n")
    with pytest.raises(ToolError, match=r"cannot compile all\.c"):
        compiled()


def test_objects_depend_on_the_headers_that_were_included(own_cache: Path, tmp_path: Path) -> None:
    """A changed header makes the objects stale that were made from it, and so does one that hides it."""
    near, first, second = (tmp_path / name for name in ("near", "first", "second"))
    for folder in (near, first / "room", second / "room"):
        folder.mkdir(parents=True)
    (near / "a.c").write_text('#include "room/a.h"\nint a = A;\n')
    (second / "room" / "a.h").write_text('#include "b.h"\n#define A B\n')
    (second / "b.h").write_text("#define B 1\n")
    (second / "other.h").write_text("#define OTHER 1\n")

    def compiled() -> Path:
        return compile_all(host_compiler(), [Unit(near / "a.c", MODEL, (), (first, second))])[0]

    one = compiled()
    made = one.stat().st_ino
    (second / "other.h").write_text("#define OTHER 2\n")
    (second / "new.h").write_text("#define NEW 1\n")
    assert compiled() == one
    assert one.stat().st_ino == made, "it was not compiled again"
    changes = {
        second / "b.h": "#define B 2\n",
        first / "b.h": "#define B 3\n",
        second / "room" / "b.h": "#define B 4\n",
        first / "room" / "a.h": "#define A 5\n",
        near / "b.h": "#define B 6\n",  # nobody looks for it there: at most one object more
    }
    contents = {one.read_bytes()}
    for number, (path, text) in enumerate(changes.items(), 2):
        path.write_text(text)
        contents.add(compiled().read_bytes())
        assert len(contents) == min(number, 5), path
    for path in list(changes)[1:]:
        path.unlink()
    (second / "b.h").write_text("#define B 1\n")
    assert compiled() == one
    assert one.stat().st_ino == made, "as it was before"


def test_cmsdk_timer_reads_back_every_count() -> None:
    """What QEMU's timer shows after n instructions of 64 ns is turned back into n, wraps included."""
    for n in (1, 2, 3, 4, 5, 1000, 2_684_354_559, 2_684_354_560, 2_684_354_561, 9_999_999_999):
        ticks = -(-n * 64 // 40) - 1
        stamp = Stamp(ticks % 2**32, n * 64 // 10_000_000)
        assert CmsdkTimer().instructions(stamp) == n


def test_system_counter_reads_back_every_count() -> None:
    for n in (0, 1, 2, 3, 124, 125, 126, 2_097_152_000, 9_999_999_999):
        ticks = n * 64 * 4 // 125
        assert SystemCounter().instructions(Stamp(ticks % 2**32, ticks >> 32)) == n


def test_impossible_reading_is_refused() -> None:
    """With 64 ns per instruction and 40 ns per tick the timer never shows exactly 2."""
    shown = {-(-n * 64 // 40) - 1 for n in range(1, 10)}
    assert 2 not in shown
    with pytest.raises(ToolError, match="not a whole number of instructions"):
        CmsdkTimer().instructions(Stamp(2, 0))


def test_linker_map() -> None:
    text = """
Discarded input sections
 .text.gone     0x00000000      0x100 /c/model.o
Linker script and memory map
LOAD /c/model.o
.text           0x00000000      0x4f0
 *(.vectors)
 .vectors       0x00000000       0x40 /c/start up.o
 .text.a_function_with_a_long_name
                0x00000040      0x168 /c/model.o
                0x00000040                a_function_with_a_long_name
 *fill*         0x000001a8        0x8
 .text          0x000001b0       0x20 /usr/lib/libc.a(memcpy.o)
.rodata         0x00000200       0x10
 .rodata.table  0x00000200       0x10 /c/model.o
.debug_info     0x00000000       0x99
 .debug_info    0x00000000       0x99 /c/model.o
.bss            0x20000000       0x14
 .bss.arena     0x20000000       0x14 /c/model.o
 COMMON         0x20000014        0x4 /c/start up.o
.tbss           0x20000018        0x4
 .tbss.errno    0x20000018        0x4 /usr/lib/libc.a(errno.o)
"""
    footprint = read_map(text, {Path("/c/model.o"): MODEL, Path("/c/start up.o"): HARNESS})
    assert footprint.part(MODEL) == Sizes(text=0x168, rodata=0x10, bss=0x14)
    assert footprint.part(HARNESS) == Sizes(text=0x40, bss=4)
    assert footprint.part(LIBRARY) == Sizes(text=0x20, bss=4)
    assert footprint.total == Sizes(text=0x188, rodata=0x10, bss=0x18)
    assert footprint.weights_bytes == 0x10
    assert footprint.code_bytes == 0x188


def test_fault_in_words() -> None:
    console = "hello\nfault\ncfsr 00008200\naddress f0000000\nsp 20000100\npc 00000130\n"
    values = faults.registers(console)
    assert values["pc"] == 0x130
    said = faults.explain(values, 0x20000000, [(0x41, "main"), (0x121, "kws_run"), (0x201, "after")])
    assert said == "a data access to memory that does not exist, address 0xf0000000, in kws_run (0x00000130)"
    assert faults.registers("no such thing") == {}


@pytest.mark.parametrize(
    "cause, words",
    [
        (2, "an instruction this core does not have, in kws_run (0x80000130)"),
        (7, "a data access to memory that does not exist, address 0xf0000000, in kws_run (0x80000130)"),
        (24, "unknown cause, mcause 0x00000018, in kws_run (0x80000130)"),
    ],
)
def test_riscv_fault_in_words(cause: int, words: str) -> None:
    values = {"mcause": cause, "address": 0xF0000000, "sp": 0x84010100, "pc": 0x80000130}
    assert faults.explain(values, 0x84010000, [(0x80000120, "kws_run"), (0x80000200, "after")]) == words


def test_buffers_of_the_caller(tmp_path: Path) -> None:
    """The harness has them, where no element of more bytes could be; a model keeps nothing in them."""
    sketch = Sketch()
    small, large = sketch.input((3,)), sketch.input((3,), DType.FLOAT32)
    graph = sketch.graph(sketch.add(Unary("neg"), large), sketch.add(Reshape((3, 1)), small))
    found = compile_built(graph, Options(target="host", io="caller"))
    samples = [sketch.sample() for _ in range(3)]
    result = harness.run_files(found.files, "host", samples, options=CHECKED)
    for given, outputs in zip(samples, result.outputs, strict=True):
        negated, same = outputs.values()
        np.testing.assert_array_equal(negated, -given[large.name])
        np.testing.assert_array_equal(same.reshape(-1), given[small.name])
