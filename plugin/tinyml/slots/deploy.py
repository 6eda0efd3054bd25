# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Sending a pack to a device, line by line. ``<tinyml/slot_receiver.h>`` describes the lines."""

from __future__ import annotations

import re
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass

from tinyml.errors import ConfigError, ToolError
from tinyml.harness.zephyr.links import Link
from tinyml.slots.container import Pack
from tinyml.slots.image import read
from tinyml.slots.version import Version

DATA_BYTES = 96  # TINYML_RECEIVER_DATA
ANSWER_SECONDS = 3.0
ERASE_SECONDS = 60.0  # a whole slot, and later checking a signature
TRIES = 4
DAMAGED, NONE, ORDER = 6, 20, 23

REASONS = {
    1: "the slot is empty",
    2: "the slot is misaligned or too small",
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
}
"""enum tinyml_slot_error in words, by its number without the sign."""

_ANSWER = re.compile(rb"@tinyml (ok|error)((?: [!-~]+)*) ?\r?\n")


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
    name: str  # "-" without a model


@dataclass(frozen=True)
class Deployed:
    before: State
    after: State
    sent: int
    resumed: int


class Device:
    """A device at the other end of a link. ``prefix`` is what a shell needs before each line."""

    def __init__(self, link: Link, where: str, prefix: str = "tinyml slot ") -> None:
        self.link = link
        self.where = where
        self.prefix = prefix

    def state(self) -> State:
        return self._state(self._ask("info"))

    def open(self) -> State:
        """Let the device choose again: a new model is tried."""
        return self._state(self._ask("open", ERASE_SECONDS))

    def confirm(self) -> None:
        self._ask("confirm")

    def begin(self, count: int, resume: bool) -> tuple[int, int]:
        done, crc = self._ask(f"begin {count:x} {int(resume)}", ERASE_SECONDS)
        return int(done, 16), int(crc, 16)

    def send(self, offset: int, data: bytes) -> int:
        line = f"data {offset:x} {data.hex()} {zlib.crc32(data):x}"
        for _ in range(TRIES):
            try:
                (done,) = self._ask(line)
                return int(done, 16)
            except Refused as error:
                if error.code != DAMAGED:  # the line was: send it again
                    raise
        raise ToolError(f"lines arrive damaged at {self.where}", "a better cable, or a lower baud rate")

    def finish(self) -> None:
        self._ask("finish", ERASE_SECONDS)

    def _state(self, words: list[str]) -> State:
        address, size, version, build, trial = (int(word, 16) for word in words[:5])
        major, minor, revision = version & 0xFF, version >> 8 & 0xFF, version >> 16
        return State(address, size, Version(major, minor, revision, build), bool(trial), words[5])

    def _ask(self, line: str, seconds: float = ANSWER_SECONDS) -> list[str]:
        """The words of the answer. A line whose answer is lost is sent again: all of them can be."""
        for _ in range(TRIES):
            self.link.write(f"{self.prefix}{line}\n".encode())
            end, text = time.monotonic() + seconds, b""
            while (left := end - time.monotonic()) > 0:
                text += self.link.read(left)
                if found := _ANSWER.search(text):
                    words = found[2].decode().split()
                    if found[1] == b"error":
                        raise Refused(int(words[0], 16), line.split()[0])
                    return words
        raise ToolError(
            f"{self.where} does not answer {line.split()[0]!r}",
            "the right port and --baud; a firmware with CONFIG_TINYML_SLOTS and CONFIG_TINYML_SHELL, or one "
            "that calls tinyml_receiver_line()",
        )


def deploy(
    device: Device,
    pack: Pack,
    progress: Callable[[int, int], None] = lambda done, total: None,
    confirm: bool = True,
) -> Deployed:
    """Send the image for the free slot, let the device check and try it, and confirm it."""
    before = device.state()
    if before.address == 0:
        raise ConfigError(
            "the device has no free slot: its model is on trial, or no slot was opened",
            "confirm or reject the model on the device first",
        )
    image = pack.image_at(before.address)
    if len(image) > before.bytes:
        raise ConfigError(f"the image has {len(image):,} bytes, and the slot {before.bytes:,}")
    done, crc = device.begin(len(image), resume=True)
    if done and crc != zlib.crc32(image[:done]):
        done, _ = device.begin(len(image), resume=False)
    resumed = done
    while done < len(image):
        done = device.send(done, image[done : done + DATA_BYTES])
        progress(done, len(image))
    device.finish()
    after = device.open()
    if after.version != read(image).version:
        raise ToolError(
            f"the model failed its self-test; the device went back to {after.name} {after.version}",
            "verify the model for the device's core first: tinyml verify MODEL --on qemu-...",
        )
    if confirm:
        device.confirm()
    return Deployed(before, after, len(image), resumed)
