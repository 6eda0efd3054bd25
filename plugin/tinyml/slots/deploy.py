# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Sending a pack to a device. ``<tinyml/slot_receiver.h>`` describes the requests."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from enum import IntEnum
from typing import Protocol

from tinyml.base.errors import ConfigError, ToolError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.harness.device_session import Session
from tinyml.slots.container import Pack
from tinyml.slots.data_pack import holds_data
from tinyml.slots.data_reading import check_layouts, read_data
from tinyml.slots.image import core_of as image_core
from tinyml.slots.image import read
from tinyml.slots.version import Version

DATA_BYTES = 448  # a frame also has the offset
ERASE_SECONDS = 60.0  # a whole slot, and later checking a signature

REASONS = {
    1: "the slot is empty",
    2: "the slot is misaligned or too small, or its flash is not supported",
    3: "what arrived is not a model",
    4: "the image is longer than the slot",
    5: "the image is linked for another address",
    6: "the checksum is wrong",
    7: "the digest is wrong",
    8: "the device takes only signed packs, and this one is not",
    9: "the pack is signed with another key than the device's",
    10: "the firmware does not know this format of packs",
    11: "the firmware has a different interface for slots",
    12: "the device's core lacks instructions that the model needs",
    13: "the firmware has too little RAM for the arena (CONFIG_TINYML_SLOTS_ARENA_BYTES)",
    14: "the firmware has too little RAM for the state (CONFIG_TINYML_SLOTS_STATE_BYTES)",
    15: "something in the pack points outside",
    16: "the model has more inputs and outputs than the firmware has room for (TINYML_SLOT_TENSORS)",
    17: "the model is not newer than the one in use",
    18: "the model failed its self-test on the device",
    19: "the model failed before",
    20: "no slot has a model that may be used",
    21: "the flash cannot be written",
    22: "the model in use is on trial: confirm or reject it first",
    23: "the device did not expect this now",
    24: "this machine cannot run models from slots",
    25: "another update has begun since",
    26: "the firmware lacks a kernel of the model (CONFIG_TINYML_PLAYER_KERNELS)",
    27: "a call of the model would leave its memory",
    28: "the model does more work than it states, or than the firmware allows",
    29: "the pack was made for older kernels than those of the firmware: pack the model again",
}
"""enum tinyml_slot_error in words, by its number without the sign."""

CURABLE = {1, 3, 4, 6, 7, 21, 23, 25}
"""Reasons that concern what is in flash, not what was sent: another attempt may succeed."""

_STATE = struct.Struct("<4IB")


class Request(IntEnum):
    INFO = 1
    BEGIN = 2
    DATA = 3
    FINISH = 4
    OPEN = 5
    CONFIRM = 6
    REJECT = 7
    PLAYER = 8


class Refused(ToolError):
    """The device refused; ``code`` is its reason."""

    def __init__(self, code: int, doing: str) -> None:
        super().__init__(f"the device refuses ({doing}): {REASONS.get(code, f'error {code}')}")
        self.code = code


@dataclass(frozen=True)
class State:
    """What a device reports about itself."""

    address: int  # of the slot that is free
    bytes: int
    version: Version
    on_trial: bool
    name: str  # empty without a model


@dataclass(frozen=True)
class Plays:
    """What the player of a device has: bits of its core, numbers of kernels."""

    core: int
    kernels: frozenset[int]

    def image_in(self, pack: Pack) -> bytes:
        """The image of a pack without code that makes most of the core; the device has all of its kernels."""
        images = [(image_core(content), content) for content in pack.images.values()]
        fitting = [pair for pair in images if not pair[0] & ~self.core]
        if not fitting:
            raise ConfigError(
                f"the pack has no image that the device can play; it has {', '.join(pack.images)}",
                "pack the model again with --for all",
            )
        _, content = max(fitting, key=lambda pair: pair[0])
        model = read_data(content)
        check_layouts(model)
        missing = [kernel.name for kernel in model.kernels if kernel.number not in self.kernels]
        if missing:
            raise ConfigError(
                f"the firmware cannot play the model: it lacks {', '.join(missing)}",
                "a firmware with these kernels (CONFIG_TINYML_PLAYER_KERNELS)",
            )
        return content


@dataclass(frozen=True)
class Deployed:
    before: State
    after: State
    sent: int
    resumed: int


