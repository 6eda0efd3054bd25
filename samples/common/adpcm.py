# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""WAV files with four bits a sample (IMA ADPCM), which the emulated microphone plays as well."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

FORMAT = 0x11
BLOCK_BYTES = 256
BLOCK_SAMPLES = 2 * (BLOCK_BYTES - 4) + 1  # the first one is in the header of the block
STEPS = (
    7, 8, 9, 10, 11, 12, 13, 14, 16, 17, 19, 21, 23, 25, 28, 31,
    34, 37, 41, 45, 50, 55, 60, 66, 73, 80, 88, 97, 107, 118, 130, 143,
    157, 173, 190, 209, 230, 253, 279, 307, 337, 371, 408, 449, 494, 544, 598, 658,
    724, 796, 876, 963, 1060, 1166, 1282, 1411, 1552, 1707, 1878, 2066, 2272, 2499, 2749, 3024,
    3327, 3660, 4026, 4428, 4871, 5358, 5894, 6484, 7132, 7845, 8630, 9493, 10442, 11487, 12635, 13899,
    15289, 16818, 18500, 20350, 22385, 24623, 27086, 29794, 32767,
)  # fmt: skip
FASTER = (-1, -1, -1, -1, 2, 4, 6, 8)  # how far a code moves the index of the step
Sound = npt.NDArray[Any]


class Predictor:
    """The sample that codes have led to, and the step of the next one."""

    def __init__(self) -> None:
        self.value = self.index = 0

    def take(self, code: int) -> int:
        step = STEPS[self.index]
        away = step >> 3
        for bit in range(3):
            away += step >> (2 - bit) if code >> bit & 1 else 0
        self.value = min(max(self.value + (-away if code & 8 else away), -32768), 32767)
        self.index = min(max(self.index + FASTER[code & 7], 0), len(STEPS) - 1)
        return self.value

    def code(self, sample: int) -> int:
        """The code that leads nearest to a sample."""
        away, step = abs(sample - self.value), STEPS[self.index]
        return (8 if sample < self.value else 0) | min(away * 4 // step, 7)


def save(path: Path, sound: Sound, rate: int) -> None:
    """Write int16 samples of one channel."""
    predictor, content = Predictor(), b""
    padded = np.concatenate([sound, np.repeat(sound[-1:], -len(sound) % BLOCK_SAMPLES)]).tolist()
    for start in range(0, len(padded), BLOCK_SAMPLES):
        predictor.value = padded[start]
        content += struct.pack("<hBx", predictor.value, predictor.index)
        codes = []
        for sample in padded[start + 1 : start + BLOCK_SAMPLES]:
            codes.append(predictor.code(sample))
            predictor.take(codes[-1])
        content += bytes(low | high << 4 for low, high in zip(codes[::2], codes[1::2], strict=True))
    form = struct.pack(
        "<HHIIHHHH", FORMAT, 1, rate, rate * BLOCK_BYTES // BLOCK_SAMPLES, BLOCK_BYTES, 4, 2, BLOCK_SAMPLES
    )
    chunks = ((b"fmt ", form), (b"fact", struct.pack("<I", len(sound))), (b"data", content))
    body = b"WAVE" + b"".join(name + struct.pack("<I", len(data)) + data for name, data in chunks)
    path.write_bytes(b"RIFF" + struct.pack("<I", len(body)) + body)


def load(path: Path) -> Sound:
    """The int16 samples of a file that save() has written."""
    content, at, chunks = path.read_bytes(), 12, {}
    while at < len(content):
        name, size = struct.unpack_from("<4sI", content, at)
        chunks[name] = content[at + 8 : at + 8 + size]
        at += 8 + size
    predictor, samples = Predictor(), []
    for start in range(0, len(chunks[b"data"]), BLOCK_BYTES):
        block = chunks[b"data"][start : start + BLOCK_BYTES]
        predictor.value, predictor.index = struct.unpack_from("<hB", block)
        samples.append(predictor.value)
        for byte in block[4:]:
            samples += [predictor.take(byte & 15), predictor.take(byte >> 4)]
    return np.array(samples[: struct.unpack("<I", chunks[b"fact"])[0]], np.int16)
