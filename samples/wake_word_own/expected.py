# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Print what the application prints for replay.wav, computed in Python: ``python expected.py``."""

from __future__ import annotations

import numpy as np
from record import EXAMPLES, FRAME, HERE, RATE, ROWS, RUN, STEP, Heard, compiled, listen

BLOCK = RATE // 50


def main() -> None:
    from adpcm import load  # record.py has found the folder

    sound = load(HERE / "replay.wav")
    sound = sound[: len(sound) // BLOCK * BLOCK]
    runs = (len(sound) - FRAME + STEP) // STEP // ROWS
    print(f"wake_word: {RATE} samples a second, a run every {RUN}")
    print(f"say your word {EXAMPLES} times")
    examples = 0
    for heard in listen(compiled().adapt(), sound, EXAMPLES):
        end = heard.end if isinstance(heard, Heard) else heard
        time = f"{end // STEP // 100}.{end // STEP % 100:02} s"
        if not isinstance(heard, Heard):
            examples += 1
            print(f"{time}: example {examples}")
            continue
        tenths = int(heard.distance * np.float32(10))
        what = "your word" if heard.decision == 0 else "another one"
        print(f"{time}: {what}, distance {tenths // 10}.{tenths % 10}")
    print(f"the microphone has stopped: {len(sound)} samples, {runs} runs, 0 overruns")


if __name__ == "__main__":
    main()
