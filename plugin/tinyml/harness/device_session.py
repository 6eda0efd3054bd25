# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A conversation with the models of a device. ``<tinyml/host.h>`` is the other side and describes it."""

from __future__ import annotations

import os
import struct
import time
from dataclasses import replace
from enum import IntEnum

import numpy as np

from tinyml.base.errors import ConfigError, ToolError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.harness.generated import Port
from tinyml.harness.links import Link
from tinyml.harness.packets import Reader, frame
from tinyml.ir import Shape
from tinyml.ir.row_order import RowOrder

VERSION = 1
LOOP_INSTRUCTIONS = 99_999
ANSWER_SECONDS = 3.0
HELLO_SECONDS = 0.5
SPOILED_SECONDS = 0.1
"""After an answer in the middle of which the firmware printed: time for the rest before asking again."""
BUSY_SECONDS = 10.0
"""How long to ask again while another thread of the firmware uses the model, after the first half second."""
TRIES = 5

HARDWARE_SECONDS, EMULATOR_SECONDS = 20.0, 120.0
"""Time limit for the first answer; an emulator may start slowly on a busy computer."""

_TYPES = "float32 float64 int8 uint8 int16 uint16 int32 uint32 int64 uint64 bool"
TYPES = tuple(map(np.dtype, _TYPES.split()))
"""enum tinyml_type."""

_HELLO = struct.Struct("<HBBIII")
_MODEL = struct.Struct("<8sIBBB")
_TENSOR = struct.Struct("<BBIfi")


class Command(IntEnum):
    HELLO = 1
    MODEL = 2
    TENSOR = 3
    RESET = 4
    WRITE = 5
    RUN = 6
    READ = 7
    LAYERS = 8
    BYE = 9
    SLOT = 10
    WATCH = 11
    ADAPT = 12


class Status(IntEnum):
    OK = 0
    DAMAGED = 1
    UNKNOWN = 2
    WRONG = 3
    BUSY = 4
    LOST = 5


_REASONS: dict[int, tuple[str, str]] = {
    Status.UNKNOWN: ("its firmware does not have this command", "a firmware with what the command needs"),
    Status.WRONG: (
        "it does not accept these arguments",
        "the models of the device may have changed: reconnect",
    ),
    Status.BUSY: ("another thread of the firmware uses the model", "try again"),
    Status.LOST: ("the firmware used the model in between", "run again; inputs and outputs share the arena"),
}


class _BusyError(ToolError):
    """Another thread of the firmware has the model."""


@dataclass(frozen=True)
class Greeting:
    """The firmware's description of itself."""

    payload: int  # bytes of a tensor in one frame
    models: int
    has_layers: bool
    has_slots: bool
    clock_hz: int
    empty_cycles: int  # between two readings of the clock
    loop_cycles: int  # of LOOP_INSTRUCTIONS; 0 where they are not known


@dataclass(frozen=True)
class Tensor(Port):
    """An input or output. real value = scale * (stored - zero_point), if scale is not 0."""

    scale: float
    zero_point: int


@dataclass(frozen=True)
class DeviceModel:
    """A model that a device has."""

    index: int
    name: str
    sha256: str  # the first eight bytes
    arena_bytes: int
    runs: bool  # False if its run function takes the caller's buffers, or the slot is empty
    has_state: bool
    takes_rows: bool  # it computes while its input comes
    is_watched: bool  # it counts what it sees and decides
    learns: bool  # on the device
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    row_order: RowOrder | None = None  # a device states the shape of rows as they arrive

    @property
    def input_bytes(self) -> int:
        return sum(port.bytes for port in self.inputs)

    @property
    def output_bytes(self) -> int:
        return sum(port.bytes for port in self.outputs)

    def of_file(self, shape: Shape, order: RowOrder | None) -> DeviceModel:
        """The model with its input as the model file has it, from which samples get the order of rows."""
        if order is None:
            return self
        return replace(self, inputs=(replace(self.inputs[0], shape=shape),), row_order=order)


@dataclass(frozen=True)
class Ran:
    status: int
    cycles: int


