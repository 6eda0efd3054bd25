# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A .tmodel file: the same model for each slot of a device. The device gets the image of one slot."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path

from tinyml.base.errors import ConfigError, writing
from tinyml.base.lazy_dataclass import dataclass
from tinyml.base.naming import PACK_SUFFIX
from tinyml.base.whole_files import write_whole
from tinyml.slots import image

MAGIC = b"TMODEL\0\1"
SUFFIX = PACK_SUFFIX
_COUNT = struct.Struct("<I")
_ENTRY = struct.Struct("<24sIII")  # slot, address, position in the file, bytes


@dataclass(frozen=True)
class Pack:
    """Images by the name of their slot."""

    images: Mapping[str, bytes]

    def image_at(self, address: int) -> bytes:
        """The image that runs at ``address``."""
        for content in self.images.values():
            if image.read(content).address == address:
                return content
        found = ", ".join(
            f"{name} at {image.read(content).address:#x}" for name, content in self.images.items()
        )
        raise ConfigError(
            f"the pack has no image for a slot at {address:#x}; it has {found}",
            "pack the model again with the addresses of this device in --slots",
        )


def encode(pack: Pack) -> bytes:
    position = len(MAGIC) + _COUNT.size + len(pack.images) * _ENTRY.size
    position += -position % image.ALIGNMENT
    entries, body = b"", b""
    for name, content in pack.images.items():
        entries += _ENTRY.pack(name.encode(), image.read(content).address, position + len(body), len(content))
        body += content
    head = MAGIC + _COUNT.pack(len(pack.images)) + entries
    return head + bytes(-len(head) % image.ALIGNMENT) + body


AGAIN = "copy the file again, or pack the model again"


def decode(content: bytes, what: str) -> Pack:
    """The pack in a file; ``what`` names it in messages."""
    if not content.startswith(MAGIC):
        raise ConfigError(f"{what} is not a pack", "a .tmodel file that `tinyml pack` wrote")
    images = {}
    try:
        (count,) = _COUNT.unpack_from(content, len(MAGIC))
        for index in range(count):
            entry = _ENTRY.unpack_from(content, len(MAGIC) + _COUNT.size + index * _ENTRY.size)
            name, _, position, length = entry
            if position + length > len(content):
                end = position + length
                raise ConfigError(f"{what} is cut off: it has {len(content):,} bytes of {end:,}", AGAIN)
            images[name.rstrip(b"\0").decode()] = content[position : position + length]
    except (struct.error, UnicodeDecodeError):
        raise ConfigError(f"{what} is damaged", AGAIN) from None
    if not images:
        raise ConfigError(f"{what} is damaged: it has no images", AGAIN)
    for name, part in images.items():
        try:
            image.read(part)
        except ConfigError:
            raise ConfigError(
                f"{what} is damaged: the checksum of its image {name!r} is wrong", AGAIN
            ) from None
    return Pack(images)


def load(path: Path) -> Pack:
    try:
        return decode(path.read_bytes(), str(path))
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None


def save(path: Path, pack: Pack) -> None:
    """Whole or not at all."""
    with writing(path):
        write_whole(path, encode(pack))
