# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What a model on a connected device learns: the requests of <tinyml/adapt.h>."""

from __future__ import annotations

import struct
from enum import IntEnum

import numpy as np

from tinyml.adapt.errors import NONE, OutOfRange, refusal
from tinyml.adapt.stored import HEADER_BYTES, KINDS
from tinyml.adapt.threshold import Normal
from tinyml.harness.device_session import Session
from tinyml.ir import Array


class Action(IntEnum):
    INFO = 0
    LEARN = 1
    DECIDE = 2
    RESET = 3
    READ = 4
    WRITE = 5
    BEGIN = 6
    END = 7
    FORGET = 8
    CHECK = 9


class DeviceAdapter:
    """A model that learns on a device. ToolError: it refuses, and nothing has changed."""

    def __init__(self, session: Session, model: int, where: str) -> None:
        self._session, self._model, self._where = session, model, where

    def learn(self, truth: int | float | Array) -> int:
        """A label, class or targets for the last run; for a class, its number."""
        values = np.asarray(truth)
        if values.ndim or values.dtype.kind == "f":
            return self._ask(Action.LEARN, values.reshape(-1).astype("<f4").tobytes())[0]
        if not -(1 << 31) <= int(values) < 1 << 31:
            raise OutOfRange(f"label {values}", "the model's header has the number of classes")
        return self._ask(Action.LEARN, struct.pack("<i", int(values)))[0]

    def begin(self) -> None:
        """Start a batch."""
        self._ask(Action.BEGIN)

    def end(self) -> None:
        """A step with the whole batch."""
        self._ask(Action.END)

    def decide(self) -> tuple[int, float]:
        """The class of the last run (-2: none of them), or 1 if it is unusual; and the distance."""
        status, rest = self._session.adapt(self._model, Action.DECIDE)
        if status < 0 and status != NONE:
            raise refusal(status, self._where)
        return status, struct.unpack("<f", rest)[0]

    def forget(self, number: int) -> None:
        """Forget a class."""
        self._ask(Action.FORGET, struct.pack("<i", number))

    def factory(self) -> None:
        """Forget all that was learnt."""
        self._ask(Action.RESET)

    def check(self) -> None:
        """The self-test; if accuracy was lost, everything is forgotten."""
        self._ask(Action.CHECK)

    @property
    def count(self) -> int:
        """Steps, or examples."""
        return self._info()[2]

    @property
    def needs_labels(self) -> bool:
        """Only what is normal is learnt without."""
        return self._info()[0] != KINDS[Normal]

    @property
    def targets(self) -> int:
        """The values that a regression learns from; 0: it learns from labels."""
        return self._info()[3]

    @property
    def learnt(self) -> bytes:
        """What the device has learnt, as NAME_learnt() gives it."""
        size = self._info()[1]
        found = b""
        while len(found) < size:
            found += self._ask(Action.READ, struct.pack("<I", len(found)))[1]
        return found

    def restore(self, data: bytes) -> None:
        """Take back what was learnt; if the device refuses it, it is as the factory left it."""
        room = self._session.greeting.payload
        for start in range(HEADER_BYTES, len(data), room):
            self._ask(Action.WRITE, struct.pack("<I", start) + data[start : start + room])
        self._ask(Action.WRITE, struct.pack("<I", 0) + data[:HEADER_BYTES])

    def _info(self) -> tuple[int, int, int, int]:
        kind, size, count, targets = struct.unpack("<IIII", self._ask(Action.INFO)[1])
        return kind, size, count, targets

    def _ask(self, action: Action, arguments: bytes = b"") -> tuple[int, bytes]:
        status, rest = self._session.adapt(self._model, action, arguments)
        if status < 0:
            raise refusal(status, self._where)
        return status, rest
