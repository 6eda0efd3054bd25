# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Builds and runs tools/hostile/packs.c: changed packs for the player, on the host or on an emulated core."""

from __future__ import annotations

import os
import re
import struct
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path

import numpy as np

from tests.random_layers.batch import batch
from tests.support import loop_models
from tests.support.layer_kinds import always_four_bits
from tests.support.played_layers import small_graphs
from tinyml import harness, importers
from tinyml.base import c
from tinyml.base.errors import TinymlError, ToolError
from tinyml.cores.machines import Machine
from tinyml.cores.targets import find_target
from tinyml.harness import faults
from tinyml.harness.objects import Unit, compile_all, excerpt
from tinyml.harness.program_build import (
    HARNESS_C,
    RUNTIME_C,
    RUNTIME_INCLUDE,
    WARNINGS,
    assemble,
    base_flags,
    port_sources,
)
from tinyml.harness.run import command
from tinyml.harness.tools import cross_compiler, host_compiler
from tinyml.ir import Graph
from tinyml.memory.placement import lay_out
from tinyml.pipeline import Compiled, Options, optimize
from tinyml.player.choice import runs_on
from tinyml.player.kernels import KERNELS
from tinyml.player.playable import Playable
from tinyml.player.table import sources, table
from tinyml.slots.data import data_image
from tinyml.slots.image import HEADER_BYTES
from tinyml.slots.version import Version

HOSTILE = Path(__file__).parents[2] / "tools" / "hostile"
INCLUDES = (RUNTIME_INCLUDE, RUNTIME_C, HOSTILE, HARNESS_C)
HARMLESS = "shift,signed-integer-overflow,float-cast-overflow"
"""What hostile numbers do in kernels without touching memory: shifts by more than 31, sums that overflow,
conversions of numbers that no integer holds. Cores define the results; every address is checked before."""
OVERLAPPING = "-Dmemcpy=memmove"
"""Operands of a hostile call may overlap. What is copied then is undefined, but not where."""
SANITIZERS = (
    *("-O2", "-g", "-fsanitize=address,undefined", f"-fno-sanitize={HARMLESS}", "-fno-sanitize-recover=all"),
    *("-fwrapv", "-DTINYML_ASSERTIONS=1"),
)
MOST_BYTES, MOST_ARENA, MOST_WORK = 2500, 3000, 20000
PER_KERNEL = 3
LOOP, PER_LOOP = "tinyml_play_loop", 10
TURNS = 26
"""A loop with fewer is unrolled."""
LOOPS = (
    *(loop_models.filter_scan(TURNS, scan_input_directions=[1, 0], scan_output_directions=[0, 1]),),
    *(loop_models.counted_loop(TURNS, TURNS - 3), loop_models.nested_loop(4, TURNS)),
    *(loop_models.settling_loop(None), loop_models.integer_scan(TURNS), loop_models.choosing_scan(TURNS)),
)
BATCHES, LAYERS = range(2), 100
STATED = ("reads", "writes", "constants")
"""What checks state: ``tinyml_check_reads()`` and so on. rules.c comes between."""
CASES = (
    *("arg_reduce", "attention", "binary", "choice", "mathematics", "movement", "narrow_blocks"),
    *("normalization", "quantised", "recurrent", "reduce", "softmax", "trees", "unary", "unsigned_bytes"),
)
"""Files of tests/ops with operators that random layers do not have."""
TEXTS = {
    0: "accepted and run",
    -3: "not a pack",
    -4: "cut off",
    -6: "wrong sum",
    -10: "another format",
    -11: "another interface",
    -12: "another core",
    -13: "too much arena",
    -14: "too much state",
    -15: "a position is outside",
    -16: "too many tensors",
    -26: "an unknown kernel",
    -27: "a call leaves its memory",
    -28: "too much work",
    -29: "older layouts",
}


@dataclass(frozen=True)
class Seed:
    """A real pack, and the memory that it requires."""

    content: bytes
    arena_bytes: int
    state_bytes: int
    kernels: tuple[Playable, ...]


@cache
def seeds(on: str) -> tuple[Seed, ...]:
    """Small layers, a few for each kernel that they select."""
    target = _machine(on).target.name
    used: Counter[str] = Counter()
    found = []
    for compiled in _planned(Options(target=target, kernels="portable", bands=False)):
        try:
            data = data_image(compiled, Version(1, 0, 0, 0))
        except TinymlError:
            continue  # the player has no kernel for it
        names = [kernel.name for kernel in data.kernels]
        if len(data.content) > MOST_BYTES or _work(data.content) > MOST_WORK:
            continue
        if all(used[name] >= (PER_LOOP if name == LOOP else PER_KERNEL) for name in names):
            continue
        used.update(names)
        payload = int.from_bytes(data.content[12:16], "little")
        content = data.content[: HEADER_BYTES + payload]
        found.append(Seed(content, compiled.plan.arena_bytes, data.state_bytes, data.kernels))
    return tuple(found)


