# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What a device does with images, on the host under sanitizers: hostile ones, updates, power failures."""

from __future__ import annotations

import itertools
import os
import struct
import subprocess
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import pytest

from tests.support import slot_images as fake
from tests.support.slot_simulator import ENVIRONMENT, ERRORS, Case, build_simulator, verdicts
from tinyml.slots import image
from tinyml.slots.version import Version, parse_version

MUTATED = int(os.environ.get("TINYML_FUZZ_SLOTS", "5000"))

FUZZED_REQUESTS = 200_000

save = fake.save


@pytest.fixture(scope="module")
def simulator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_simulator(tmp_path_factory.mktemp("simulator"))


def test_a_good_image(simulator: Path) -> None:
    ((error, executed, *answers),) = verdicts(simulator, [Case(fake.image_of(value=7))])
    assert (error, executed) == ("0", "0"), "a model without state runs nothing when it is opened"
    assert answers == ["4", "7", "0", "4"], "length of the name, result, status, bytes of the output"


def resealed(change: Callable[[bytearray], None]) -> bytes:
    """An image whose descriptor was changed by somebody who can compute checksums."""
    whole = fake.image_of()
    payload = bytearray(whole[32 : 32 + fake.payload_bytes(whole)])
    change(payload)
    return image.seal(fake.ADDRESS, Version(1), bytes(payload))


def poke(position: int, form: str, value: int) -> Callable[[bytearray], None]:
    """A change at a position of struct descriptor."""
    return lambda payload: struct.pack_into(form, payload, position, value)


