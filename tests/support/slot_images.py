# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Images for the simulated device of ``slot_sim.c``: two bytes at each entry instead of code."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import numpy as np

from tinyml.ops.framework.kernel import Record, Table
from tinyml.ops.framework.program import Call, Memory, Operand
from tinyml.player.call_work import work_of
from tinyml.player.encode import checksum, encode
from tinyml.player.program import Program
from tinyml.slots import image
from tinyml.slots.version import Version

ADDRESS = 0x60000
ARENA = 64
STATE = 16
SECTOR = 256


def image_of(
    *,
    address: int = ADDRESS,
    version: Version | None = None,
    value: int = 1,
    test: bytes = b"T\0",
    size: int = 500,
    ports: int = 1,
    key: image.Key | None = None,
) -> bytes:
    """``value`` is what running it gives; ``test`` the letter and the result of its self-test."""

    def port(name: str, offset: int) -> image.Port:
        return image.Port(name, (1, 4), 2, 4, 0.5, -3, in_state=False, offset=offset)

    facts = image.Facts(
        name="fake",
        version=version or Version(1),
        sha256=bytes(range(32)),
        core=0,
        arena_bytes=ARENA,
        arena_alignment=16,
        state_bytes=STATE,
        state_alignment=16,
        inputs=tuple(port(f"x{i}", 4 * i) for i in range(ports)),
        outputs=tuple(port(f"y{i}", 32 + 4 * i) for i in range(ports)),
    )
    start = image.code_offset(facts)
    code = b"R" + bytes([value]) + test + body(start + 4, size, value)
    return image.build(facts, address, image.Entries(start, 0, start + 2), code, key)


def data_image_of(*, version: Version | None = None, value: int = 1, fails: bool = False) -> bytes:
    """The same without code, for the player, of the same length: a program that writes ``value``."""
    length = len(image_of())
    rest = next(size for size in range(length) if len(_data_image(version, value, fails, size)) == length)
    return _data_image(version, value, fails, rest)


def _data_image(version: Version | None, value: int, fails: bool, rest: int) -> bytes:
    """``rest``: bytes of a constant that nothing reads."""
    facts = image.Facts(
        name="fake",
        version=version or Version(1),
        sha256=bytes(range(32)),
        core=0,
        arena_bytes=ARENA,
        arena_alignment=16,
        state_bytes=STATE,
        state_alignment=16,
        inputs=(image.Port("x0", (1, 4), 2, 4, 0.5, -3, in_state=False, offset=0),),
        outputs=(image.Port("y0", (1, 4), 2, 4, 0.5, -3, in_state=False, offset=32),),
        interface=image.DATA,
    )
    start = image.code_offset(facts)
    calls = [_fill(0, 1, value), _fill(32, 4, value)]
    unread = Table("rest", np.frombuffer(body(start, rest, value), np.uint8))
    content = encode(Program(calls, (), (unread,)), start, work_of(calls), 1).content
    content += bytes(-(start + len(content)) % 8)
    test = start + len(content)
    content += struct.pack("<II", 0, 256) + struct.pack("<Iff", test + 24, 0, 0) + bytes(4)
    content += bytes([value + 2 * fails] * 4) + bytes(4)
    payload = bytearray(image.payload(facts, image.Entries(start, 0, test), content))
    place = start - image.HEADER_BYTES
    struct.pack_into("<I", payload, place, checksum(bytes(payload), place))
    return image.seal(0, facts.version, bytes(payload), flags=0)


def _fill(position: int, size: int, value: int) -> Call:
    record = Record("tinyml_play_fill", "", {".bytes": str(size), ".value": str(value)})
    return Call("tinyml_play_fill", record, (Operand(Memory.ARENA, position),), 0)


def body(start: int, size: int, value: int) -> bytes:
    """Every value of a byte; erased bytes across each boundary of a sector, zeros in each middle of one."""

    def at(position: int) -> int:
        place = (position + 12) % SECTOR
        if place < 24:
            return 0xFF
        return 0 if SECTOR // 2 <= place < SECTOR // 2 + 24 else (7 * position + value) % 256

    return bytes(at(start + i) for i in range(size))


def payload_bytes(content: bytes | bytearray) -> int:
    found: int = struct.unpack_from("<I", content, 12)[0]
    return found


def slot_bytes(size: int) -> int:
    """As ``make_device`` computes it."""
    return -(-(size + 8 * 32) // SECTOR) * SECTOR


def flipped(content: bytes, bit: int) -> bytes:
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def errors(header: Path) -> dict[int, str]:
    """enum tinyml_slot_error, by number."""
    found = re.findall(r"TINYML_SLOT_(\w+) = (-?\d+)", header.read_text(encoding="utf-8"))
    return {int(number): name for name, number in found}


def save(path: Path, version: Version, value: int, test: bytes = b"T\0", data: bool = False) -> str:
    """A model for both slots, in a file for the simulator."""
    slot = slot_bytes(len(image_of()))
    if data and not test.startswith(b"H"):
        content = data_image_of(version=version, value=value, fails=test[1:] != b"\0")
        path.write_bytes(struct.pack("<II", len(content), value) + 2 * content)
        return str(path)
    contents = [
        image_of(address=ADDRESS + index * slot, version=version, value=value, test=test)
        for index in range(2)
    ]
    path.write_bytes(struct.pack("<II", len(contents[0]), value) + b"".join(contents))
    return str(path)