def _planned(options: Options) -> list[Compiled]:
    """Graphs that are compiled but for their C, of which packs have nothing; those with small arenas."""
    target = find_target(options.target)
    found: list[Compiled] = []
    summary = {"target": options.target, "sha256": "0" * 64}
    with always_four_bits():
        for graph in _optimized():
            try:
                graph, selected, plan = lay_out(graph, target, options)
            except TinymlError:
                continue
            if plan.arena_bytes <= MOST_ARENA:
                found.append(Compiled(graph.name, graph, selected, plan, {}, summary))
    return found


@cache
def _optimized() -> tuple[Graph, ...]:
    """The same for every core."""
    graphs = list(_small_graphs())
    with always_four_bits():
        return tuple(map(optimize, graphs))


def _small_graphs() -> Iterator[Graph]:
    """Random layers, and the cases of operators that those do not have."""
    for number in BATCHES:
        layers = batch(34, number, LAYERS)
        for node in layers.graph.nodes:
            yield layers.only([node.name]).graph
    for file in CASES:
        for case in import_module(f"tests.ops.{file}").CASES:
            yield case.graph()
    yield from small_graphs()
    for model in LOOPS:
        bounds = {"settling": TURNS} if model.graph.node[0].name == "settling" else {}
        yield importers.read(loop_models.file(model), bounds=bounds)


def _work(content: bytes) -> int:
    """What a pack states: the third word of its program, where the descriptor's ``run`` is."""
    (program,) = struct.unpack_from("<I", content, HEADER_BYTES + 12)
    (work,) = struct.unpack_from("<I", content, program + 8)
    return int(work)


def campaign(on: str, seed: int, first: int, count: int, timeout_seconds: float = 36000) -> dict[int, int]:
    """How many packs were refused with which error; 0: accepted. A finding is a ToolError."""
    return _run("packs", on, seed, first, count, timeout_seconds)


def rules(
    on: str, seed: int, first: int, count: int, timeout_seconds: float = 36000, short: int = 0
) -> dict[str, int]:
    """How many calls were made of each kernel whose rules were tried (tools/hostile/rules.c).

    Under an empty name: calls that checks refused, or that would take long. A finding is a ToolError. With
    ``short``, calls get so many bytes less than their rules state, as if these were too generous.
    """
    counts = _run("rules", on, seed, first, count, timeout_seconds, (f"-DRULES_SHORT={short}u",))
    names = ["", *(kernel.name for kernel in with_rules(_machine(on)))]
    return {names[number]: calls for number, calls in counts.items()}


