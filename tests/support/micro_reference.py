# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Features by pymicro-features, TensorFlow's own front end as a Python package; and how they were recorded.

``python -m tests.support.micro_reference`` writes tests/features/micro.npz: speech by espeak-ng and noise,
with the features of both, so that tests work without either program. The package was built without fused
multiply-add (CFLAGS=-ffp-contract=off), as its wheel for x86_64 is.
"""

from __future__ import annotations

import subprocess
import tempfile
import wave
from pathlib import Path

import numpy as np

from tinyml.ir import Array

RECORDED = Path(__file__).parents[1] / "features" / "micro.npz"
SCALE = 0.0390625
CHUNK = 160


def reference(samples: Array) -> Array:
    """Rows of features, as whole numbers."""
    from pymicro_features import MicroFrontend

    frontend = MicroFrontend()
    content = np.asarray(samples, "<i2").tobytes()
    rows, start = [], 0
    while start + 2 * CHUNK <= len(content):
        result = frontend.process_samples(content[start : start + 2 * CHUNK])
        start += 2 * int(result.samples_read)
        if result.features:
            rows.append(result.features)
    return np.rint(np.array(rows) / SCALE).astype(np.uint16)


def speech(text: str) -> Array:
    """A synthetic voice at 16 kHz."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/voice.wav"
        subprocess.run(["espeak-ng", "-v", "en", "-s", "150", "-w", path, text], check=True)
        with wave.open(path, "rb") as file:
            rate = file.getframerate()
            voice = np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float64)
    places = np.arange(int(len(voice) * 16000 / rate)) * rate / 16000
    return np.rint(np.interp(places, np.arange(len(voice)), voice)).astype(np.int16)


def main() -> None:
    generator = np.random.default_rng(7)
    loud, quiet = generator.integers(-32768, 32768, 4000), generator.integers(-200, 201, 4000)
    sounds = {
        "speech": speech("hey jarvis, stop the music")[:24000],
        "noise": np.concatenate([loud, quiet, np.zeros(1600)]).astype(np.int16),
    }
    rows = {f"{name}_features": reference(sound) for name, sound in sounds.items()}
    np.savez_compressed(RECORDED, **sounds, **rows)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
