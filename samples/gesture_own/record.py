# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Synthesise what the device starts with, and a person who teaches it a gesture of their own.

    python record.py

writes src/known.h, the classes of the four gestures that the model was trained with, and replay.csv, which
the emulated sensor plays: three examples of a circle that stands upright, then all five gestures.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np

import tinyml
from tinyml import features

HERE = Path(__file__).resolve().parent
GESTURE = HERE.parent / "gesture"
sys.path.insert(0, str(HERE.parent / "common"))

ADAPT = {"kind": "prototypes", "classes": 5, "distance": "euclidean"}
OWN = "own"
KNOWN_RECORDINGS = 12  # of each gesture, for the classes that the device starts with
FIRST, LENGTH, PERIOD, EXAMPLES = 100, 150, 250, 3  # samples: when the examples are
AFTERWARDS = ("wave", OWN, "circle", "shake", OWN)
SEED = 10


def script(name: str) -> ModuleType:
    """A script of the sample gesture, whose name another module may have."""
    place = importlib.util.spec_from_file_location(f"gesture_{name}", GESTURE / f"{name}.py")
    assert place is not None
    assert place.loader is not None
    module = importlib.util.module_from_spec(place)
    place.loader.exec_module(module)
    return module


RECORD, TRAIN = script("record"), script("train")


def own(count: int, random: np.random.Generator) -> np.ndarray:
    """A circle that stands upright, towards the body and back."""
    turn = 2 * np.pi * random.uniform(1.2, 1.6) * np.arange(count) / RECORD.RATE + random.uniform(
        0, 2 * np.pi
    )
    size = random.uniform(5, 7)
    moved = np.zeros((count, 3))
    moved[:, 1] = size * np.cos(turn)
    moved[:, 2] = size * random.uniform(0.9, 1.1) * np.sin(turn)
    return np.clip(moved + RECORD.recording("idle", count, random), -32, 32)


def compiled() -> tinyml.CompiledModel:
    return tinyml.compile(GESTURE / "model.onnx", target="host", name="gesture", adapt=ADAPT)


def windows(samples: np.ndarray) -> np.ndarray:
    """The inputs that gesture_feed() gives the model."""
    rows = features.compute(samples.astype(np.float32), **TRAIN.FRONTEND)
    starts = range(0, len(rows) - TRAIN.WINDOW + 1, TRAIN.STRIDE)
    return np.stack([rows[start : start + TRAIN.WINDOW] for start in starts])[:, np.newaxis]


def known() -> bytes:
    """What the model knows about its own gestures, as a device keeps it."""
    random = np.random.default_rng(SEED)
    adapted = compiled().adapt()
    for label, gesture in enumerate(TRAIN.CLASSES):
        for _ in range(KNOWN_RECORDINGS):
            found = windows(RECORD.recording(gesture, LENGTH, random))
            adapted.learn(found, np.full(len(found), label))
    return adapted.learnt


def replay() -> np.ndarray:
    random = np.random.default_rng(SEED + 1)
    rest = PERIOD - LENGTH
    parts = [RECORD.recording("idle", FIRST, random)]
    for gesture in (*(EXAMPLES * (OWN,)), *AFTERWARDS):
        moves = own(LENGTH, random) if gesture == OWN else RECORD.recording(gesture, LENGTH, random)
        parts += [moves, RECORD.recording("idle", rest, random)]
    return np.concatenate(parts)


def header(content: bytes) -> str:
    lines = [", ".join(f"0x{byte:02x}" for byte in content[i : i + 16]) for i in range(0, len(content), 16)]
    body = "".join(f"\t{line},\n" for line in lines)
    return (
        "/* Copyright The west-tinyml contributors */\n/* SPDX-License-Identifier: Apache-2.0 */\n\n"
        "/* The classes of the four gestures that the model was trained with. record.py writes this. */\n\n"
        "/* clang-format off */\n"
        f"static const unsigned char known[] __attribute__((aligned(4))) = {{\n{body}}};\n"
    )


def main() -> None:
    (HERE / "src" / "known.h").write_text(header(known()))
    samples = replay()
    np.savetxt(HERE / "replay.csv", samples, fmt="%.3f", delimiter=",")
    print(f"src/known.h; {len(samples) / RECORD.RATE:g} seconds -> replay.csv")


if __name__ == "__main__":
    main()
