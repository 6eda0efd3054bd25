# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Synthesise a person with espeak-ng who teaches the device a word, and then speaks.

    apt install espeak-ng && pip install scipy
    python record.py

writes replay.wav, which the emulated microphone plays: three examples of a word that the model was not
trained with, then that word and others. It has four bits a sample (IMA ADPCM), to fit the flash of small
boards.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
import wave
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

import tinyml
from tinyml import features

HERE = Path(__file__).resolve().parent
WAKE_WORD = HERE.parent / "wake_word"
sys.path.insert(0, str(HERE.parent / "common"))

RATE = 16000
STEP, FRAME, ROWS = RATE // 100, RATE * 30 // 1000, 3  # samples between rows and of one; rows of a run
RUN = ROWS * STEP
SCALE = np.float32(0.0390625)  # of the front end's features
ADAPT = {"kind": "prototypes", "classes": 1, "distance": "euclidean", "reject": 17}
EXAMPLES = 3
# As in src/main.c: a run is loud if it exceeds so many times the noise, and this part of the loudest run.
LOUDER, PART_OF_PEAK = 3, 6
LEAST_LOUD = 6  # runs of a word
LEARN, FIRST, LAST = 6, 3, 9  # quiet runs after it: to learn, and between which to compare
WORD = "marigold"
BEFORE, AFTER = 0.15, 0.35  # seconds of noise around speech
AFTERWARDS = (WORD, "what time is it", "hey zephyr", WORD, "bumblebee")
SEED = 13
Sound = npt.NDArray[Any]


def script(name: str) -> ModuleType:
    """A script of the sample wake_word, whose name another module may have."""
    place = importlib.util.spec_from_file_location(f"wake_word_{name}", WAKE_WORD / f"{name}.py")
    assert place is not None
    assert place.loader is not None
    module = importlib.util.module_from_spec(place)
    place.loader.exec_module(module)
    return module


@dataclass(frozen=True)
class Person:
    """A voice of espeak-ng, and how high it is."""

    voice: str
    pitch: int


def person(random: np.random.Generator) -> Person:
    record = script("record")
    voice = f"{random.choice(record.ACCENTS)}+{random.choice(record.VARIANTS)}"
    return Person(voice, int(random.integers(30, 70)))


def spoken(text: str, who: Person, random: np.random.Generator) -> Sound:
    """Speech in a quiet room: a little faster or slower, higher or lower, nearer or farther each time."""
    from scipy.signal import resample_poly

    speed, pitch = random.integers(145, 190), who.pitch + random.integers(-6, 7)
    with tempfile.NamedTemporaryFile(suffix=".wav") as file:
        options = ["-v", who.voice, "-s", str(speed), "-p", str(pitch), "-w", file.name]
        subprocess.run(["espeak-ng", *options, text], check=True)
        with wave.open(file.name, "rb") as stream:
            rate = stream.getframerate()
            sound = np.frombuffer(stream.readframes(stream.getnframes()), np.int16).astype(np.float64)
    sound = resample_poly(sound, RATE, rate)
    loud = np.flatnonzero(np.abs(sound) > 0.02 * np.abs(sound).max())
    sound = sound[loud[0] : loud[-1] + 1]
    loudness = 10 ** random.uniform(3.4, 4.2)
    quiet = loudness * 10 ** random.uniform(-2.5, -1.5)
    speech = np.pad(loudness / np.abs(sound).max() * sound, (int(BEFORE * RATE), int(AFTER * RATE)))
    return np.clip(np.round(speech + quiet * script("record").noise(len(speech), random)), -32768, 32767)


def compiled() -> tinyml.CompiledModel:
    return tinyml.compile(WAKE_WORD / "model.onnx", target="host", name="wake_word", adapt=ADAPT)


def inputs(sound: Sound) -> Sound:
    """What wake_word_feed() gives the model, run after run."""
    rows = features.compute(sound.astype(np.int16), "micro", step_ms=10).astype(np.float32) * SCALE
    return rows[: len(rows) // ROWS * ROWS].reshape(-1, 1, ROWS, rows.shape[1])


class Ear:
    """Tells by loudness when somebody has stopped speaking: src/main.c does the same."""

    def __init__(self) -> None:
        self.floor, self.peak, self.loud, self.quiet = 1 << 30, 0, 0, 0

    def hear(self, level: int) -> int:
        """The quiet runs since a word, with this one; 0 if it is not quiet, or if there was no word."""
        if self.quiet >= LAST or (self.quiet >= LEARN and self.loud < LEAST_LOUD):
            self.peak = self.loud = self.quiet = 0
        self.floor = level if level < self.floor else self.floor + self.floor // 64 + 1
        if level > max(LOUDER * self.floor, self.peak // PART_OF_PEAK):
            self.peak, self.loud, self.quiet = max(self.peak, level), self.loud + 1, 0
        else:
            self.quiet += 1
        return self.quiet if self.loud >= LEAST_LOUD else 0


@dataclass(frozen=True)
class Heard:
    """A word that has ended: whether it was taught, and how far it is from what was taught."""

    end: int  # in samples
    decision: int
    distance: np.float32


def run_ends(runs: int) -> list[int]:
    """How many samples there were at each run."""
    return [FRAME + ((run + 1) * ROWS - 1) * STEP for run in range(runs)]


def quiet_runs(sound: Sound, runs: int) -> list[int]:
    """For each run, the quiet ones since a word."""
    ear, since, found = Ear(), 0, []
    for end in run_ends(runs):
        found.append(ear.hear(int(np.abs(sound[since:end].astype(np.int64)).sum()) // (end - since)))
        since = end
    return found


def listen(adapted: tinyml.Adapted, sound: Sound, examples: int) -> Iterator[Heard | int]:
    """Teach the first words, then compare: the end of each example, and what was heard afterwards."""
    rows = inputs(sound)
    learnt = 0
    best: Heard | None = None
    for row, quiet, end in zip(rows, quiet_runs(sound, len(rows)), run_ends(len(rows)), strict=True):
        adapted.run(row[np.newaxis], reset=end == FRAME + RUN - STEP)
        if learnt < examples:
            if quiet == LEARN:
                adapted.learn_last_run(0)
                learnt += 1
                yield end
        elif quiet == FIRST or (best is not None and quiet > FIRST):
            decision, distance = adapted.decide()
            if best is None or distance < best.distance:
                best = Heard(end, decision, np.float32(distance))
            if quiet == LAST:
                yield replace(best, end=end)
                best = None
        else:
            best = None  # somebody goes on speaking


def replay() -> Sound:
    random = np.random.default_rng(SEED)
    who = person(random)
    return np.concatenate([spoken(text, who, random) for text in (*(EXAMPLES * (WORD,)), *AFTERWARDS)])


def main() -> None:
    from adpcm import save

    sound = replay()
    save(HERE / "replay.wav", sound.astype(np.int16), RATE)
    print(f"{len(sound) / RATE:.2f} seconds -> replay.wav")


if __name__ == "__main__":
    main()
