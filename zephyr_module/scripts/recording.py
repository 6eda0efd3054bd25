# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A recording as C, for a device that replays it.

    recording.py FILE OUT.c --name N [--check] [--rate R] [--channels C] [--width W --height H]

CSV: one line per sample, one column per channel, kept as thousandths of its unit. WAV: int16 samples, or
blocks of IMA ADPCM, which have four bits a sample and are decoded by the device. PNG: pictures of W x H
greys, side by side. ``--check`` reads the recording and writes nothing. Uses the standard library only.
"""

from __future__ import annotations

import argparse
import array
import csv
import struct
import sys
import wave
from pathlib import Path

from greys import BadPictureError, read_png  # beside this script

LARGEST = 32767
ADPCM = 0x11
SIXTEEN_BITS = "convert it: sox IN.wav -b 16 OUT.wav"


class BadRecordingError(Exception):
    """What is wrong with a recording, and what to try."""


def from_csv(path: Path) -> tuple[list[int], int]:
    """Thousandths, and how many make a sample."""
    with path.open(newline="", encoding="utf-8") as stream:
        lines = [line for line in csv.reader(stream) if line]
    try:
        values = [[round(1000 * float(text)) for text in line] for line in lines]
    except ValueError as error:
        raise BadRecordingError(f"{error}; every line must be numbers, separated by commas") from None
    widths = {len(line) for line in values}
    if len(widths) != 1:
        raise BadRecordingError(f"lines have {sorted(widths) or 'no'} values; all must have the same number")
    flat = [value for line in values for value in line]
    if max(map(abs, flat)) > LARGEST:
        raise BadRecordingError(f"has values beyond {LARGEST / 1000}; use larger units")
    return flat, widths.pop()


def from_wav(path: Path, rate: int | None) -> tuple[list[int], int]:
    try:
        with wave.open(str(path), "rb") as stream:
            if stream.getsampwidth() != 2:
                raise BadRecordingError(f"has {8 * stream.getsampwidth()} bits; convert it to 16: sox -b 16")
            if rate is not None and stream.getframerate() != rate:
                raise BadRecordingError(
                    f"has {stream.getframerate()} samples a second; its node in the devicetree says {rate}"
                )
            samples = array.array("h", stream.readframes(stream.getnframes()))
            channels = stream.getnchannels()
    except (wave.Error, EOFError) as error:
        raise BadRecordingError(f"cannot be read as WAV: {error}") from None
    if sys.byteorder == "big":
        samples.byteswap()
    return samples.tolist(), channels


def chunks_of(path: Path) -> dict[bytes, bytes]:
    """The parts of a RIFF file; none if it is something else."""
    content, at, found = path.read_bytes(), 12, {}
    if content[:4] != b"RIFF" or content[8:12] != b"WAVE":
        return {}
    while at + 8 <= len(content):
        name, size = struct.unpack_from("<4sI", content, at)
        found[name] = content[at + 8 : at + 8 + size]
        at += 8 + size + size % 2
    return found


def from_adpcm(path: Path, rate: int | None) -> tuple[list[int], int, int] | None:
    """Words of 16 bits, samples, and samples of a block; None: it is another kind of file."""
    chunks = chunks_of(path) if path.suffix.lower() == ".wav" else {}
    form = chunks.get(b"fmt ", b"")
    if len(form) < 20 or struct.unpack_from("<H", form)[0] != ADPCM:
        return None
    _, channels, found_rate, _, block, bits, _, block_samples = struct.unpack_from("<HHIIHHHH", form)
    if channels != 1 or bits != 4 or block < 8 or block % 2 or block_samples != 2 * (block - 4) + 1:
        raise BadRecordingError(f"has ADPCM of {channels} channels and {bits} bits; {SIXTEEN_BITS}")
    if rate is not None and found_rate != rate:
        raise BadRecordingError(f"has {found_rate} samples a second; its node in the devicetree says {rate}")
    data = chunks.get(b"data", b"")
    data = data[: len(data) // block * block]
    samples = len(data) // block * block_samples
    if len(chunks.get(b"fact", b"")) >= 4:
        samples = min(samples, struct.unpack_from("<I", chunks[b"fact"])[0])
    if not samples:
        raise BadRecordingError("is empty")
    return list(struct.unpack(f"<{len(data) // 2}h", data)), samples, block_samples


def from_png(path: Path, width: int, height: int) -> list[int]:
    """The pixels of pictures that are side by side, picture after picture."""
    try:
        pixels, row = read_png(path)
    except BadPictureError as error:
        raise BadRecordingError(str(error)) from None
    if len(pixels) != row * height or row % width:
        raise BadRecordingError(
            f"has {row}x{len(pixels) // row} pixels; pictures of {width}x{height} must be side by side"
        )
    starts = [line + left for left in range(0, row, width) for line in range(0, len(pixels), row)]
    return [pixel for start in starts for pixel in pixels[start : start + width]]


def read(path: Path, rate: int | None) -> tuple[list[int], int]:
    """Values and how many make a sample."""
    kind = path.suffix.lower()
    if kind not in (".csv", ".wav"):
        raise BadRecordingError("is neither .csv nor .wav")
    values, channels = from_csv(path) if kind == ".csv" else from_wav(path, rate)
    if not values:
        raise BadRecordingError("is empty")
    return values, channels


def text(name: str, values: list[int], samples: int, kind: str = "int16_t", block_samples: int = 0) -> str:
    lines = [", ".join(map(str, values[at : at + 16])) for at in range(0, len(values), 16)]
    rows = "\n".join(f"\t{line}," for line in lines)
    return (
        "/* Made from a recording; do not edit. */\n#include <stdint.h>\n\n"
        f"extern const {kind} {name}[];\nextern const uint32_t {name}_samples;\n"
        f"extern const uint32_t {name}_block_samples;\n\n"
        f"const uint32_t {name}_samples = {samples};\n"
        f"const uint32_t {name}_block_samples = {block_samples};\n"
        f"const {kind} {name}[] = {{\n{rows}\n}};\n"
    )


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("recording", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--name", required=True)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--rate", type=int)
    parser.add_argument("--channels", type=int)
    parser.add_argument("--width", type=int)
    parser.add_argument("--height", type=int)
    args = parser.parse_args()
    try:
        if not args.recording.is_file():
            raise BadRecordingError("does not exist; 'recording' in the devicetree names it")
        if args.width is not None:
            pixels = from_png(args.recording, args.width, args.height)
            made = text(args.name, pixels, len(pixels) // (args.width * args.height), "uint8_t")
        elif (packed := from_adpcm(args.recording, args.rate)) is not None:
            words, samples, block_samples = packed
            made = text(args.name, words, samples, block_samples=block_samples)
        else:
            values, channels = read(args.recording, args.rate)
            if args.channels not in (None, channels):
                raise BadRecordingError(f"has {channels} channels; the device has {args.channels}")
            made = text(args.name, values, len(values) // channels)
    except BadRecordingError as error:
        print(f"error: {args.recording} {error}", file=sys.stderr)
        return 1
    if not args.check:
        args.out.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
