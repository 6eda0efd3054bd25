# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Upper bounds of a model over all its inputs, from the machine code of a linked image.

Instructions, stack and written bytes come from one walk (c/walk.c) through NAME_run() and all that it calls.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tinyml.base.errors import ConfigError, ToolError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.bounds import library_loops
from tinyml.bounds.decode import decode
from tinyml.bounds.elf import Elf, Symbol, read_elf
from tinyml.bounds.flow import set_jumps, set_merges
from tinyml.bounds.layer_lines import layers_by_line, lines_of, set_layers
from tinyml.bounds.parts import set_parts
from tinyml.bounds.stated_turns import limit_stated
from tinyml.bounds.walk_program import STACK_BASE, TABLES_BASE, Cost, Findings, walk
from tinyml.bounds.worst_cycles import UNALIGNED, set_cycles
from tinyml.cores.machines import Machine
from tinyml.cores.toolchains import ARM
from tinyml.cost.instructions import Instruction, disassemble
from tinyml.harness import Image, Options, build, tools
from tinyml.harness.generated import Generated, read_generated

STATED = "loops of the generated C end after as many turns as the comments before them say"
TOTALS = (
    "run at most as often in one call of their kernel as the kernel says, for all data but those that its "
    "comments name; builds with sanitizers check it"
)
NOT_SHOWN = (
    "interrupts, and the stack that they use",
    "wait states of memories, caches and other masters on the bus: they add cycles, not instructions",
    "errors of the core, the compiler's library or objdump, which reads the machine code",
)


class NoBoundError(ToolError):
    """The walk met something that has no bound, or that it does not know."""


@dataclass(frozen=True)
class Written:
    """Bytes that a run can write, all of one variable."""

    symbol: str
    address: int
    bytes: int  # how many of its bytes


@dataclass(frozen=True)
class LayerBound:
    """One layer. ``varies``: whether its instructions depend on data; if not, ``most`` is exact."""

    step: int
    most: int
    least: int
    cycles: int | None
    varies: bool


@dataclass(frozen=True)
class Bound:
    """What no run exceeds, whatever its inputs are."""

    model: str  # its prefix in C
    core: str  # for which it is linked
    instructions: int  # the most of any run
    least_instructions: int  # the least of any run
    cycles: int | None  # at zero wait states by Arm's tables; None where there are none
    stack_bytes: int  # the most of any run
    layers: tuple[LayerBound, ...]  # the most of each layer
    written: tuple[Written, ...]  # which bytes a run may write
    assumptions: tuple[str, ...]  # what must hold
    branches_by_data: int  # which were followed both ways

    @property
    def varies(self) -> bool:
        """Whether inputs decide how many instructions a run takes."""
        return self.instructions != self.least_instructions

    def as_json(self) -> dict[str, Any]:
        """Plain data, for files."""
        return {
            "model": self.model,
            "core": self.core,
            "instructions": self.instructions,
            "least_instructions": self.least_instructions,
            "cycles": self.cycles,
            "stack_bytes": self.stack_bytes,
            "layers": [vars(layer) for layer in self.layers],
            "written": [vars(one) for one in self.written],
            "assumptions": list(self.assumptions),
            "not_shown": list(NOT_SHOWN),
        }


def bound_files(files: Mapping[str, str], machine: Machine) -> Bound:
    """The bound of generated files that are not on disk, linked for a machine."""
    with tempfile.TemporaryDirectory(prefix="tinyml-") as name:
        folder = Path(name)
        for file, text in files.items():
            (folder / file).write_text(text, encoding="utf-8")
        return bound_generated(read_generated(folder), machine, folder)


def bound_generated(model: Generated, machine: Machine, folder: Path) -> Bound:
    """Build a compiled model for a machine in ``folder``, and bound it."""
    if machine.board is None or machine.board.toolchain != ARM:
        raise ConfigError(
            f"{machine.name} has no bounds: they are computed for Cortex-M cores", "--target cortex-m4"
        )
    if model.opened_by or model.npu or model.row_bytes:
        raise ConfigError(
            "bounds are computed for models whose code is in the image and that run on the CPU in one call",
            "a model that is compiled without npu and without `io: rows`",
        )
    image: Image = build(model, machine, folder, Options(lines=True))
    return bound_image(image.path, model.name, machine.target.name, model.source.read_text(encoding="utf-8"))


def models_in(elf: Elf) -> list[str]:
    """What may be models in an image, because it has a function NAME_run()."""
    functions = {symbol.name for symbol in elf.symbols if not symbol.is_object}
    return sorted(name.removesuffix("_run") for name in functions if name.endswith("_run"))


