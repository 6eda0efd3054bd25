# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The walk as a program: what it reads, how it is built and run, and what it prints."""

from __future__ import annotations

import struct
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import field
from pathlib import Path

from tinyml.base.errors import ToolError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.bounds.elf import Elf
from tinyml.bounds.operations import Operation
from tinyml.harness import tools
from tinyml.harness.footprint import HARNESS
from tinyml.harness.objects import Unit, compile_all, excerpt

SOURCES = Path(__file__).parent / "c"
STACK_BASE, STACK_BYTES = 0xA0000000, 0x40000
TABLES_BASE = 0xB0000000
MOST_FORKS = 20_000
MOST_STEPS_BY_DATA = 40_000_000
_MAGIC = 0x31424D54


@dataclass(frozen=True)
class Cost:
    """``most`` and ``least`` instructions of any run, and the most cycles."""

    most: int
    least: int
    cycles: int
    varies: bool = False


@dataclass
class Findings:
    """What a walk found. ``failure``: the instruction that ended it, and why."""

    total: Cost = Cost(0, 0, 0)
    stack_bytes: int = 0
    forks: int = 0
    layers: list[Cost] = field(default_factory=list)
    written: list[tuple[int, int]] = field(default_factory=list)  # from, to
    by_data: list[int] = field(default_factory=list)  # stores to addresses that depend on data
    parts: set[int] = field(default_factory=set)  # of which the code says how often they run
    failure: tuple[int, str] | None = None


def walk(
    elf: Elf,
    operations: Sequence[Operation],
    entry: int,
    layers: int,
    unaligned_cycles: int = 0,
    forgotten: Sequence[tuple[int, int]] = (),
    tables: Sequence[int] = (),
) -> Findings:
    """Walk from ``entry`` on. ``forgotten``: bytes of initialised variables that runs change."""
    base, end = operations[0].address, operations[-1].address + 4
    segments = [
        _segment(base, content, True, False, unknown) for base, content, unknown in _ram(elf, forgotten)
    ]
    segments += [
        _segment(s.address, s.content, False, False, bytes(s.bytes))
        for s in elf.sections
        if s.content is not None and not s.writable
    ]
    segments.append(_segment(STACK_BASE, bytes(STACK_BYTES), True, True, b"\1" * STACK_BYTES))
    if tables:
        content = struct.pack(f"<{len(tables)}I", *tables)
        segments.append(_segment(TABLES_BASE, content, False, False, bytes(len(content))))
    header = struct.pack(
        "<10IQ",
        *(_MAGIC, len(operations), len(segments), base, end - base, entry, STACK_BASE + STACK_BYTES),
        *(MOST_FORKS, layers, unaligned_cycles, MOST_STEPS_BY_DATA),
    )
    with tempfile.TemporaryDirectory(prefix="tinyml-bounds-") as name:
        program = Path(name) / "program.bin"
        program.write_bytes(b"".join([header, *(one.packed() for one in operations), *segments]))
        done = subprocess.run(
            [str(_built(Path(name))), str(program)], capture_output=True, text=True, check=False
        )
    if done.returncode:
        raise ToolError(f"the walk ended with exit status {done.returncode}: {excerpt(done.stderr, 3)}")
    return read_findings(done.stdout)


def _ram(elf: Elf, forgotten: Sequence[tuple[int, int]]) -> list[tuple[int, bytes, bytes]]:
    found = []
    for section in elf.sections:
        if not section.writable:
            continue
        unknown = bytearray(section.bytes if section.content is not None else b"\1" * section.bytes)
        for begin, end in forgotten:
            for address in range(max(begin, section.address), min(end, section.address + section.bytes)):
                unknown[address - section.address] = 1
        found.append((section.address, section.content or bytes(section.bytes), bytes(unknown)))
    return found


def _segment(base: int, content: bytes, writable: bool, stack: bool, unknown: bytes) -> bytes:
    return struct.pack("<4I", base, len(content), writable, stack) + content + unknown


def _built(folder: Path) -> Path:
    """The program, linked into ``folder``; its objects are kept like those of kernels."""
    compiler = tools.host_compiler()
    flags = ("-std=c11", "-O2")
    units = [Unit(path, HARNESS, flags, (SOURCES,)) for path in sorted(SOURCES.glob("*.c"))]
    objects = compile_all(compiler, units)
    path = folder / "walk"
    done = subprocess.run(
        [str(compiler.path), *map(str, objects), "-o", str(path)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ToolError(f"{compiler.path.name} cannot link the walk: {excerpt(done.stderr, 3)}")
    return path


def read_findings(text: str) -> Findings:
    """What the walk printed."""
    found = Findings()
    for line in text.splitlines():
        word, *rest = line.split()
        if word == "fail":
            found.failure = int(rest[0]), " ".join(rest[1:])
        elif word == "total":
            most, least, cycles, stack, forks, _ = map(int, rest)
            found.total, found.stack_bytes, found.forks = (
                Cost(most, least, cycles, most != least),
                stack,
                forks,
            )
        elif word == "layer":
            _, most, least, cycles, varies = map(int, rest)
            found.layers.append(Cost(most, least, cycles, bool(varies)))
        elif word == "written":
            found.written.append((int(rest[0]), int(rest[1])))
        elif word == "part":
            found.parts.add(int(rest[0]))
        elif word == "anywhere":
            found.by_data.append(int(rest[0]))
    return found
