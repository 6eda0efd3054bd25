# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What the walk needs of an ELF file: sections that are loaded, and symbols."""

from __future__ import annotations

import struct
from pathlib import Path

from tinyml.base.errors import ConfigError
from tinyml.base.lazy_dataclass import dataclass

_NOBITS, _SYMBOLS = 8, 2
_WRITE, _ALLOC, _CODE = 1, 2, 4
_ARM = 40
_FUNCTION, _OBJECT = 2, 1


@dataclass(frozen=True)
class Section:
    """Bytes at an address; ``content`` is None where they have no value at start."""

    name: str
    address: int
    content: bytes | None
    bytes: int
    writable: bool
    code: bool


@dataclass(frozen=True)
class Symbol:
    name: str
    address: int
    bytes: int
    is_object: bool


@dataclass(frozen=True)
class Elf:
    sections: tuple[Section, ...]
    symbols: tuple[Symbol, ...]

    def symbol(self, name: str) -> Symbol | None:
        return next((symbol for symbol in self.symbols if symbol.name == name), None)

    def read(self, address: int, count: int) -> int | None:
        """A constant of the image."""
        for section in self.sections:
            at = address - section.address
            if section.content is not None and not section.writable and 0 <= at <= section.bytes - count:
                return int.from_bytes(section.content[at : at + count], "little")
        return None

    def object_at(self, address: int) -> str:
        """The variable that a byte belongs to, or the section."""
        owner = None
        for symbol in self.symbols:
            if symbol.is_object and symbol.address <= address < symbol.address + symbol.bytes:
                owner = symbol if owner is None or symbol.bytes < owner.bytes else owner
        if owner is not None:
            return owner.name
        inside = (s.name for s in self.sections if s.address <= address < s.address + s.bytes)
        return next(inside, "?")


def read_elf(path: Path, any_core: bool = False) -> Elf:
    """The file, which must be for a 32-bit Arm core; ``any_core``: for any 32-bit little-endian one."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None
    narrow = data[:6] == b"\x7fELF\x01\x01"
    if any_core and not narrow:
        raise ConfigError(
            f"{path} is not an ELF file for a 32-bit core",
            "the build of a board: programs for this computer (native_sim) have no flash",
        )
    if not narrow or (struct.unpack_from("<H", data, 18)[0] != _ARM and not any_core):
        raise ConfigError(
            f"{path} is not an ELF file for a 32-bit Arm core", "bounds are computed for Cortex-M images only"
        )
    start, size, count, names = (
        struct.unpack_from("<I", data, 32)[0],
        *struct.unpack_from("<HHH", data, 46),
    )
    rows = [struct.unpack_from("<10I", data, start + size * i) for i in range(count)]
    titles = data[rows[names][4] :]
    sections, symbols = [], []
    for title, kind, flags, address, offset, length, link, _, _, entry in rows:
        if flags & _ALLOC and length and address + length <= 1 << 32:
            content = None if kind == _NOBITS else data[offset : offset + length]
            writable, code = bool(flags & _WRITE), bool(flags & _CODE)
            sections.append(Section(_text(titles, title), address, content, length, writable, code))
        if kind == _SYMBOLS:
            texts = data[rows[link][4] :]
            for at in range(offset, offset + length, entry):
                name, value, bytes_, info, _, where = struct.unpack_from("<IIIBBH", data, at)
                if where and info & 15 in (_FUNCTION, _OBJECT):
                    symbols.append(Symbol(_text(texts, name), value, bytes_, info & 15 == _OBJECT))
    return Elf(tuple(sections), tuple(symbols))


def _text(table: bytes, at: int) -> str:
    return table[at : table.index(b"\0", at)].decode("utf-8", "replace")