def _run(
    what: str,
    on: str,
    seed: int,
    first: int,
    count: int,
    timeout_seconds: float,
    defines: tuple[str, ...] = (),
) -> dict[int, int]:
    machine = _machine(on)
    with tempfile.TemporaryDirectory(prefix="tinyml-hostile-") as scratch:
        folder = Path(scratch)
        words, environment = _built(what, machine, folder, seed, first, count, defines)
        try:
            done = subprocess.run(
                words,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                env={**os.environ, **environment},
                timeout=timeout_seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise ToolError(f"hostile packs do not end on {on} within {timeout_seconds:g} s") from None
    if done.returncode != 0:
        said = faults.wrong_access(done.stderr) or ""
        raise ToolError(f"a finding on {on}, seed {seed}: {said}\n{excerpt(done.stdout + done.stderr, 40)}")
    return {int(error): int(number) for error, number in re.findall(r"^(-?\d+) (\d+)$", done.stdout, re.M)}


def _machine(on: str) -> Machine:
    return harness.find_machine(on)


def _flags(machine: Machine) -> tuple[str, ...]:
    base = base_flags(machine, harness.Options())
    return ("-std=gnu11", *base, *(("-O2",) if machine.board else SANITIZERS))


def _runtime_unit(machine: Machine, name: str) -> Unit:
    """A source of the runtime; the same object for whoever needs it, as compiling all takes a minute."""
    return Unit(RUNTIME_C / name, "runtime", (*_flags(machine), *WARNINGS, OVERLAPPING), INCLUDES)


def _built(
    what: str,
    machine: Machine,
    folder: Path,
    seed: int,
    first: int,
    count: int,
    more: tuple[str, ...],
) -> tuple[list[str], dict[str, str]]:
    packs, kernels = seeds(machine.name), _sorted(available(machine))
    if what == "rules":
        kernels = with_rules(machine)
        packs = tuple(pack for pack in packs if set(pack.kernels) <= set(kernels))
    device = machine.board is not None
    most = {
        "PACKS_MOST_BYTES": max(len(pack.content) for pack in packs),
        "PACKS_MOST_ARENA": max(pack.arena_bytes for pack in packs),
        "PACKS_MOST_STATE": max(pack.state_bytes for pack in packs),
    }
    flags = _flags(machine)
    lines = [*_seeds_source(packs, most), *_tables_source(kernels)]
    (folder / "seeds.c").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "kernels.c").write_text(table(kernels), encoding="utf-8")
    ours = (*flags, *WARNINGS)
    wrapped = [f"-Wl,--wrap=tinyml_check_{name}" for name in STATED] if what == "rules" else []
    units = [_runtime_unit(machine, name) for name in sources(kernels)]
    units += [Unit(folder / name, "model", ours, INCLUDES) for name in ("seeds.c", "kernels.c")]
    units.append(Unit(HOSTILE / f"{what}.c", "harness", (*ours, *more), INCLUDES))
    if what == "rules":
        units.append(Unit(HOSTILE / "rules_calls.c", "harness", ours, INCLUDES))
    if not device:
        units.append(Unit(HOSTILE / f"{what}_host.c", "harness", ours, INCLUDES))
        objects = compile_all(host_compiler(), units)
        program = folder / "packs"
        link = [
            str(host_compiler().path),
            *SANITIZERS,
            *wrapped,
            *map(str, objects),
            "-lm",
            "-o",
            str(program),
        ]
        done = subprocess.run(link, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ToolError(f"cannot link:\n{excerpt(done.stderr)}")
        return [str(program), str(seed), str(first), str(count)], {"ASAN_OPTIONS": "detect_leaks=0"}
    which = {"PACKS_START": seed, "PACKS_FIRST": first, "PACKS_COUNT": count}
    defines = tuple(f"-D{name}={value}u" for name, value in (most | which).items())
    units.append(Unit(HOSTILE / f"{what}_device.c", "harness", (*ours, *defines), INCLUDES))
    units += [Unit(HARNESS_C / name, "harness", flags, INCLUDES) for name in port_sources(machine)]
    image = assemble(units, machine, folder, harness.Options(), wrapped)
    return command(image), {}


def _seeds_source(packs: Iterable[Seed], most: dict[str, int]) -> Iterator[str]:
    packs = list(packs)
    yield '#include "packs.h"'
    for number, pack in enumerate(packs):
        words = np.frombuffer(pack.content, "<u4")
        yield f"static const uint32_t pack{number}[{words.size}] = {{"
        yield "\n".join(c.table_rows(words))
        yield "};"
    yield "const struct seed packs_seeds[] = {"
    for number, pack in enumerate(packs):
        yield f"\t{{pack{number}, {len(pack.content)}, {pack.arena_bytes}, {pack.state_bytes}}},"
    yield "};"
    yield f"const uint32_t packs_seed_count = {len(packs)};"
    for name, value in most.items():
        yield f"const uint32_t {name.lower()} = {value};"


def _tables_source(kernels: Iterable[Playable]) -> Iterator[str]:
    """Where records have positions, by the number of a kernel in the table."""
    yield '#include "rules.h"'
    yield "const uint8_t rules_tables[][RULES_TABLES] = {"
    yield "\t{RULES_NO_TABLE},"
    for kernel in kernels:
        yield f"\t{{{', '.join([*map(str, kernel.record.tables()), 'RULES_NO_TABLE'])}}},"
    yield "};"


def _sorted(kernels: Iterable[Playable]) -> list[Playable]:
    return sorted(kernels, key=lambda kernel: kernel.number)


def with_rules(machine: Machine) -> list[Playable]:
    """Kernels that touch memory by a rule of their own: all but loops, which make calls."""
    return [kernel for kernel in _sorted(available(machine)) if kernel.name != LOOP]


@cache
def available(machine: Machine) -> list[Playable]:
    """The kernels that this machine has: those that it can run and its compiler does not leave out."""
    board = machine.board
    compiler = cross_compiler(board.toolchain) if board else host_compiler()
    names = sorted({source for kernel in KERNELS.values() for source in kernel.sources})
    units = [_runtime_unit(machine, name) for name in names]
    nm = f"{board.toolchain.gnu.name if board else 'gcc'}-nm"
    objects = map(str, compile_all(compiler, units))
    printed = subprocess.run(
        [nm, "-g", "--defined-only", *objects], capture_output=True, text=True, check=True
    )
    symbols = set(re.findall(r" [A-Z] (\w+)$", printed.stdout, re.M))
    found = [kernel for kernel in KERNELS.values() if set(kernel.name.split()) <= symbols]
    return [kernel for kernel in found if runs_on(kernel, machine.target)]