class Receiver(Protocol):
    """A device that takes packs, over whatever line."""

    @property
    def data_bytes(self) -> int:
        """Of an image, in one part."""

    def state(self) -> State: ...

    def player(self) -> Plays:
        """What images without code the device plays."""

    def begin(self, count: int, resume: bool) -> tuple[int, int]:
        """How many bytes are there already, and their CRC."""

    def send(self, offset: int, data: bytes) -> int:
        """The next part of an image; how many bytes are there then."""

    def finish(self) -> None:
        """Let the device check the image."""

    def open(self) -> State:
        """Let the device choose again: a new model is tried."""

    def confirm(self) -> None:
        """Keep the model."""


class Slots:
    """The slots of a device that has been greeted over the host protocol."""

    def __init__(self, session: Session) -> None:
        self.session = session

    @property
    def data_bytes(self) -> int:
        return min(DATA_BYTES, self.session.greeting.payload - 8)

    def state(self) -> State:
        return _state(self._ask(Request.INFO))

    def player(self) -> Plays:
        """What images without code the device plays."""
        answer = self._ask(Request.PLAYER)
        bits = int.from_bytes(answer[4:], "little")
        kernels = frozenset(number for number in range(bits.bit_length()) if bits >> number & 1)
        return Plays(int.from_bytes(answer[:4], "little"), kernels)

    def open(self) -> State:
        """Let the device choose again: a new model is tried."""
        return _state(self._ask(Request.OPEN))

    def confirm(self) -> None:
        self._ask(Request.CONFIRM)

    def begin(self, count: int, resume: bool) -> tuple[int, int]:
        """How many bytes are there already, and their CRC."""
        done, crc = struct.unpack("<II", self._ask(Request.BEGIN, struct.pack("<IB", count, resume)))
        return done, crc

    def send(self, offset: int, data: bytes) -> int:
        """The next part of an image; how many bytes are there then."""
        (done,) = struct.unpack("<I", self._ask(Request.DATA, struct.pack("<I", offset) + data))
        return int(done)

    def finish(self) -> None:
        self._ask(Request.FINISH)

    def _ask(self, request: Request, arguments: bytes = b"") -> bytes:
        answer = self.session.slot(bytes([request]) + arguments, ERASE_SECONDS)
        if answer[0] != 0:
            raise Refused(answer[0], request.name.lower())
        return answer[1:]


def _state(results: bytes) -> State:
    address, size, version, build, trial = _STATE.unpack_from(results)
    major, minor, revision = version & 0xFF, version >> 8 & 0xFF, version >> 16
    name = results[_STATE.size :].decode(errors="replace")
    return State(address, size, Version(major, minor, revision, build), bool(trial), name)


def deploy(
    slots: Receiver,
    pack: Pack,
    progress: Callable[[int, int], None] = lambda done, total: None,
    confirm: bool = True,
) -> Deployed:
    """Send the image for the free slot, let the device check and try it, and confirm it."""
    before = slots.state()
    if before.address == 0:
        raise ConfigError(
            "the device has no free slot: its model is on trial, or no slot was opened",
            "confirm or reject the model on the device first",
        )
    image = slots.player().image_in(pack) if holds_data(pack) else pack.image_at(before.address)
    if len(image) > before.bytes:
        raise ConfigError(f"the image has {len(image):,} bytes, and the slot {before.bytes:,}")
    try:
        resumed = _send(slots, image, progress, resume=True)
    except Refused as refused:
        if refused.code not in CURABLE:
            raise
        resumed = _send(slots, image, progress, resume=False)
    after = slots.open()
    if after.version != read(image).version:
        raise ToolError(
            f"the model failed its self-test; the device went back to {after.name or 'none'} {after.version}",
            "verify the model for the device's core first: tinyml verify MODEL --on qemu-...",
        )
    if confirm:
        slots.confirm()
    return Deployed(before, after, len(image), resumed)


def _send(slots: Receiver, image: bytes, progress: Callable[[int, int], None], resume: bool) -> int:
    """Send all that the device does not have, and let it check the whole; how much it had."""
    done, crc = slots.begin(len(image), resume)
    if done and crc != zlib.crc32(image[:done]):
        done, _ = slots.begin(len(image), resume=False)
    resumed = done
    step = slots.data_bytes
    while done < len(image):
        done = slots.send(done, image[done : done + step])
        progress(done, len(image))
    slots.finish()
    return resumed
