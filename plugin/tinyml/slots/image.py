# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""One slot image, byte by byte: MCUboot's container around our descriptor, code and weights.

The container is the one that MCUboot's imgtool writes and verifies: a header of 32 bytes with the address
and the version, the payload, then records. The payload starts with a descriptor, which <tinyml/slot.h>
declares; every position in it counts from the start of the image.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tinyml.base.errors import ConfigError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.slots.version import Version

MCUBOOT_MAGIC = 0x96F3B83D
ROM_FIXED = 0x100  # MCUboot's flag: the image runs at its load address and nowhere else
PROTECTED_MAGIC, RECORDS_MAGIC = 0x6908, 0x6907
RECORD_CRC32 = 0x00A0  # from the range that MCUboot leaves to vendors
RECORD_SHA512, RECORD_KEY_HASH, RECORD_ED25519 = 0x12, 0x01, 0x24

MAGIC = 0x4C534D54  # "TMSL"
FORMAT = 1
INTERFACE = 1  # how the firmware calls the code of a slot: TINYML_SLOT_INTERFACE
DATA = 2  # there is no code, but a program for the player: TINYML_PLAYER_INTERFACE
ALIGNMENT = 32

_CONTAINER = struct.Struct("<IIHHIIBBHII")
HEADER_BYTES = _CONTAINER.size
_DESCRIPTOR = struct.Struct("<IHHIIIIIIHHIIBBH32s")
_TENSOR = struct.Struct("<IIIIfiBBBB")
_INFO = struct.Struct("<HH")
TENSOR_BYTES = _TENSOR.size

Signer = Callable[[bytes], bytes]
"""From the digest of an image to its signature."""


@dataclass(frozen=True)
class Port:
    """An input or output as the descriptor has it."""

    name: str
    shape: tuple[int, ...]
    type: int  # enum tinyml_type
    bytes: int
    scale: float
    zero_point: int
    in_state: bool  # else in the arena
    offset: int


@dataclass(frozen=True)
class Facts:
    """What the descriptor says about a model, the same in every slot."""

    name: str
    version: Version
    sha256: bytes  # of the model file
    core: int  # what the code needs: TINYML_SLOT_CORE
    arena_bytes: int
    arena_alignment: int
    state_bytes: int
    state_alignment: int
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    interface: int = INTERFACE


@dataclass(frozen=True)
class Entries:
    """Where the code begins, from the start of the image; 0: there is no such function."""

    run: int
    reset: int
    test: int


@dataclass(frozen=True)
class Key:
    """The signing key, and its public half in DER form, which imgtool uses to identify keys."""

    sign: Signer
    public: bytes


def code_offset(facts: Facts) -> int:
    """Where code starts in an image of a model with these facts."""
    return _aligned(_CONTAINER.size + len(_descriptor(facts, Entries(0, 0, 0))))


def build(facts: Facts, address: int, entries: Entries, code: bytes, key: Key | None = None) -> bytes:
    """The image for the slot at ``address``."""
    return seal(address, facts.version, payload(facts, entries, code), key)


def payload(facts: Facts, entries: Entries, code: bytes) -> bytes:
    """The descriptor and what follows it."""
    descriptor = _descriptor(facts, entries)
    gap = code_offset(facts) - _CONTAINER.size - len(descriptor)
    return descriptor + bytes(gap) + code


def seal(
    address: int, version: Version, payload: bytes, key: Key | None = None, flags: int = ROM_FIXED
) -> bytes:
    """Put a payload into the container, with checksum, digest and signature."""
    payload += bytes(-len(payload) % 4)
    crc_bytes = _INFO.size + _INFO.size + 4
    header = _CONTAINER.pack(
        *(MCUBOOT_MAGIC, address, _CONTAINER.size, crc_bytes, len(payload), flags),
        *(version.major, version.minor, version.revision, version.build, 0),
    )
    body = header + payload
    body += _INFO.pack(PROTECTED_MAGIC, crc_bytes) + _record(
        RECORD_CRC32, struct.pack("<I", zlib.crc32(body))
    )
    digest = hashlib.sha512(body).digest()
    records = _record(RECORD_SHA512, digest)
    if key is not None:
        records += _record(RECORD_KEY_HASH, hashlib.sha512(key.public).digest())
        records += _record(RECORD_ED25519, key.sign(digest))
    image = body + _INFO.pack(RECORDS_MAGIC, _INFO.size + len(records)) + records
    return image + b"\xff" * (_aligned(len(image)) - len(image))


def _record(kind: int, content: bytes) -> bytes:
    return struct.pack("<HH", kind, len(content)) + content


