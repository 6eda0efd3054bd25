# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Synthesise speech with espeak-ng: the wake word "hey zephyr", and other things that people say.

    apt install espeak-ng && pip install scipy
    python record.py [FOLDER] [--word "hey steven"]

writes FOLDER/{other,wake}/<number>.wav (default: recordings), 16000 samples a second, one channel, to train
with, and replay.wav, which the emulated microphone plays. Every recording begins with 0.4 seconds of noise;
the speech of the wake word ends 0.3 seconds before the end.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import wave
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.signal import resample_poly

HERE = Path(__file__).resolve().parent
RATE = 16000
WORD = "hey zephyr"
BEFORE, AFTER = 0.4, 0.3  # seconds of noise around speech
WAKE_COUNT, OTHER_COUNT = 160, 240
ACCENTS = ("en-gb", "en-us", "en-gb-scotland", "en-gb-x-rp", "en-gb-x-gbclan", "en-gb-x-gbcwmd", "en-029")
VARIANTS = ("m1", "m2", "m3", "m4", "m5", "m6", "m7", "f1", "f2", "f3", "f4", "f5")
OTHERS = (
    "hey siri", "hey steven", "hay fever", "hey there", "hey", "zephyr", "the heifer", "set the timer",
    "never", "turn off the light", "what time is it", "a gentle wind", "play some music",
    "how is the weather today",
    "stop", "one two three four", "yes please", "no thank you", "hello computer", "they ever heard",
    "heavier", "good morning everyone", "the kettle is boiling", "open the window", "see you later",
    "say it again",
    "have a letter for her", "we left her there", "go left and right", "seven eleven", "is it better",
)  # fmt: skip
REPLAY = ("the weather is nice", "hey zephyr", "hey steven")
Sound = npt.NDArray[Any]


def speak(text: str, random: np.random.Generator) -> Sound:
    """A random voice, without the silence around it; the loudest sample is 1."""
    voice = f"{random.choice(ACCENTS)}+{random.choice(VARIANTS)}"
    speed, pitch = random.integers(135, 205), random.integers(25, 75)
    with tempfile.NamedTemporaryFile(suffix=".wav") as file:
        command = ["espeak-ng", "-v", voice, "-s", str(speed), "-p", str(pitch), "-w", file.name, text]
        subprocess.run(command, check=True)
        with wave.open(file.name, "rb") as stream:
            rate = stream.getframerate()
            sound = np.frombuffer(stream.readframes(stream.getnframes()), np.int16).astype(np.float64)
    sound = resample_poly(sound, RATE, rate)
    loud = np.flatnonzero(np.abs(sound) > 0.02 * np.abs(sound).max())
    sound = sound[loud[0] : loud[-1] + 1]
    return sound / np.abs(sound).max()


def noise(count: int, random: np.random.Generator) -> Sound:
    """White noise with a random slope of its spectrum."""
    spectrum = np.fft.rfft(random.normal(0, 1, count))
    spectrum *= np.maximum(np.arange(len(spectrum)), 20) ** -random.uniform(0, 1)
    sound = np.fft.irfft(spectrum, count)
    return sound / np.abs(sound).max()


def recording(text: str, random: np.random.Generator) -> Sound:
    """Speech in noise, at a random distance from the microphone."""
    loudness = 10 ** random.uniform(3.3, 4.3)
    quiet = loudness * 10 ** random.uniform(-2.5, -1.0)
    before, after = int(BEFORE * RATE), int(AFTER * RATE)
    speech = np.pad(loudness * speak(text, random), (before, after))
    return speech + quiet * noise(len(speech), random)


def save(path: Path, sound: Sound) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with wave.open(str(path), "wb") as stream:
        stream.setnchannels(1)
        stream.setsampwidth(2)
        stream.setframerate(RATE)
        stream.writeframes(np.clip(np.round(sound), -32768, 32767).astype("<i2").tobytes())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", nargs="?", type=Path, default=HERE / "recordings")
    parser.add_argument("--word", default=WORD, help=f"the wake word (default: {WORD})")
    args = parser.parse_args()
    others = [text for text in OTHERS if text != args.word]
    if args.word != WORD:
        others.append(WORD)
    random = np.random.default_rng(3)
    for number in range(WAKE_COUNT):
        save(args.folder / "wake" / f"{number:03}.wav", recording(args.word, random))
    for number in range(OTHER_COUNT):
        save(args.folder / "other" / f"{number:03}.wav", recording(others[number % len(others)], random))
    print(f"{WAKE_COUNT + OTHER_COUNT} recordings -> {args.folder}")
    random = np.random.default_rng(2024)
    replay = np.concatenate([recording(text, random) for text in REPLAY])
    save(HERE / "replay.wav", replay)
    print(f"{len(replay) / RATE:.2f} seconds -> replay.wav")


if __name__ == "__main__":
    main()
