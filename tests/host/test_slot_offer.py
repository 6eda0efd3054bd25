# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Packs that a server offers: what has become of them on the device, and hostile ones. Under sanitizers."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path
from random import Random

import pytest

from tests.support.programs import build_program
from tests.support.slot_images import errors
from tinyml.harness.program_build import RUNTIME_C, RUNTIME_INCLUDE, SANITIZERS, WARNINGS
from tinyml.pipeline import Options
from tinyml.player.table import sources, table
from tinyml.slots import container
from tinyml.slots.data_pack import pack_data
from tinyml.slots.data_reading import read_data
from tinyml.slots.families import DSP, HELIUM, PLAIN
from tinyml.slots.version import Version

DIGITS = Path(__file__).parents[2] / "samples" / "digits" / "model.onnx"
ERRORS = errors(Path(RUNTIME_INCLUDE) / "tinyml" / "slot.h")
NEW, RECEIVED, ON_TRIAL, KEPT, REJECTED = range(5)


@pytest.fixture(scope="module")
def packs() -> dict[int, bytes]:
    """By version; the host plays the second image of each."""
    return {
        version: container.encode(pack_data(DIGITS, Options(), (DSP, PLAIN, HELIUM), Version(version))[0])
        for version in (1, 2, 3)
    }


@pytest.fixture(scope="module")
def program(packs: dict[int, bytes], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("offer")
    kernels = read_data(container.decode(packs[1], "").images["plain"]).kernels
    (folder / "table.c").write_text(table(kernels))
    slot = [path for path in sorted(Path(RUNTIME_C).glob("slot/*.c")) if "trust_" not in path.name]
    played = [RUNTIME_C / name for name in sources(kernels) if not name.startswith("slot/")]
    main = Path(__file__).parents[1] / "support" / "offer_main.c"
    files = [main, folder / "table.c", RUNTIME_C / "player" / "slot_player.c", *slot, *played]
    flags = ("-std=gnu11", "-O1", *WARNINGS, *SANITIZERS)
    return build_program(folder / "program", files, flags, (RUNTIME_C, RUNTIME_INCLUDE))


def told(program: Path, folder: Path, *words: str | bytes) -> list[tuple[str, int, int]]:
    """For each file, the error, what has become of it before, and the bytes that were read."""
    arguments = []
    for number, word in enumerate(words):
        if isinstance(word, bytes):
            (folder / str(number)).write_bytes(word)
            word = str(folder / str(number))
        arguments.append(word)
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    return [(ERRORS[error] if error else "", state, taken) for error, state, taken in lines]


def outcome(program: Path, folder: Path, *words: str | bytes) -> list[str | int]:
    return [error or state for error, state, _ in told(program, folder, *words)]


def test_the_slots_remember(program: Path, packs: dict[int, bytes], tmp_path: Path) -> None:
    one, two, three = packs.values()
    assert outcome(program, tmp_path, one, one, "keep", one) == [NEW, ON_TRIAL, KEPT]
    assert outcome(program, tmp_path, one, "restart", one, two) == [NEW, ON_TRIAL, "BUSY"]
    story = (one, "keep", two, "give-up", two, one, three, "keep", two, three)
    assert outcome(program, tmp_path, *story) == [NEW, NEW, REJECTED, KEPT, NEW, "VERSION", KEPT]


def test_one_that_was_interrupted_is_resumed(program: Path, packs: dict[int, bytes], tmp_path: Path) -> None:
    one, two, _ = packs.values()
    (_, _, all_of_it), *_ = told(program, tmp_path, one)
    half, rest = told(program, tmp_path, "half", one, one)
    assert half[0] == rest[0] == ""
    assert rest[2] < all_of_it, "what was there is not read again"
    half, other = told(program, tmp_path, "half", one, two)
    assert other == ("", NEW, all_of_it), "another version begins at its start"


def test_only_the_image_for_this_core_is_read(program: Path, packs: dict[int, bytes], tmp_path: Path) -> None:
    images = container.decode(packs[1], "").images
    ((error, _, taken),) = told(program, tmp_path, packs[1])
    assert error == ""
    assert len(images["plain"]) < taken < len(images["plain"]) + 1024 < len(packs[1])


def test_what_is_refused(program: Path, packs: dict[int, bytes], tmp_path: Path) -> None:
    images = container.decode(packs[1], "").images
    foreign = container.encode(container.Pack({"helium": images["helium"]}))
    damaged = bytearray(packs[1])
    damaged[packs[1].index(images["plain"]) + len(images["plain"]) // 2] ^= 1
    files = [b"", b"#!/bin/sh\nexit 0\n", packs[1][:40], packs[1][:-1], foreign, bytes(damaged)]
    found = outcome(program, tmp_path, *files)
    assert found == ["BOUNDS", "MAGIC", "BOUNDS", "BOUNDS", "CORE_TOO_SMALL", "DAMAGED"]


def test_any_file(program: Path, packs: dict[int, bytes], tmp_path: Path) -> None:
    """With numbers of its table and of the start of its images replaced; none of them is kept."""
    random = Random(3)
    files: list[bytes | str] = []
    for _ in range(300):
        content = bytearray(packs[2])
        for _ in range(random.randint(1, 3)):
            at = random.randrange(8, 300) // 4 * 4
            value = random.choice((0, 1, 4, 16, 2**31, 2**32 - 1, 2**32 - 16, random.getrandbits(32)))
            struct.pack_into("<I", content, at, value)
        files += [bytes(content), "give-up"]
    found = told(program, tmp_path, *files)
    assert len(found) == 300
    assert {error for error, _, _ in found} > {"BOUNDS", "MAGIC"}
