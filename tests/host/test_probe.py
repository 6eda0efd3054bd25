# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Communication with an image over its console: the lines, disturbances, and errors when they stop."""

from __future__ import annotations

import binascii
from collections.abc import Callable

import pytest

from tinyml.errors import ConfigError, ToolError
from tinyml.harness.zephyr import talk
from tinyml.harness.zephyr.links import Link, SerialPort
from tinyml.harness.zephyr.talk import Conversation

HELLO = "model digits 0011223344556677 100 28 b71b00 9 11170"


class Played(Link):
    """A board that a function plays: number and words of a question in, bytes out."""

    def __init__(self, play: Callable[[str, str], bytes]) -> None:
        self.play = play
        self.questions: list[str] = []
        self._out = b""

    def write(self, data: bytes) -> None:
        words, _, crc = data.decode().strip().removeprefix("@").rpartition(" ")
        assert int(crc, 16) == binascii.crc_hqx(words.encode(), 0)
        number, _, question = words.partition(" ")
        self.questions.append(question)
        self._out += self.play(number, question)

    def read(self, seconds: float) -> bytes:
        data, self._out = self._out, b""
        return data

    def close(self) -> None: ...


def line(number: str, words: str) -> bytes:
    text = f"{number} {words}"
    return f"@{text} {binascii.crc_hqx(text.encode(), 0):04x}\n".encode()


def test_a_greeting_among_other_lines() -> None:
    noise = b"*** Booting ***\r\n@0 model nonsense 0000\n<inf> a log line\n"
    greeting = Conversation(Played(lambda n, _: noise + line(n, HELLO)), "a board").greet(1)
    assert (greeting.name, greeting.input_bytes, greeting.output_bytes) == ("digits", 0x100, 0x28)
    assert (greeting.clock_hz, greeting.empty_cycles, greeting.loop_cycles) == (12_000_000, 9, 70_000)


def test_silence() -> None:
    with pytest.raises(ToolError, match=r"no answer from a board within 0\.1 seconds"):
        Conversation(Played(lambda *_: b""), "a board").greet(0.1)
    with pytest.raises(ToolError, match="it printed:\nwaiting for a debugger"):
        Conversation(Played(lambda *_: b"waiting for a debugger\n"), "a board").greet(0.1)


def test_inputs_and_outputs_go_in_pieces() -> None:
    memory = bytearray(100)

    def play(number: str, words: str) -> bytes:
        kind, *rest = words.split()
        if kind == "in":
            offset, data = int(rest[0], 16), bytes.fromhex(rest[1])
            memory[offset : offset + len(data)] = data
            return line(number, f"done {len(data):x}")
        offset, count = (int(word, 16) for word in rest)
        return line(number, f"data {memory[offset : offset + count].hex()}")

    board = Conversation(Played(play), "a board")
    board.feed(bytes(range(100)))
    assert board.outputs(100) == bytes(range(100))


def test_a_broken_line_is_requested_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(talk, "ANSWER_SECONDS", 0.05)
    answers: list[Callable[[str], bytes]] = [
        lambda n: line(n, "data 0102").replace(b"01", b"81"),
        lambda _: line("0", "bad"),
        lambda n: line(n, "data 0102"),
    ]
    board = Played(lambda number, _: answers.pop(0)(number))
    assert Conversation(board, "a board").outputs(2) == b"\x01\x02"
    assert len(board.questions) == 3


def test_a_late_answer_is_not_mistaken_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first piece is answered after it was requested again, so its answer arrives twice."""
    monkeypatch.setattr(talk, "ANSWER_SECONDS", 0.05)
    late: list[bytes] = []

    def play(number: str, words: str) -> bytes:
        answer = line(number, "data " + ("aa" if words.startswith("out 0 ") else "bb") * 64)
        if number == "1":
            late.append(answer)
            return b""
        return b"".join([answer] if number == "2" else [*late, answer])

    assert Conversation(Played(play), "a board").outputs(128) == b"\xaa" * 64 + b"\xbb" * 64


def test_a_run_is_never_repeated() -> None:
    """Its answer may be lost, and a model with state would have run twice."""
    board = Played(lambda *_: b"")
    with pytest.raises(ToolError, match="did not finish a run"):
        Conversation(board, "a board").run(0.05)
    assert board.questions == ["run"]
    ran = Conversation(Played(lambda n, _: line(n, "ran ffffffea 1234")), "a board").run(1)
    assert (ran.status, ran.cycles) == (-22, 0x1234)


def test_a_crash_is_shown() -> None:
    report = b"E: >>> ZEPHYR FATAL ERROR 2: Stack overflow on CPU 0\nE: Current thread: main\n"
    with pytest.raises(ToolError, match=r"crashed:\n.*Stack overflow"):
        Conversation(Played(lambda *_: report), "a board").run(1)


def test_no_such_port() -> None:
    pytest.importorskip("serial")
    with pytest.raises(ConfigError, match="there is no serial port /dev/no-such-port") as caught:
        SerialPort("/dev/no-such-port", 115200)
    assert "ports here: " in caught.value.hint
