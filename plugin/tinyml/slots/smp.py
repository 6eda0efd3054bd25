# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Slots of a device behind MCUmgr (SMP), over the transports of smpclient. docs/smp.md has the requests."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Coroutine, Mapping
from enum import IntEnum
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from tinyml.base.errors import ConfigError, ToolError
from tinyml.slots.deploy import ERASE_SECONDS, Plays, Refused, State
from tinyml.slots.version import Version, parse_version

if TYPE_CHECKING:
    from smpclient.transport import SMPTransport

GROUP = 84
"""CONFIG_TINYML_SMP_GROUP_ID, unless the firmware has another one."""

UDP_PORT = 1337
OVERHEAD = 40
"""Of a request with data, at most: the header, and everything in its CBOR but the data."""

LINES = (128, 2)
"""Bytes and number of the lines that a UART of Zephyr has buffers for, unless it is configured otherwise."""

ATTEMPTS = 3
ANSWER_SECONDS = 4.0
KINDS = "udp:HOST[:PORT], serial:PORT or ble:ADDRESS"

T = TypeVar("T")


class Command(IntEnum):
    STATE = 0
    UPLOAD = 1
    TEST = 2
    CONFIRM = 3
    REJECT = 4
    ERASE = 5


SLOW = (Command.TEST, Command.ERASE)
MANAGEMENT = {
    1: "unknown error",
    3: "a request that it cannot read",
    7: "no room for the answer (CONFIG_MCUMGR_TRANSPORT_NETBUF_SIZE)",
    8: "the firmware has no such management group (CONFIG_TINYML_SMP)",
    10: "the model is in use by another thread",
}
"""MCUmgr's own errors, which concern no pack."""


