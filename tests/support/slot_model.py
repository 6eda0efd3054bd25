# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The explorer of updates, ``slot_model*.c``: every order of steps, every power failure, on the real code."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support import slot_images as fake
from tests.support.slot_simulator import ENVIRONMENT
from tinyml.harness.objects import Unit, compile_all
from tinyml.harness.program_build import RUNTIME_C, RUNTIME_INCLUDE, SANITIZERS, WARNINGS
from tinyml.harness.tools import host_compiler
from tinyml.slots.version import Version

SOURCES = sorted(Path(__file__).parent.glob("slot_model*.c"))
TESTS = (b"T\0", b"T\0", b"N\0", b"T\0")
"""The self-tests of the four models; N returns TINYML_SLOT_NO_CODE, which is no pass."""


@dataclass(frozen=True)
class Limits:
    """What a path has at most: updates that begin, power failures, changed bits, clients."""

    begins: int
    cuts: int
    rots: int
    clients: int


@dataclass(frozen=True)
class Flash:
    """A kind of flash in ``slot_model_flash.c``."""

    name: str
    slot_bytes: int
    room: int


def build_model(
    folder: Path, change: Callable[[str, str], str] = lambda name, text: text, sanitized: bool = True
) -> Path:
    """The explorer, with every source of the runtime's slots passed through ``change(name, text)``."""
    sanitizers = SANITIZERS if sanitized else ()
    flags = ("-std=gnu11", "-O2", "-DTINYML_FLASH_WRITE_MAX=64", *WARNINGS, *sanitizers)
    copies = folder / "slot"
    copies.mkdir()
    for path in sorted(Path(RUNTIME_C).glob("slot/*")):
        if "trust_" not in path.name and path.name != "receiver.c":
            (copies / path.name).write_text(change(path.name, path.read_text(encoding="utf-8")))
    includes = (Path(RUNTIME_INCLUDE), copies)
    sources = [*SOURCES, *sorted(copies.glob("*.c"))]
    compiler = host_compiler()
    objects = compile_all(compiler, [Unit(source, "model", flags, includes) for source in sources])
    program = folder / "slot_model"
    subprocess.run([str(compiler.path), *sanitizers, *map(str, objects), "-o", str(program)], check=True)
    return program


def flashes(program: Path) -> list[Flash]:
    lines = run(program, ["kinds"]).splitlines()
    return [Flash(name, int(slot), int(room)) for name, slot, room in map(str.split, lines)]


def make_files(folder: Path, flash: Flash) -> list[str]:
    """Four models for a kind of flash, as long as its slots have room for."""
    size = flash.room // 32 * 32 - len(fake.image_of(size=0))
    paths = []
    for number, test in enumerate(TESTS, 1):
        images = [
            fake.image_of(
                address=fake.ADDRESS + index * flash.slot_bytes,
                version=Version(number),
                value=11 * number,
                test=test,
                size=size,
            )
            for index in range(2)
        ]
        path = folder / f"{flash.name}-{number}.img"
        path.write_bytes(struct.pack("<II", len(images[0]), 11 * number) + b"".join(images))
        paths.append(str(path))
    return paths


def explore(program: Path, flash: Flash, files: Sequence[str], limits: Limits) -> dict[str, int]:
    words = [limits.begins, limits.cuts, limits.rots, limits.clients]
    return _counts(run(program, ["explore", flash.name, *map(str, words), *files]))


def sweep(
    program: Path, flash: Flash, files: Sequence[str], again: bool, distance: int = 0
) -> dict[str, int]:
    """Runs of 0xff and 0x00 at all multiples of ``distance``; 0: at the end of every write unit."""
    return _counts(run(program, ["sweep", flash.name, str(int(again)), str(distance), *files]))


def _counts(line: str) -> dict[str, int]:
    """``3 states, 4 steps`` as a dictionary."""
    return {name: int(count) for count, name in (part.split() for part in line.split(","))}


class Violation(AssertionError):
    """The explorer found a path on which something is not as it must be."""


def run(program: Path, words: Sequence[str]) -> str:
    done = subprocess.run(
        [str(program), *words], capture_output=True, text=True, check=False, env=ENVIRONMENT
    )
    if done.returncode != 0:
        raise Violation(done.stderr)
    return done.stdout