FAR = 0x10000
HOSTILE = {
    "erased": (Case(b"\xff" * 512), "EMPTY"),
    "zeros": (Case(bytes(512)), "MAGIC"),
    "something else": (Case(b"#!/bin/sh\nexit 0\n".ljust(512)), "MAGIC"),
    "too small a slot": (Case(b"\xff" * 64), "REGION"),
    "slot at an odd address": (Case(fake.image_of(), address=fake.ADDRESS + 4), "REGION"),
    "cut in half": (Case(fake.image_of()[:512]), "BOUNDS"),
    "another slot's address": (Case(fake.image_of(address=fake.ADDRESS + FAR)), "ADDRESS"),
    "damaged code": (Case(fake.flipped(fake.image_of(), 8 * 600)), "DAMAGED"),
    "another format": (Case(resealed(poke(4, "<H", 2))), "FORMAT_NEW"),
    "no descriptor": (Case(resealed(poke(0, "<I", 0))), "FORMAT_NEW"),
    "another interface": (Case(resealed(poke(6, "<H", 3))), "ABI"),
    "an arena that is too large": (Case(fake.image_of(), arena=fake.ARENA - 1), "ARENA"),
    "an arena of 4 GB": (Case(resealed(poke(24, "<I", 2**32 - 1))), "ARENA"),
    "an arena without alignment": (Case(resealed(poke(32, "<H", 0))), "ARENA"),
    "a state that is too large": (Case(fake.image_of(), state=fake.STATE - 1), "STATE"),
    "a state with a strange alignment": (Case(resealed(poke(34, "<H", 4096 * 8 - 1))), "STATE"),
    "run outside": (Case(resealed(poke(12, "<I", FAR))), "POINTER"),
    "run at the very end": (Case(resealed(poke(12, "<I", 2**32 - 2))), "POINTER"),
    "run in the header": (Case(resealed(poke(12, "<I", 4))), "POINTER"),
    "reset outside": (Case(resealed(poke(16, "<I", FAR))), "POINTER"),
    "test missing": (Case(resealed(poke(20, "<I", 0))), "POINTER"),
    "name outside": (Case(resealed(poke(36, "<I", FAR))), "POINTER"),
    "tensors outside": (Case(resealed(poke(40, "<I", FAR))), "POINTER"),
    "tensors wrap around": (Case(resealed(poke(40, "<I", 2**32 - 4))), "POINTER"),
    "tensors misaligned": (Case(resealed(poke(40, "<I", 34))), "POINTER"),
    "hundreds of tensors": (Case(resealed(poke(44, "<B", 255))), "POINTER"),
    "more tensors than there is room for": (Case(fake.image_of(ports=5, size=4000)), "TOO_MANY"),
    "tensor name outside": (Case(resealed(poke(80, "<I", FAR))), "POINTER"),
    "tensor shape outside": (Case(resealed(poke(84, "<I", FAR))), "POINTER"),
    "tensor behind the arena": (Case(resealed(poke(88, "<I", fake.ARENA))), "POINTER"),
    "tensor wraps around": (Case(resealed(poke(88, "<I", 2**32 - 2))), "POINTER"),
    "tensor longer than the arena": (Case(resealed(poke(92, "<I", 2**32 - 1))), "POINTER"),
    "tensor of an unknown type": (Case(resealed(poke(104, "<B", 11))), "POINTER"),
    "tensor of rank 255": (Case(resealed(poke(105, "<B", 255))), "POINTER"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_images(simulator: Path, name: str) -> None:
    case, expected = HOSTILE[name]
    ((error, executed, *_),) = verdicts(simulator, [case])
    assert (ERRORS[int(error)], executed) == (expected, "0")


def test_every_bit_of_the_header(simulator: Path) -> None:
    """Also of the descriptor and of all records behind the payload: none goes through, nothing runs."""
    whole = fake.image_of(ports=2)
    end = 32 + fake.payload_bytes(whole)
    bits = [*range(8 * 300), *range(8 * end, 8 * (end + 12))]
    lines = verdicts(simulator, [Case(fake.flipped(whole, bit)) for bit in bits])
    for bit, (error, executed, *_) in zip(bits, lines, strict=True):
        assert (int(error) < 0, executed) == (True, "0"), f"bit {bit} of the image makes no difference"
    assert {"MAGIC", "ADDRESS", "BOUNDS", "DAMAGED"} == {ERRORS[int(line[0])] for line in lines}


def test_sampled_bits_and_lengths(simulator: Path) -> None:
    whole = fake.image_of(size=3000)
    bits = range(8 * 300, 8 * (32 + fake.payload_bytes(whole)), 37)
    cases = [Case(fake.flipped(whole, bit)) for bit in bits]
    cases += [Case(whole[:length]) for length in range(0, 32 + fake.payload_bytes(whole) + 12, 32) if length]
    for error, executed, *_ in verdicts(simulator, cases):
        assert int(error) < 0
        assert executed == "0"


def test_descriptors_full_of_noise(simulator: Path) -> None:
    """Any word of the descriptor and its tensors replaced, with a checksum that is right."""
    values = (0, 1, 31, 33, 255, 256, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFC, 0xFFFFFFFF)
    positions = range(0, 80 + 2 * 28, 4)
    cases = [Case(resealed(poke(position, "<I", v))) for position in positions for v in values]
    for error, executed, *_ in verdicts(simulator, cases):
        assert int(error) in ERRORS
        assert executed == "0" or error == "0"


def test_mutated_images(simulator: Path) -> None:
    """Random changes to header, descriptor and tensors, half of them with a checksum that is right."""
    random = Random(1)
    cases = [Case(mutated(random)) for _ in range(MUTATED)]
    lines = verdicts(simulator, cases)
    found = {ERRORS[int(error)] for error, *_ in lines}
    assert {"OK", "BOUNDS", "DAMAGED", "FORMAT_NEW", "ABI", "ARENA", "STATE", "POINTER"} <= found
    assert all(executed == "0" or error == "0" for error, executed, *_ in lines)


def mutated(random: Random) -> bytes:
    content = bytearray(fake.image_of(ports=2))
    end = 32 + fake.payload_bytes(content)
    for _ in range(random.randint(1, 4)):
        at = random.choice((random.randrange(80), random.randrange(300), random.randrange(len(content))))
        form = random.choice("BHI")
        at -= at % struct.calcsize(form)
        value = random.choice((0, 1, 3, 31, 32, 64, 255, 2**15, 2**31, 2**32 - 1, random.getrandbits(32)))
        struct.pack_into(f"<{form}", content, at, value % 256 ** struct.calcsize(form))
    if random.random() < 0.5:
        return image.seal(fake.ADDRESS, Version(1), bytes(content[32:end]))
    return bytes(
        content[: random.choice((len(content), len(content), random.randrange(128, len(content)))) // 32 * 32]
    )


@pytest.fixture(scope="module", params=["code", "data"])
def files(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Five models: old, new, one that fails its test, the newest, one whose test never returns.

    With code, and as data for the player; the last one has code in any case.
    """
    folder = tmp_path_factory.mktemp("images")
    tests = (b"T\0", b"T\0", b"T\1", b"T\0", b"H\0")
    return [
        save(folder / f"{number}.img", Version(number), 11 * number, test, request.param == "data")
        for number, test in enumerate(tests, 1)
    ]


def simulate(simulator: Path, what: str, unit: str, files: Sequence[str]) -> str:
    command = [str(simulator), what, unit, *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("unit", ["1", "4", "8", "16", "32", "1+8", "8+64"])
def test_updates(simulator: Path, unit: str, files: list[str]) -> None:
    assert simulate(simulator, "stages", unit, files) == "fine\n"


@pytest.mark.parametrize("unit", ["4", "8", "32", "8+32", "32+256"])
def test_power_fails_at_every_write_and_erase(simulator: Path, unit: str, files: list[str]) -> None:
    """Five ways in which an interrupted operation ends, three kinds of update, a second failure after it.
    UNIT+BUFFER: images are written by a stream that has its own buffer."""
    words = simulate(simulator, "cuts", unit, files).split()
    assert words[0] == "operations"
    written = int(unit.rpartition("+")[2])
    assert all(int(count) > 5 * len(fake.image_of()) / written for count in words[1:4])
    assert int(words[5]) > 10, "no update was resumed"


@pytest.mark.parametrize("unit", ["4", "32"])
def test_parts_of_marks(simulator: Path, unit: str, files: list[str]) -> None:
    """Any prefix, any suffix and every single bit: half a confirmation is none, half a trial is one."""
    assert simulate(simulator, "marks", unit, files) == "fine\n"


@pytest.mark.parametrize("unit", ["8", "32", "8+64"])
def test_every_write_and_erase_fails_once(simulator: Path, unit: str, files: list[str]) -> None:
    """The update reports it, the old model stays, and the next attempt succeeds."""
    words = simulate(simulator, "faults", unit, files).split()
    assert int(words[1]) > len(fake.image_of()) / int(unit.rpartition("+")[2])


@pytest.mark.parametrize("unit", ["8", "8+64"])
def test_any_requests(simulator: Path, unit: str, files: list[str]) -> None:
    """What `deploy` sends, with steps left out, repeated, damaged and invented: nothing outside of buffers
    and slots is touched, and a model that runs is one that was sent."""
    words = simulate(simulator, "fuzz", unit, [*files, "3", str(FUZZED_REQUESTS)]).split()
    assert int(words[0]) >= FUZZED_REQUESTS
    assert int(words[2]) > FUZZED_REQUESTS // 4, "most requests were refused"
    assert int(words[4]) > 100, "no deployment succeeded"


ASCENDING = (
    "0.0.1", "0.0.1+1", "0.0.255", "0.0.256", "0.1.0", "0.255.0", "1.0.0", "1.0.0+2", "1.0.0+70000", "2.0.0"
)  # fmt: skip


@pytest.mark.parametrize("old, new", list(itertools.pairwise(ASCENDING)))
def test_every_part_of_a_version(simulator: Path, tmp_path: Path, old: str, new: str) -> None:
    """An update goes up, and neither back nor to the same version."""
    files = {name: save(tmp_path / name, parse_version(name), 1) for name in (old, new)}
    assert simulate(simulator, "order", "8", [files[old], files[new]]) == "0\n"
    refused = simulate(simulator, "order", "8", [files[new], files[old]])
    assert ERRORS[int(refused)] == "VERSION"
    assert ERRORS[int(simulate(simulator, "order", "8", [files[new], files[new]]))] == "VERSION"


def test_checksum_is_zlib(simulator: Path) -> None:
    """What the sender compares when it resumes."""
    whole = fake.image_of()
    stored = struct.unpack_from("<I", whole, 32 + fake.payload_bytes(whole) + 8)[0]
    assert stored == zlib.crc32(whole[: 32 + fake.payload_bytes(whole)])
