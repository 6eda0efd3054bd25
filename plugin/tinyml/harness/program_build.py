# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Builds a program from generated C: the compiler's and linker's command lines."""

from __future__ import annotations

import logging
import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tinyml.base.errors import BudgetError, ConfigError, ToolError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.cores.machines import Board, Machine
from tinyml.harness.arena_check import port_header
from tinyml.harness.footprint import CMSIS_NN, HARNESS, MODEL, RUNTIME, Footprint, read_map
from tinyml.harness.generated import Generated
from tinyml.harness.objects import Unit, compile_all, excerpt
from tinyml.harness.tools import Compiler, cross_compiler, host_compiler, linker
from tinyml.setup.workspace import require_cmsis_nn

LOG = logging.getLogger(__name__)
HARNESS_C = Path(__file__).parent / "c"
RUNTIME_C = Path(__file__).parent.parent / "runtime"
RUNTIME_INCLUDE = RUNTIME_C / "include"

WARNINGS = ("-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Werror")
SANITIZERS = (
    *("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer", "-g"),
    "-DTINYML_ASSERTIONS=1",  # what kernels require of their arguments: see <tinyml/tinyml.h>
)
OF_SLOTS = "watch/slot_watch.c"
"""It counts for models in slots, which programs of the harness do not have."""
SECTIONS = ("-ffunction-sections", "-fdata-sections")


@dataclass(frozen=True)
class Options:
    """How to compile. ``strict`` turns warnings in our own C into errors; ``sanitize`` is for the host.

    ``check_arena`` ends the program after a layer that wrote outside its bytes of the arena; builds with
    sanitizers always do.
    """

    optimize: str = ""  # the C compiler's option; default: what the model was compiled for
    strict: bool = False
    sanitize: bool = False
    check_arena: bool = False
    profile: bool = False  # layer by layer, on machines that count instructions instructions
    serve: bool = False  # wait for requests of <tinyml/host.h> instead of running samples
    lines: bool = False  # note the source lines of the model's instructions, which stay the same
    defines: tuple[str, ...] = ()


@dataclass(frozen=True)
class Image:
    """A linked program. On the host there is no footprint."""

    path: Path
    machine: Machine
    footprint: Footprint | None = None
    profiled: bool = False
    loaded: tuple[tuple[str, int], ...] = ()  # files beside it that QEMU puts at an address


def build(model: Generated, machine: Machine, folder: Path, options: Options | None = None) -> Image:
    """Compile and link ``model`` with the harness into ``folder``."""
    options = options or Options()
    _check(model, machine, options)
    return assemble(_units(model, machine, folder, options), machine, folder, options)


def assemble(
    units: list[Unit], machine: Machine, folder: Path, options: Options, more: Sequence[str] = ()
) -> Image:
    """Compile and link all sources of a program into ``folder``; ``more`` are flags for the linker."""
    board = machine.board
    compiler = cross_compiler(board.toolchain) if board else host_compiler()
    objects = compile_all(compiler, units)
    image = folder / "image"
    if board is None:
        link(compiler, [*_host_flags(options), *more, *map(str, objects), "-lm", "-o", str(image)])
        return Image(image, machine)
    map_file = folder / "image.map"
    flags = _board_link_flags(machine, board, map_file)
    link(linker(board.toolchain), [*flags, *more, *map(str, objects), "-lm", "-o", str(image)])
    parts = {path: unit.part for path, unit in zip(objects, units, strict=True)}
    footprint = read_map(map_file.read_text(encoding="utf-8"), parts)
    return Image(image, machine, footprint, options.profile)


def _check(model: Generated, machine: Machine, options: Options) -> None:
    if model.target != machine.target.name:
        raise ConfigError(
            f"{model.name} was compiled for {model.target}, but {machine.name} is a {machine.target.name}",
            f"compile it again with --target {machine.target.name}",
        )
    if model.npu:
        raise ConfigError(
            f"{model.name} is compiled for {model.npu}, which {machine.name} does not have: nothing here "
            "emulates an NPU",
            "without npu (or with --npu none) the CPU computes the same operators; the NPU itself requires a "
            "board",
        )
    if options.sanitize and machine.board:
        raise ConfigError(f"{machine.name} has no sanitizers", "use the host")
    if options.profile and machine.clock is None:
        raise ConfigError(f"{machine.name} does not count instructions", "profile on a QEMU machine")


