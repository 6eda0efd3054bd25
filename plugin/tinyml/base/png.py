# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Pictures as PNG files."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy.typing as npt


def png(picture: npt.NDArray[Any]) -> bytes:
    """Rows and columns of bytes: greys, or a last axis of one grey or of red, green and blue."""
    height, width = picture.shape[:2]
    colours = 2 if picture.ndim == 3 and picture.shape[2] == 3 else 0
    lines = b"".join(b"\0" + line.tobytes() for line in picture)
    header = struct.pack(">IIBBBBB", width, height, 8, colours, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, content) for name, content in parts)


def _chunk(name: bytes, content: bytes) -> bytes:
    check = zlib.crc32(name + content)
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", check)
