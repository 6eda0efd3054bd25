# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What was learnt as bytes, as a device stores them: runtime/adapt/stored.c has the same."""

from __future__ import annotations

import struct
import zlib
from typing import TypeAlias

import numpy as np

from tinyml.adapt.errors import Damaged, Other
from tinyml.adapt.last import LastLayer
from tinyml.adapt.plan import AdaptPlan, stored_bytes
from tinyml.adapt.prototypes import MOST_EXAMPLES, ClassMeans
from tinyml.adapt.threshold import Normal

Learner: TypeAlias = LastLayer | ClassMeans | Normal

KINDS = {LastLayer: 0x54410001, ClassMeans: 0x54410102, Normal: 0x54410201}
_AFTER_CRC = struct.Struct("<I8sI")
HEADER_BYTES = 4 + _AFTER_CRC.size


def encode(learner: Learner, plan: AdaptPlan) -> bytes:
    """The bytes that NAME_learnt() gives."""
    if isinstance(learner, LastLayer):
        values = learner.values.astype("<f4").tobytes()
    elif isinstance(learner, ClassMeans):
        counts = learner.counts.astype(np.int16)[:, np.newaxis]
        values = np.concatenate([counts, learner.sums], axis=1).astype("<i2").tobytes()
    else:
        values = struct.pack("<ffI", learner.mean, learner.squares, learner.examples)
        if learner.inputs is not None:
            values += struct.pack("<I", learner.inputs.count) + learner.inputs.learnt.astype("<f4").tobytes()
    values = values.ljust(stored_bytes(plan.part), b"\0")
    rest = _AFTER_CRC.pack(KINDS[type(learner)], plan.digest, learner.count) + values
    return struct.pack("<I", zlib.crc32(rest)) + rest


def restore(learner: Learner, plan: AdaptPlan, data: bytes) -> None:
    """Take bytes back, as NAME_restore() does; nothing changes if they are refused."""
    size = HEADER_BYTES + stored_bytes(plan.part)
    kind, digest, count = _AFTER_CRC.unpack_from(data, 4) if len(data) == size else (0, b"", 0)
    if kind != KINDS[type(learner)] or digest != plan.digest:
        raise Other("these bytes were learnt by another model, kind or version", "learn again")
    (crc,) = struct.unpack_from("<I", data)
    if crc != zlib.crc32(data[4:]) or not _load(learner, data[HEADER_BYTES:], count):
        raise Damaged("these bytes are damaged, or outside the limits", "learn again")


def _load(learner: Learner, values: bytes, count: int) -> bool:
    if isinstance(learner, LastLayer):
        found = np.frombuffer(values, "<f4").astype(np.float32)
        if not learner.valid(found):
            return False
        learner.factory()
        learner.values = found
    elif isinstance(learner, ClassMeans):
        part = learner.part
        rows = part.classes * (part.features + 1)
        found = np.frombuffer(values[: 2 * rows], "<i2").reshape(part.classes, part.features + 1)
        counts, sums = found[:, 0].astype(np.uint16), found[:, 1:].astype(np.int16)
        if (counts > MOST_EXAMPLES).any():
            return False
        learner.factory()
        learner.sums, learner.counts = sums, counts
    else:
        mean, squares, examples = struct.unpack_from("<ffI", values)
        if not (abs(mean) < 1e30 and 0 <= squares < 1e30):
            return False
        kept = np.frombuffer(values[16:], "<f4")
        inputs = learner.inputs
        if inputs is not None:
            (scaled,) = struct.unpack_from("<I", values, 12)
            usual = (np.abs(kept) < 1e30).all() and (kept[inputs.part.features :] >= 0).all()
            if scaled > inputs.part.least or not usual:
                return False
        learner.factory()
        learner.mean, learner.squares, learner.examples = np.float32(mean), np.float32(squares), examples
        if inputs is not None:
            inputs.count, inputs.learnt = scaled, kept.astype(np.float32).reshape(2, -1)
        return True
    learner.count = count
    return True
