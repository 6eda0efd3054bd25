# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The protocol spoken with an image. ``c/zephyr/src/main.c`` is the other side and describes it."""

from __future__ import annotations

import binascii
import re
import time
from dataclasses import dataclass

from tinyml.errors import ToolError
from tinyml.harness.zephyr.links import Link

INPUT_BYTES = 48  # in one line
OUTPUT_BYTES = 64
LOOP_INSTRUCTIONS = 99_999
ANSWER_SECONDS = 3.0
TRIES = 4

_LINE = re.compile(rb"@([ -?A-~]+) ([0-9a-f]{4})\r?\n")


@dataclass(frozen=True)
class Greeting:
    """The image's description of itself."""

    name: str
    sha256: str  # the first eight bytes
    input_bytes: int
    output_bytes: int
    clock_hz: int
    empty_cycles: int  # between two readings of the clock
    loop_cycles: int  # of LOOP_INSTRUCTIONS; 0 where they are not known


@dataclass(frozen=True)
class Ran:
    status: int
    cycles: int


class Conversation:
    """A session with one image. ``where`` names it in messages."""

    def __init__(self, link: Link, where: str) -> None:
        self.link = link
        self.where = where
        self._text = b""
        self._number = 0

    def greet(self, seconds: float) -> Greeting:
        """Repeat the question until there is an answer: the board may still be starting."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if (words := self._ask_once("hello", "model", 0.5)) is not None:
                name, sha256, *numbers = words
                return Greeting(name, sha256, *(int(number, 16) for number in numbers))
        heard = self._text.decode(errors="replace").strip()
        raise ToolError(
            f"no answer from {self.where} within {seconds:g} seconds"
            + (f"; it printed:\n{heard[-800:]}" if heard else ""),
            "check the port and --baud; omit --no-flash so that this command flashes its image",
        )

    def reset(self) -> None:
        self._ask("reset", "done")

    def feed(self, data: bytes) -> None:
        """The bytes of all inputs."""
        for start in range(0, len(data), INPUT_BYTES):
            chunk = data[start : start + INPUT_BYTES]
            (count,) = self._ask(f"in {start:x} {chunk.hex()}", "done")
            if int(count, 16) != len(chunk):
                raise ToolError(f"{self.where} accepted {int(count, 16)} of {len(chunk)} bytes")

    def run(self, seconds: float) -> Ran:
        """Run once. Not repeated if the answer is lost: a model with state would run twice."""
        words = self._ask_once("run", "ran", seconds)
        if words is None:
            raise ToolError(
                f"{self.where} did not finish a run within {seconds:g} seconds", "a longer --timeout"
            )
        status = int(words[0], 16)
        return Ran(status - (status >> 31 << 32), int(words[1], 16))

    def outputs(self, count: int) -> bytes:
        """The bytes of all outputs."""
        found = bytearray()
        while len(found) < count:
            wanted = min(OUTPUT_BYTES, count - len(found))
            data = bytes.fromhex("".join(self._ask(f"out {len(found):x} {wanted:x}", "data")))
            if len(data) != wanted:
                raise ToolError(f"{self.where} sent {len(data)} of {wanted} bytes")
            found += data
        return bytes(found)

    def layer_cycles(self, layer: int) -> int:
        return int(self._ask(f"layer {layer:x}", "layer")[1], 16)

    def _ask(self, question: str, kind: str) -> list[str]:
        for _ in range(TRIES):
            if (words := self._ask_once(question, kind, ANSWER_SECONDS)) is not None:
                return words
        raise ToolError(
            f"{self.where} no longer answers {question.split()[0]!r}",
            "a better cable, or a lower baud rate in the board's devicetree and --baud",
        )

    def _ask_once(self, question: str, kind: str, seconds: float) -> list[str] | None:
        """The words after ``kind``; None if the answer is different, broken or late."""
        if kind == "model":  # repeated: any answer will do, and other output is kept for messages
            number, self._text = 0, self._text[-2000:]
        else:
            number, self._text = self._number + 1, b""
            self._number = number
        line = f"{number:x} {question}".encode()
        self.link.write(b"@%b %04x\n" % (line, binascii.crc_hqx(line, 0)))
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self._text += self.link.read(left)
            if b"ZEPHYR FATAL ERROR" in self._text:
                raise ToolError(f"{self.where} crashed:\n{self._rest_of_report()}")
            while found := _LINE.search(self._text):
                self._text = self._text[found.end() :]
                if binascii.crc_hqx(found[1], 0) != int(found[2], 16):
                    continue
                answered, first, *words = found[1].decode().split()
                if first == kind and int(answered, 16) == number:
                    return words
                if first == "bad":
                    return None
        return None

    def _rest_of_report(self) -> str:
        end = time.monotonic() + 1
        while (left := end - time.monotonic()) > 0:
            self._text += self.link.read(left)
        return self._text.decode(errors="replace").strip()
