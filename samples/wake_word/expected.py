# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Print what the application prints for replay.wav, computed in Python: ``python expected.py``."""

from __future__ import annotations

import sys
import wave
from pathlib import Path

import numpy as np
import onnx

import tinyml
from tinyml import features

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "common"))

from decision import decide

RATE = 16000
STEP, FRAME = RATE // 100, RATE * 30 // 1000
BLOCK = RATE // 50
SCALE = np.float32(0.0390625)  # of the front end's features


def main() -> None:
    with wave.open(str(HERE / "replay.wav"), "rb") as stream:
        sound = np.frombuffer(stream.readframes(stream.getnframes()), np.int16)
    sound = sound[: len(sound) // BLOCK * BLOCK]
    rows = features.compute(sound, "micro", step_ms=10).astype(np.float32) * SCALE
    shape = onnx.load(HERE / "model.onnx").graph.input[0].type.tensor_type.shape
    count = shape.dim[2].dim_value  # rows of a run
    inputs = rows[: len(rows) // count * count].reshape(-1, 1, count, rows.shape[1])
    scores = tinyml.run(HERE / "model.onnx", inputs)["scores"]
    print(f"wake_word: {RATE} samples a second, a run every {count * STEP}")
    for found in decide(
        scores,
        average=4,
        on=0.8,
        off=0.4,
        hold_off=RATE // (count * STEP),
        ignored=range(scores.shape[1] - 1),
    ):
        samples = FRAME + ((found.run + 1) * count - 1) * STEP
        print(f"{samples // STEP / 100:.2f} s: wake word ({found.percent} %), LED on")
    print(f"the microphone has stopped: {len(sound)} samples, {len(inputs)} runs, 0 overruns")


if __name__ == "__main__":
    main()
