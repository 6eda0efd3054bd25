# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Code on a core: what the linker keeps for each function of a library, and what a model's own C becomes."""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tinyml import harness
from tinyml.cores.machines import Board, Machine
from tinyml.harness import tools
from tinyml.harness.footprint import MODEL, kept_sections
from tinyml.harness.generated import Generated, read_generated
from tinyml.harness.objects import compile_all
from tinyml.harness.program_build import Options, base_flags, library_units, model_units
from tinyml.ops.framework.kernel import Library, kernel_table
from tinyml.pipeline import Compiled
from tinyml.setup.workspace import find_cmsis_nn

RUNTIME = Path(harness.__file__).parent.parent / "runtime"
LEFT_OUT = ("slot",)
"""Folders of the runtime that models do not link."""

APART = "__attribute__((noipa, noinline)) static void "
"""Keeps each layer a function of its own, so that its size can be read. Clang knows only `noinline`."""

_MARK = re.compile(r"/\* (\d+): ")
_CALL = re.compile(r"TINYML_LAYER\((\d+), (\w+)\(")


@dataclass(frozen=True)
class OwnCode:
    """A model's C, compiled: bytes of each layer, what its function refers to, and all constants."""

    layers: Mapping[int, int]
    refers: Mapping[int, frozenset[str]]
    inlines: Mapping[str, tuple[int, frozenset[str]]]  # functions of headers that were not inlined
    constants_bytes: int


def own_code(model: Compiled, machine: Machine) -> OwnCode:
    """Compile a model's own source, with its layers apart."""
    board = _board(machine)
    with tempfile.TemporaryDirectory(prefix="tinyml-") as scratch:
        folder = Path(scratch)
        for name, text in model.files.items():
            (folder / name).write_text(text.replace("\nstatic void ", f"\n{APART}"), encoding="utf-8")
        object_file = _object(machine, folder)
        sizes = tools.sections(board.toolchain, object_file)
        refers = tools.references(board.toolchain, object_file)
    steps = {name: int(step) for step, name in _CALL.findall(model.files[f"{model.name}.c"])}
    functions = {name.removeprefix(".text."): name for name in sizes if name.startswith(".text.")}

    def symbols(section: str) -> frozenset[str]:
        return frozenset(name.removeprefix(".text.").split("+")[0] for name in refers.get(section, ()))

    return OwnCode(
        layer_bytes(model, machine),
        {step: symbols(functions[name]) for name, step in steps.items() if name in functions},
        {
            name: (sizes[section], symbols(section))
            for name, section in functions.items()
            if not name.startswith(f"{model.name}_")
        },
        sum(size for name, size in sizes.items() if name.startswith(".rodata")),
    )


def _object(machine: Machine, folder: Path, *flags: str) -> Path:
    """The model's source in a folder, compiled."""
    units = model_units(read_generated(folder), machine, folder, Options())
    own = [replace(unit, flags=(*unit.flags, *flags)) for unit in units if unit.part == MODEL]
    (object_file,) = compile_all(tools.cross_compiler(_board(machine).toolchain), own)
    return object_file


def layer_bytes(model: Compiled, machine: Machine) -> dict[int, int]:
    """Bytes of code of each layer where the compiler has put it: mostly inlined, and optimised there.

    The table of lines tells which layer's function, or call, an instruction comes from.
    """
    source = f"{model.name}.c"
    with tempfile.TemporaryDirectory(prefix="tinyml-") as scratch:
        for name, text in model.files.items():
            (Path(scratch) / name).write_text(text, encoding="utf-8")
        table = tools.lines(_board(machine).toolchain, _object(machine, Path(scratch), "-g1"))
    steps: dict[int, int] = {}
    step = None
    for number, line in enumerate(model.files[source].splitlines(), 1):
        if mark := _MARK.match(line):
            step = int(mark[1])
        elif call := _CALL.search(line):
            steps[number] = int(call[1])
            step = None
        if step is not None:
            steps[number] = step
    found: Counter[int] = Counter()
    owner: int | None = None
    for (file, line_number, begin), (_, _, end) in itertools.pairwise(table):
        if line_number is None:  # the end of a function
            owner = None
        elif Path(file).name == source:  # Clang gives its folder, too
            owner = steps.get(line_number)
        if line_number is not None and owner is not None:
            found[owner] += end - begin
    return dict(found)


def library_functions(
    machine: Machine,
    wanted: Iterable[str],
    known: Collection[str] = (),
    only: Collection[str] | None = None,
) -> dict[str, list[tuple[str, int]]]:
    """Every function of the runtime and ``wanted`` ones of the C library, linked alone.

    On Arm also those of CMSIS-NN; ``known`` ones are left out, and all that are not in ``only``.
    """
    board = _board(machine)
    compiler, linker = tools.cross_compiler(board.toolchain), tools.linker(board.toolchain)
    everything = _everything(machine.target.arm)
    flags, _, units = library_units(everything, base_flags(machine, Options()), Options())
    del flags
    objects = compile_all(compiler, units)
    found = {}
    with tempfile.TemporaryDirectory(prefix="tinyml-") as scratch:
        folder = Path(scratch)
        # the cache may drop objects while others compile
        objects = [Path(shutil.copy(path, folder / f"{n}.o")) for n, path in enumerate(objects)]
        sources = {str(path): unit.source.stem for path, unit in zip(objects, units, strict=True)}
        names = {name for path in objects for name in tools.defined(board.toolchain, path)} | set(wanted)
        listed = folder / "objects"
        listed.write_text("\n".join(map(str, objects)), encoding="utf-8")
        for name in sorted(names.difference(known).intersection(names if only is None else only)):
            map_file = folder / "one.map"
            command = [
                *(str(linker.path), *machine.target.gcc_flags, "-nostartfiles"),
                *board.toolchain.link_flags,
                *("-Wl,--gc-sections", f"-Wl,-e,{name}", "-Wl,--unresolved-symbols=ignore-all"),
                *(f"-Wl,-u,{name}", "-w", "-Xlinker", f"-Map={map_file}"),
                *(f"@{listed}", "-lm", "-o", str(folder / "image")),
            ]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode == 0:
                kept = kept_sections(map_file.read_text(encoding="utf-8"))
                sections = [one for one in kept if one.bytes and one.kind != "bss"]
                found[name] = [
                    (_piece(sources.get(one.file, one.file), one.name), one.bytes) for one in sections
                ]
    return found


def _piece(file: str, section: str) -> str:
    """A name without paths: a member of an archive, or a source, with the section."""
    archive = re.search(r"([\w.+-]+\([\w.+-]+\))$", file)
    return f"{archive[1] if archive else Path(file).name} {section}"


def _everything(arm: bool) -> Generated:
    """A model that links all sources that run on a core."""
    runtime = [path.relative_to(RUNTIME) for path in sorted(RUNTIME.rglob("*.c"))]
    kernels = [kernel for listed in kernel_table().values() for kernel in listed]
    cmsis_nn = {file for kernel in kernels if kernel.library is Library.CMSIS_NN for file in kernel.sources}
    here = find_cmsis_nn() if arm else None
    return Generated(
        *(Path(), "", "", "", (), ()),
        runtime_sources=tuple(
            path.as_posix()
            for path in runtime
            if path.parts[0] not in LEFT_OUT and (here or path.parts[0] != "cmsis_nn")
        ),
        cmsis_nn_sources=tuple(sorted(cmsis_nn)) if here else (),
    )


def _board(machine: Machine) -> Board:
    assert machine.board is not None
    return machine.board