class Session:
    """Requests to one device. ``where`` names it in messages."""

    def __init__(self, link: Link, where: str) -> None:
        self.link = link
        self.where = where
        self.greeting = Greeting(0, 0, False, False, 0, 0, 0)
        self._reader = Reader()
        self._number = os.urandom(1)[0]  # an answer to an earlier program must not match

    def greet(self, seconds: float) -> Greeting:
        """Repeat the question until there is an answer: the device may still be starting."""
        end = time.monotonic() + seconds
        number, nonce = self._next_number(), os.urandom(4)  # the same, so that a late answer is one, too
        while time.monotonic() < end:
            results = self._ask_once(number, Command.HELLO, nonce, HELLO_SECONDS)
            if results is None or results[:4] != nonce:
                continue
            if results[4] != VERSION:
                raise ToolError(
                    f"{self.where} speaks version {results[4]} of the protocol; this program: {VERSION}",
                    "build the firmware and run this program with the same version of west-tinyml",
                )
            payload, models, features, *clock = _HELLO.unpack_from(results, 5)
            self.greeting = Greeting(payload, models, bool(features & 1), bool(features & 2), *clock)
            return self.greeting
        heard = self._reader.heard
        raise ToolError(
            f"no answer from {self.where} within {seconds:g} seconds"
            + (f"; it printed:\n{heard[-800:]}" if heard else ""),
            "check the port, the baud rate, and that the firmware has CONFIG_TINYML_HOST=y",
        )

    def models(self) -> list[DeviceModel]:
        return [self._model(index) for index in range(self.greeting.models)]

    def _model(self, index: int) -> DeviceModel:
        results = self.ask(Command.MODEL, bytes([index]))
        sha256, arena_bytes, inputs, outputs, abilities = _MODEL.unpack_from(results)
        return DeviceModel(
            index,
            results[_MODEL.size :].decode(errors="replace"),
            sha256.hex(),
            arena_bytes,
            bool(abilities & 1) and inputs > 0,
            bool(abilities & 2),
            bool(abilities & 4),
            bool(abilities & 8),
            bool(abilities & 16),
            tuple(self._tensor(index, 0, i) for i in range(inputs)),
            tuple(self._tensor(index, 1, i) for i in range(outputs)),
        )

    def _tensor(self, model: int, output: int, index: int) -> Tensor:
        results = self.ask(Command.TENSOR, bytes([model, output, index]))
        kind, rank, size, scale, zero_point = _TENSOR.unpack_from(results)
        if kind >= len(TYPES):
            raise ToolError(f"{self.where} has a tensor of unknown type {kind}", "a newer west-tinyml")
        shape = struct.unpack_from(f"<{rank}i", results, _TENSOR.size)
        name = results[_TENSOR.size + 4 * rank :].decode(errors="replace")
        found = Tensor(name, shape, TYPES[kind], scale, zero_point)
        if size not in (0, found.bytes):
            raise ToolError(f"{self.where}: {name} has {size} bytes, and its shape {found.bytes}")
        return found

    def reset(self, model: int) -> None:
        self.ask(Command.RESET, bytes([model]))

    def feed(self, model: DeviceModel, data: bytes, seconds: float, continues: bool = False) -> None:
        """The bytes of all inputs. ``seconds`` limits what a model computes with a part of them.

        ``continues``: the state must be that of the requests before; no other thread may have changed it.
        """
        step = self.greeting.payload
        for start in range(0, len(data), step):
            head = struct.pack("<BI", model.index, start)
            limit = seconds if model.takes_rows else 0
            results = self.ask(Command.WRITE, head + data[start : start + step], limit)
            if continues and model.has_state and results[:1] == b"\0":
                raise self._refusal(Status.LOST, Command.WRITE)

    def run(self, model: int, seconds: float) -> Ran:
        """Run once, however often the request has to be repeated."""
        results = self.ask(Command.RUN, bytes([model]), seconds)
        return Ran(*struct.unpack("<iI", results))

    def outputs(self, model: int, count: int) -> bytes:
        """The bytes of all outputs."""
        found = b""
        while len(found) < count:
            wanted = min(self.greeting.payload, count - len(found))
            found += self.ask(Command.READ, struct.pack("<BIH", model, len(found), wanted))
        return found

    def layer_cycles(self) -> list[int]:
        """Of every layer of the last run."""
        found: list[int] = []
        while True:
            results = self.ask(Command.LAYERS, struct.pack("<H", len(found)))
            (layers,) = struct.unpack_from("<H", results)
            found += struct.unpack_from(f"<{(len(results) - 2) // 4}I", results, 2)
            if len(found) >= layers:
                return found

    def slot(self, request: bytes, seconds: float) -> bytes:
        """A request for ``<tinyml/slot_receiver.h>``."""
        if not self.greeting.has_slots:
            raise ConfigError(
                f"{self.where} has no slots for models", "a firmware with CONFIG_TINYML_SLOTS=y"
            )
        return self.ask(Command.SLOT, request, seconds)

    def counters(self, model: int, reset: bool) -> bytes:
        """What a model has counted, as CBOR; with ``reset``, the next period starts then."""
        found, total = b"", 1
        while len(found) < total:
            results = self.ask(Command.WATCH, struct.pack("<BBH", model, 0, len(found)))
            (total,) = struct.unpack_from("<H", results)
            found += results[2:]
        if reset:
            self.ask(Command.WATCH, struct.pack("<BBH", model, 1, total))
        return found

    def adapt(self, model: int, action: int, arguments: bytes = b"") -> tuple[int, bytes]:
        """A request of <tinyml/adapt.h>: the status, and what follows it."""
        results = self.ask(Command.ADAPT, bytes([model, action]) + arguments)
        (status,) = struct.unpack_from("<i", results)
        return status, results[4:]

    def bye(self) -> None:
        """Release the model, without waiting for an answer."""
        self.link.write(frame(self._next_number(), Command.BYE, b""))

    def ask(self, command: Command, arguments: bytes, seconds: float = 0) -> bytes:
        """The results. A request is repeated until it is answered; the device executes it once.

        While another thread of the firmware has the model, it is a new request.
        """
        end = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                return self._answered(command, arguments, seconds)
            except _BusyError:
                if time.monotonic() > end:
                    raise

    def _answered(self, command: Command, arguments: bytes, seconds: float) -> bytes:
        number, wait = self._next_number(), ANSWER_SECONDS
        end = time.monotonic() + (seconds or TRIES * ANSWER_SECONDS)
        while (left := end - time.monotonic()) > 0:
            if (results := self._ask_once(number, command, arguments, min(wait, left))) is not None:
                return results
            wait *= 2 if seconds else 1  # it may be busy with the request
        if command == Command.RUN:
            raise ToolError(
                f"{self.where} did not finish a run within {seconds:g} seconds", "a longer --timeout"
            )
        raise ToolError(
            f"{self.where} no longer answers {command.name.lower()!r}",
            "its firmware prints, so the line works: its threads of higher priority may leave no time for it"
            if self._reader.heard
            else "a better cable, or a lower baud rate in the board's devicetree and --baud",
        )

    def _next_number(self) -> int:
        self._number = self._number % 255 + 1
        return self._number

    def _ask_once(self, number: int, command: Command, arguments: bytes, seconds: float) -> bytes | None:
        """None if no answer comes, or the request arrived damaged."""
        if command != Command.HELLO:  # what a device prints while it starts is kept
            self._reader.forget()
        self.link.write(frame(number, command, arguments))
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            answers = self._reader.feed(self.link.read(left))
            if "ZEPHYR FATAL ERROR" in self._reader.heard:
                raise ToolError(f"{self.where} crashed:\n{self._rest_of_report()}")
            for answer in answers:
                if answer.number == number:
                    return self._results(answer.status, command, answer.results)
                if (answer.number, answer.status) == (0, Status.DAMAGED):
                    return None
            if self._reader.spoiled:
                end = min(end, time.monotonic() + SPOILED_SECONDS)
                self._reader.spoiled = False
        return None

    def _results(self, status: int, command: Command, results: bytes) -> bytes:
        if status == Status.OK:
            return results
        raise self._refusal(status, command)

    def _refusal(self, status: int, command: Command) -> ToolError:
        what, hint = _REASONS.get(
            status, (f"error {status}", "the same version of west-tinyml on both sides")
        )
        kind = _BusyError if status == Status.BUSY else ToolError
        return kind(f"{self.where} refuses {command.name.lower()!r}: {what}", hint)

    def _rest_of_report(self) -> str:
        end = time.monotonic() + 1
        while (left := end - time.monotonic()) > 0:
            self._reader.feed(self.link.read(left))
        return self._reader.heard
