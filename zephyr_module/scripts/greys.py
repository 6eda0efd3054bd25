# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Pictures in 256 greys from PNG files, with the standard library only."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

SIGNATURE = b"\x89PNG\r\n\x1a\n"
GREYS = (8, 0, 0, 0, 0)  # bits, kind of colour, compression, filters, interlacing


class BadPictureError(Exception):
    """Why a file is not such a picture, and what to try."""


def read_png(path: Path) -> tuple[bytes, int]:
    """The pixels, row by row, and how many make a row."""
    data = path.read_bytes()
    if not data.startswith(SIGNATURE):
        raise BadPictureError("is not a PNG file")
    try:
        chunks = list(_chunks(data))
        width, height, *kind = struct.unpack(">IIBBBBB", chunks[0][1])
        packed = zlib.decompress(b"".join(content for name, content in chunks if name == b"IDAT"))
    except (IndexError, struct.error, zlib.error) as error:
        raise BadPictureError(f"cannot be read as PNG: {error}") from None
    if tuple(kind) != GREYS:
        raise BadPictureError(
            "is not in 256 greys; convert it: magick in.png -type Grayscale -depth 8 out.png"
        )
    if len(packed) != height * (width + 1):
        raise BadPictureError("cannot be read as PNG: rows are missing")
    rows, before = [], bytes(width)
    for at in range(0, len(packed), width + 1):
        before = _restored(packed[at], packed[at + 1 : at + 1 + width], before)
        rows.append(before)
    return b"".join(rows), width


def _chunks(data: bytes) -> list[tuple[bytes, bytes]]:
    found, at = [], len(SIGNATURE)
    while at < len(data):
        (length,) = struct.unpack_from(">I", data, at)
        found.append((data[at + 4 : at + 8], data[at + 8 : at + 8 + length]))
        at += length + 12
    return found


def _restored(kind: int, row: bytes, above: bytes) -> bytes:
    """Undo a filter of the PNG specification; with one byte per pixel, "left" is the byte before."""
    out = bytearray()
    for index, value in enumerate(row):
        left = out[-1] if out else 0
        corner = above[index - 1] if index else 0
        out.append((value + _predicted(kind, left, above[index], corner)) & 0xFF)
    return bytes(out)


def _predicted(kind: int, left: int, above: int, corner: int) -> int:
    if kind == 4:  # Paeth's: the neighbour nearest to left + above - corner
        guess = left + above - corner
        return min((left, above, corner), key=lambda neighbour: abs(guess - neighbour))
    if kind > 4:
        raise BadPictureError("cannot be read as PNG: an unknown filter")
    return (0, left, above, (left + above) // 2)[kind]
