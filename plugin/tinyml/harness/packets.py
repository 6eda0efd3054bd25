# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Frames on the line to a device: packets in COBS between zero bytes. ``<tinyml/host.h>`` describes them."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

FULL_BLOCK = 255
LEAST_BYTES = 6
KEPT_TEXT = 4000


@dataclass(frozen=True)
class Answer:
    number: int
    status: int
    results: bytes


def frame(number: int, command: int, arguments: bytes) -> bytes:
    """A request as it goes over the line."""
    packet = bytes([number, command]) + arguments
    return b"\0" + stuff(packet + zlib.crc32(packet).to_bytes(4, "little")) + b"\0"


def stuff(packet: bytes) -> bytes:
    """COBS: blocks of up to 254 bytes without zeros, each after its length plus one."""
    out = bytearray()
    for part in packet.split(b"\0"):
        while len(part) >= FULL_BLOCK - 1:
            out += bytes([FULL_BLOCK]) + part[: FULL_BLOCK - 1]
            part = part[FULL_BLOCK - 1 :]
        out += bytes([len(part) + 1]) + part
    return bytes(out)


def unstuff(data: bytes) -> bytes | None:
    """The packet; None if ``data`` is not COBS."""
    out, at, code = bytearray(), 0, FULL_BLOCK
    while at < len(data):
        if code != FULL_BLOCK:
            out.append(0)
        code = data[at]
        part = data[at + 1 : at + code]
        if code == 0 or len(part) != code - 1:
            return None
        out += part
        at += code
    return bytes(out)


class Reader:
    """Bytes from a device to answers. Everything else is text, which is kept for messages."""

    def __init__(self) -> None:
        self.text = b""
        self._open = b""  # since the last zero byte

    def feed(self, data: bytes) -> list[Answer]:
        *ended, self._open = (self._open + data).split(b"\0")
        answers = []
        for piece in ended:
            if (answer := _answer(piece)) is not None:
                answers.append(answer)
            else:
                self.text += piece
        self.text = self.text[-KEPT_TEXT:]
        self._open = self._open[-KEPT_TEXT:]
        return answers

    @property
    def heard(self) -> str:
        """What the device printed besides answers."""
        return (self.text + self._open).decode(errors="replace").strip()

    def forget(self) -> None:
        self.text = b""


def _answer(piece: bytes) -> Answer | None:
    packet = unstuff(piece)
    if packet is None or len(packet) < LEAST_BYTES:
        return None
    content, crc = packet[:-4], int.from_bytes(packet[-4:], "little")
    return Answer(content[0], content[1], content[2:]) if zlib.crc32(content) == crc else None
