# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The form of a record: from the members of a C structure to bytes."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ops.framework.kernel import Record

TABLE = "I*"  # a position in the image, in place of a pointer


@dataclass(frozen=True)
class Layout:
    """The members of a record in order, each with its code in ``struct``; ``I*`` is a position."""

    members: tuple[str, ...]

    @property
    def format(self) -> str:
        return "<" + "".join(member.split()[0].rstrip("*") for member in self.members)

    @property
    def size(self) -> int:
        return struct.calcsize(self.format)

    def tables(self) -> list[int]:
        """Where the positions of constants are, in bytes from the start."""
        codes = [member.split()[0] for member in self.members]
        return [
            struct.calcsize("<" + "".join(codes[:place]).replace("*", ""))
            for place, code in enumerate(codes)
            if code == TABLE
        ]

    def encode(self, record: Record, tables: Mapping[str, int]) -> bytes:
        """``tables``: positions of constants in the image, by name."""
        given = dict(record.members)
        values: list[int | float] = []
        for member in self.members:
            code, _, name = member.partition(" ")
            if code.endswith("x"):
                continue
            text = given.pop(name, "0")
            values.append(_value(code, text, tables))
        for known in (".loop", ".longest"):  # named by the kernel, and what only its work depends on
            given.pop(known, None)
        assert not given, f"{record.type} has no members {', '.join(given)} in the player's format"
        return struct.pack(self.format, *values)

    def decode(self, content: bytes, position: int) -> dict[str, int | float]:
        """The members of a record in an image."""
        names = [name for _, _, name in (member.partition(" ") for member in self.members) if name]
        return dict(zip(names, struct.unpack_from(self.format, content, position), strict=True))


def _value(code: str, text: str, tables: Mapping[str, int]) -> int | float:
    if code == TABLE:
        return 0 if text in ("NULL", "0") else tables[text]
    if text in ("true", "false"):
        return int(text == "true")
    if code == "f":
        return float(text.removesuffix("f").replace("INFINITY", "inf"))
    return int(text)