def _units(model: Generated, machine: Machine, folder: Path, options: Options) -> list[Unit]:
    """Every source of the program, the model's first."""
    base = base_flags(machine, options)
    warnings = WARNINGS if options.strict else ()
    ours, includes, units = library_units(model, base, options)
    # The harness is always compiled with the same options, so that its own cost stays the same.
    harness = ("-std=c11", *base, "-O2", *warnings)
    port = port_sources(machine)
    model_flags, model_includes = ours, includes
    if options.profile:
        header = '-DTINYML_PORT_HEADER="profile.h"'
        model_flags, model_includes = (*ours, header), (*includes, HARNESS_C)
        harness, port = (*harness, header), (*port, "profile.c")
        units = [  # layers of a model that is data are called here
            replace(unit, flags=model_flags, includes=(*unit.includes, HARNESS_C))
            if unit.source == RUNTIME_C / "player" / "player.c"
            else unit
            for unit in units
        ]
    elif (options.sanitize or options.check_arena) and any(model.arena_ranges):
        header = "check_arena_ranges.h"
        (folder / header).write_text(port_header(model.name, model.arena_ranges), encoding="utf-8")
        model_flags = (*ours, f'-DTINYML_PORT_HEADER="{header}"')
        model_includes = (*includes, folder, HARNESS_C)
    if options.lines:
        model_flags = (*model_flags, "-g1")
    main = "main.c"
    if options.serve:
        main, port = "serve.c", (*port, "line_qemu.c" if machine.board else "line_host.c")
        rooms = ("host", "watch") if model.watched else ("host",)
        served = [path for room in rooms for path in sorted((RUNTIME_C / room).glob("*.c"))]
        served += [RUNTIME_C / "adapt" / "request.c"] if model.adapts else []
        units += [
            Unit(path, RUNTIME, ours, includes)
            for path in served
            if path.relative_to(RUNTIME_C).as_posix() not in (*model.runtime_sources, OF_SLOTS)
        ]
    units += harness_units(harness, model.harness_defines, port, main)
    return [Unit(model.source, MODEL, model_flags, model_includes), *units]


def model_units(model: Generated, machine: Machine, folder: Path, options: Options) -> list[Unit]:
    """The sources of the model alone, without the harness around it."""
    _check(model, machine, options)
    return [unit for unit in _units(model, machine, folder, options) if unit.part != HARNESS]


def harness_units(
    flags: tuple[str, ...], defines: tuple[str, ...], port: tuple[str, ...], main: str = "main.c"
) -> list[Unit]:
    """The harness itself; ``defines`` say how it finds the model."""
    includes = (RUNTIME_INCLUDE, HARNESS_C)
    units = [Unit(HARNESS_C / main, HARNESS, (*flags, *(f"-D{define}" for define in defines)), includes)]
    return [*units, *(Unit(HARNESS_C / name, HARNESS, flags, includes) for name in port)]


def library_units(
    model: Generated, base: tuple[str, ...], options: Options
) -> tuple[tuple[str, ...], tuple[Path, ...], list[Unit]]:
    """What a model links in addition to itself; first the flags and include folders of its own source."""
    warnings = WARNINGS if options.strict else ()
    defines = tuple(f"-D{define}" for define in options.defines)
    optimize = options.optimize or model.compile_flag
    ours = ("-std=c11", *base, optimize, *warnings, *defines)
    units = []
    library: tuple[Path, ...] = ()
    if model.cmsis_nn_sources:
        cmsis_nn = require_cmsis_nn()
        library = (cmsis_nn / "Include",)
        flags = ("-std=gnu11", *base, optimize, "-w")
        units = [Unit(cmsis_nn / name, CMSIS_NN, flags, library) for name in model.cmsis_nn_sources]
    includes = (RUNTIME_INCLUDE, *library)
    kernels = (RUNTIME_C, *includes)  # kernels include headers of other families
    units += [Unit(RUNTIME_C / name, RUNTIME, ours, kernels) for name in model.runtime_sources]
    return ours, includes, units


def port_sources(machine: Machine) -> tuple[str, ...]:
    """The sources of the harness that depend on the machine."""
    if machine.board is None:
        return ("port_host.c",)
    board = machine.board
    return ("port_qemu.c", board.startup, board.clock.source, *board.library)


def base_flags(machine: Machine, options: Options) -> tuple[str, ...]:
    """Flags for every source on a machine."""
    board = machine.board
    return (*machine.target.gcc_flags, *(_board_flags(board) if board else _host_flags(options)))


def _host_flags(options: Options) -> tuple[str, ...]:
    return SANITIZERS if options.sanitize else ()


def _board_flags(board: Board) -> tuple[str, ...]:
    return (*board.toolchain.compile_flags, *SECTIONS)


def _board_link_flags(machine: Machine, board: Board, map_file: Path) -> list[str]:
    return [
        *machine.target.gcc_flags,
        "-nostartfiles",
        *board.toolchain.link_flags,
        f"-L{HARNESS_C}",
        f"-T{board.linker_script}",
        "-Wl,--gc-sections",
        *("-Xlinker", f"-Map={map_file}"),  # not -Wl, which would split a path at its commas
    ]


def link(compiler: Compiler, arguments: list[str]) -> None:
    command = [str(compiler.path), *arguments]
    LOG.debug("%s", shlex.join(command))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return
    if "will not fit in region" in done.stderr or "overflowed by" in done.stderr:
        raise BudgetError(
            f"the program does not fit into the memory of this machine:\n{excerpt(done.stderr, 6)}",
            "a smaller model, or another machine (qemu-cortex-m55 has the most memory)",
        )
    raise ToolError(f"{compiler.path.name} cannot link:\n{excerpt(done.stderr)}")