def bound_image(path: Path, model: str, core: str, source: str) -> Bound:
    """The bound of a model in a linked image; ``source`` is its generated C, for the layers."""
    elf = read_elf(path)
    run = elf.symbol(f"{model}_run")
    if run is None:
        known = ", ".join(models_in(elf)) or "none"
        raise ConfigError(f"{path.name} has no function {model}_run", f"it has those of: {known}")
    newest = ("-m", "armv8.1-m.main") if "v8.1-M" in tools.attributes(ARM, path) else ()
    code = disassemble(tools.disassembly(ARM, path, *newest))
    operations, undecoded = decode(list(code.values()))
    tables = set_jumps(operations, elf.read, TABLES_BASE)
    followers = set_merges(operations, elf.read, tables)
    functions = [code[operation.address].function for operation in operations]
    limited = library_loops.limit_loops(operations, followers, functions)
    timed = set_cycles(operations, code, core)
    by_line = layers_by_line(source)
    rows = tools.lines(ARM, path)
    set_layers(operations, run, rows, f"{model}.c", by_line)
    stated = limit_stated(operations, followers, lines_of(operations, rows, f"{model}.c"), source)
    parts = set_parts(operations, followers, elf.symbols)
    count = max(by_line.values(), default=-1) + 1
    flat = [target for targets in tables.values() for target in targets]
    unaligned = UNALIGNED.get(core, 0) if timed else 0
    found = walk(elf, operations, run.address, count, unaligned, (), flat)
    if changed := _changed(elf, found):  # once more, without what a run before this one has changed
        found = walk(elf, operations, run.address, count, unaligned, changed, flat)
    if found.failure is not None:
        raise _no_bound(model, code, undecoded, *found.failure)
    assumptions = _assumptions(found, code, limited)
    assumptions += [STATED] if stated else []
    if found.parts:
        assumptions.append(f"{', '.join(sorted(parts[part] for part in found.parts))} {TOTALS}")
    return Bound(
        model,
        core,
        found.total.most,
        found.total.least,
        found.total.cycles if timed else None,
        found.stack_bytes,
        tuple(_layer(step, cost, timed) for step, cost in enumerate(found.layers)),
        _written(elf, found),
        tuple(assumptions),
        found.forks,
    )


def _layer(step: int, cost: Cost, timed: bool) -> LayerBound:
    return LayerBound(step, cost.most, cost.least, cost.cycles if timed else None, cost.varies)


def _changed(elf: Elf, found: Findings) -> list[tuple[int, int]]:
    """Written bytes of variables that had a value at the start of the program."""
    initialised = [s for s in elf.sections if s.writable and s.content is not None]
    return [
        (max(begin, s.address), min(end, s.address + s.bytes))
        for begin, end in found.written
        for s in initialised
        if begin < s.address + s.bytes and end > s.address
    ]


def _written(elf: Elf, found: Findings) -> tuple[Written, ...]:
    owners: dict[str, list[int]] = {}
    variables: list[Symbol] = [symbol for symbol in elf.symbols if symbol.is_object and symbol.bytes]
    for begin, end in found.written:
        if begin >= STACK_BASE:
            continue
        at = begin
        while at < end:
            inside = [s for s in variables if s.address <= at < s.address + s.bytes]
            owner = min(inside, key=lambda s: s.bytes, default=None)
            starts = [s.address for s in variables if at < s.address < end]
            stop = min([end, *starts, *([owner.address + owner.bytes] if owner else [])])
            name = owner.name if owner else elf.object_at(at)
            entry = owners.setdefault(name, [at, 0])
            entry[1] += stop - at
            at = stop
    return tuple(Written(name, address, count) for name, (address, count) in sorted(owners.items()))


def _assumptions(found: Findings, code: Mapping[int, Instruction], limited: set[str]) -> list[str]:
    said = []
    stores = sorted({code[address].function for address in found.by_data})
    if stores:
        said.append(
            f"{', '.join(stores)} stores to addresses that depend on data: they are assumed to lie in the "
            "variables of the image, not on the stack"
        )
    if limited and found.forks:
        said.append(
            f"loops of the compiler's library ({', '.join(sorted(limited))}) end after as many turns as "
            "their words have bits, or as there are bits below the one that ends them"
        )
    return said


def _no_bound(
    model: str, code: Mapping[int, Instruction], undecoded: Mapping[int, str], address: int, why: str
) -> NoBoundError:
    where = f"at {address:#x}"
    if address in code:
        where += f" in {code[address].function} ({undecoded.get(address) or code[address].name})"
    return NoBoundError(
        f"{model} has no bound: {why}, {where}",
        "docs/bounds.md lists what has none; `report --on` measures runs",
    )