class SmpSlots:
    """The slots of a device, in a `with` statement. The same functions as Slots, for deploy()."""

    def __init__(self, address: str, baud: int = 115200, group: int = GROUP) -> None:
        self.address, self.group = address, group
        self._loop = asyncio.new_event_loop()
        self._transport, self._target = _transport(address, baud)
        self._sequence = itertools.count()
        self._tested: State | None = None

    def __enter__(self) -> SmpSlots:
        from smpclient import SMPClient

        logging.getLogger("smpclient").setLevel(logging.CRITICAL)  # what goes wrong, this says itself
        client = SMPClient(self._transport, self._target)
        try:
            self._run(client.connect(ANSWER_SECONDS))
        except (OSError, asyncio.TimeoutError, ValueError, RuntimeError) as error:
            self._loop.close()
            raise ToolError(f"cannot connect to {self.address}: {_words(error)}", KINDS) from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._run(self._transport.disconnect())
        self._loop.close()

    @property
    def data_bytes(self) -> int:
        """Of an image in one request."""
        return max(self._transport.max_unencoded_size - OVERHEAD, 16)

    def state(self) -> State:
        return _state(self._ask(Command.STATE))

    def player(self) -> Plays:
        answer = self._ask(Command.STATE)
        if "kernels" not in answer:
            raise Refused(11, "player")
        bits = int.from_bytes(answer["kernels"], "little")
        kernels = frozenset(number for number in range(bits.bit_length()) if bits >> number & 1)
        return Plays(int(answer["core"]), kernels)

    def begin(self, count: int, resume: bool) -> tuple[int, int]:
        answer = self._ask(Command.UPLOAD, len=count, resume=resume)
        return int(answer["off"]), int(answer["crc"])

    def send(self, offset: int, data: bytes) -> int:
        return int(self._ask(Command.UPLOAD, off=offset, data=data)["off"])

    def finish(self) -> None:
        """The device checks the image and tries the model at once."""
        self._tested = _state(self._ask(Command.TEST))

    def open(self) -> State:
        return self._tested or self.state()

    def confirm(self) -> None:
        self._ask(Command.CONFIRM)

    def reject(self) -> None:
        self._ask(Command.REJECT)

    def erase(self) -> None:
        """Whatever is in the slot that is free."""
        self._ask(Command.ERASE)

    def _ask(self, command: Command, **arguments: Any) -> Mapping[str, Any]:
        """The answer to a request; one that was lost is sent again, which changes nothing."""
        seconds = ERASE_SECONDS if command in SLOW or "len" in arguments else ANSWER_SECONDS
        for _ in range(ATTEMPTS):
            try:
                answer = self._run(asyncio.wait_for(self._exchange(command, arguments), seconds))
            except asyncio.TimeoutError:
                continue
            except OSError as error:
                raise ToolError(f"{self.address}: {_words(error)}") from None
            if "err" in answer and answer["err"]["group"] == self.group:
                raise Refused(int(answer["err"]["rc"]), command.name.lower())
            code = answer["err"]["rc"] if "err" in answer else answer.get("rc", 0)
            if code:
                reason = MANAGEMENT.get(code, f"error {code}")
                raise ToolError(f"{self.address} refuses ({command.name.lower()}): {reason}")
            return answer
        raise ToolError(
            f"{self.address} does not answer",
            "a firmware with CONFIG_MCUMGR and this transport",
        )

    async def _exchange(self, command: Command, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        import cbor2
        from smp.header import OP, Flag, Header
        from smp.header import Version as Protocol

        content = cbor2.dumps(dict(arguments))
        number = next(self._sequence) % 256
        op = OP.READ if command is Command.STATE else OP.WRITE
        header = Header(op, Protocol.V2, Flag(0), len(content), self.group, number, int(command))
        answer = await self._transport.send_and_receive(bytes(header) + content)
        while Header.loads(answer[: Header.SIZE]).sequence != number:  # one that came too late
            answer = await self._transport.receive()
        found = cbor2.loads(answer[Header.SIZE :])
        if not isinstance(found, Mapping):
            raise ToolError(f"{self.address} gives an answer that is none")
        return found

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(work)


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__


def _transport(address: str, baud: int) -> tuple[SMPTransport, str]:
    """The transport of an address, and what it connects to."""
    kind, _, rest = address.partition(":")
    if kind not in ("udp", "serial", "ble") or not rest:
        raise ConfigError(f"--smp {address!r} names no transport", KINDS)
    try:
        if kind == "udp":
            return _udp(rest)
        if kind == "serial":
            from smpclient.transport.serial import BufferParams, SMPSerialTransport

            return SMPSerialTransport(BufferParams(*LINES), baudrate=baud), rest
        from smpclient.transport.ble import SMPBLETransport

        return SMPBLETransport(), rest
    except ImportError as error:
        missing = error.name or "smpclient"
        extra = "smpclient[ble]" if kind == "ble" else "west-tinyml[smp]"
        raise ToolError(f"deploying over SMP needs {missing}", f"pip install {extra!r}") from None


def _udp(target: str) -> tuple[SMPTransport, str]:
    from smpclient.transport.udp import SMPUDPTransport

    host, colon, port = target.rpartition(":")
    if not colon or "]" in port:
        host, port = target, str(UDP_PORT)
    if not port.isdecimal() or not 0 < int(port) < 1 << 16:
        raise ConfigError(f"--smp udp:{target} has no port that exists", KINDS)

    class OnPort(SMPUDPTransport):
        async def connect(self, address: str, timeout_s: float, port: int = int(port)) -> None:
            await super().connect(address, timeout_s, port)

    return OnPort(), host.strip("[]")


def _state(answer: Mapping[str, Any]) -> State:
    active = answer.get("active")
    version = Version(0, 0, 0, 0)
    if active is not None:
        version = parse_version(str(answer["slots"][active].get("version", "0")))
    return State(
        int(answer.get("address", 0)) if "free" in answer else 0,
        int(answer.get("bytes", 0)),
        version,
        bool(answer.get("trial", False)),
        str(answer.get("name", "")),
    )
