# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Frames on the line to a device: packets in COBS between zero bytes. ``<tinyml/host.h>`` describes them."""

from __future__ import annotations

import zlib

from tinyml.base.lazy_dataclass import dataclass

FULL_BLOCK = 255
LEAST_BYTES = 6
KEPT_TEXT = 4000
KEPT_OPEN = 200_000  # what a firmware prints in the middle of an answer
HIGH_BYTE, HIGH_START, HIGH_END = 0x80, 0xC0, 0xC1
_TEXT_CONTROLS = b"\a\b\t\n\v\f\r\x1b"


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


def from_high(data: bytes) -> bytes | None:
    """The packet of an answer in bytes from 0x80 on, with text in between; None if there is none."""
    high = bytes(byte for byte in data if byte >= HIGH_BYTE)
    _, start, rest = high.rpartition(bytes([HIGH_START]))
    content, end, _ = rest.partition(bytes([HIGH_END]))
    if not start or not end or any(byte > HIGH_BYTE + 63 for byte in content):
        return None
    bits = 0
    for byte in content:
        bits = bits << 6 | byte - HIGH_BYTE
    size = len(content) * 6 // 8
    return (bits >> len(content) * 6 - size * 8).to_bytes(size, "big")


class Reader:
    """Bytes from a device to answers. Everything else is text, which is kept for messages.

    ``spoiled``: something was not text, and no answer either.
    """

    def __init__(self) -> None:
        self.text = b""
        self.spoiled = False
        self._open = b""  # since the last zero byte

    def feed(self, data: bytes) -> list[Answer]:
        *ended, self._open = (self._open + data).split(b"\0")
        answers = []
        for piece in ended:
            if (answer := _answer(unstuff(piece))) is not None:
                answers.append(answer)
            elif (answer := _answer(from_high(piece))) is not None:
                answers.append(answer)
                self.text += bytes(byte for byte in piece if byte < HIGH_BYTE)
            else:
                self.spoiled = self.spoiled or not _is_text(piece)
                self.text += piece
        self.text = self.text[-KEPT_TEXT:]
        self._open = self._open[-KEPT_OPEN:]
        return answers

    @property
    def heard(self) -> str:
        """What the device printed besides answers."""
        return (self.text + self._open)[-KEPT_TEXT:].decode(errors="replace").strip()

    def forget(self) -> None:
        self.text = b""
        self.spoiled = False


def _is_text(piece: bytes) -> bool:
    return all(byte >= 0x20 or byte in _TEXT_CONTROLS for byte in piece)


def _answer(packet: bytes | None) -> Answer | None:
    if packet is None or len(packet) < LEAST_BYTES:
        return None
    content, crc = packet[:-4], int.from_bytes(packet[-4:], "little")
    return Answer(content[0], content[1], content[2:]) if zlib.crc32(content) == crc else None