def _descriptor(facts: Facts, entries: Entries) -> bytes:
    """The fixed part, the tensors, then shapes and names."""
    ports = (*facts.inputs, *facts.outputs)
    start = _CONTAINER.size + _DESCRIPTOR.size
    tail = bytearray()
    tail_start = start + len(ports) * _TENSOR.size

    def put(content: bytes) -> int:
        position = tail_start + len(tail)
        tail.extend(content)
        return position

    shapes = [put(struct.pack(f"<{len(port.shape)}i", *port.shape)) for port in ports]
    names = [put(_text(port.name)) for port in ports]
    model_name = put(_text(facts.name))
    tensors = b"".join(
        _TENSOR.pack(
            *(name, shape, port.offset, port.bytes, port.scale, port.zero_point),
            *(port.type, len(port.shape), int(port.in_state), 0),
        )
        for port, shape, name in zip(ports, shapes, names, strict=True)
    )
    fixed = _DESCRIPTOR.pack(
        *(MAGIC, FORMAT, facts.interface, facts.core),
        *(entries.run, entries.reset, entries.test),
        *(facts.arena_bytes, facts.state_bytes, facts.arena_alignment, facts.state_alignment),
        *(model_name, start, len(facts.inputs), len(facts.outputs), 0, facts.sha256),
    )
    return fixed + tensors + bytes(tail)


def _text(name: str) -> bytes:
    return name.encode() + b"\0"


def _aligned(count: int) -> int:
    return -(-count // ALIGNMENT) * ALIGNMENT


@dataclass(frozen=True)
class Read:
    """What can be read of an image without running it."""

    address: int
    version: Version
    name: str
    core: int
    arena_bytes: int
    state_bytes: int
    sha512: bytes
    signed: bool


@dataclass(frozen=True)
class DescriptorFields:
    """Positions and numbers of a descriptor, as they are."""

    interface: int
    run: int
    tensors: int
    counts: tuple[int, int]  # of inputs and outputs
    sha256: bytes


def descriptor_of(image: bytes) -> DescriptorFields:
    """The descriptor of an image whose container has been checked."""
    fields = _DESCRIPTOR.unpack_from(image, HEADER_BYTES)
    return DescriptorFields(fields[2], fields[4], fields[12], (fields[13], fields[14]), fields[16])


def interface_of(image: bytes) -> int:
    """How an image is run: INTERFACE or DATA."""
    return int.from_bytes(image[HEADER_BYTES + 6 : HEADER_BYTES + 8], "little")


def core_of(image: bytes) -> int:
    """What an image needs of a core."""
    return int.from_bytes(image[HEADER_BYTES + 8 : HEADER_BYTES + 12], "little")


def tensor_at(image: bytes, position: int) -> tuple[Any, ...]:
    """name, shape, offset, bytes, scale, zero point, type, rank, whether it is in the state."""
    return _TENSOR.unpack_from(image, position)[:9]


def read(image: bytes) -> Read:
    """Check the container and checksum of an image, and read its descriptor."""
    try:
        magic, address, header, protected, size, _, *version, _ = _CONTAINER.unpack_from(image)
        payload_end = header + size
        (crc,) = struct.unpack_from("<I", image, payload_end + 2 * _INFO.size)
        (_, _, _, core, _, _, _, arena, state, _, _, name, *_) = _DESCRIPTOR.unpack_from(image, header)
        records = records_of(image, payload_end + protected)
        if magic != MCUBOOT_MAGIC or crc != zlib.crc32(image[:payload_end]):
            raise ValueError
        text = image[name : image.index(b"\0", name)].decode()
        digest = records[RECORD_SHA512]
    except (struct.error, ValueError, KeyError):
        raise ConfigError("this is not a slot image, or it is damaged", "pack the model again") from None
    return Read(
        address, Version(*version), text, core, arena, state, digest, signed=RECORD_ED25519 in records
    )


def records_of(image: bytes, start: int) -> Mapping[int, bytes]:
    """The records of an area that begins at ``start``, by kind."""
    _, total = _INFO.unpack_from(image, start)
    found, position = {}, start + _INFO.size
    while position + _INFO.size <= start + total:
        kind, length = _INFO.unpack_from(image, position)
        found[kind] = image[position + _INFO.size : position + _INFO.size + length]
        position += _INFO.size + length
    return found


def differing_bytes(images: Sequence[bytes]) -> int:
    """The number of bytes in which another image differs from the first."""
    return max(
        (sum(x != y for x, y in zip(images[0], other, strict=True)) for other in images[1:]), default=0
    )
