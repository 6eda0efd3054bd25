# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Commands that share an empty cache, some of them killed: python -m tools.cache_races --rounds 8 --seed 1

In each round, several commands quantise and run the same models at once, and one of them is killed without
warning. A command that ends by itself must print what one alone prints, and so must the last one.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

DIGITS = Path(__file__).parents[1] / "samples" / "digits"
TOGETHER = 3
SECONDS = 600.0


def started(words: list[str], cache: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    return subprocess.Popen(
        [sys.executable, "-m", "tinyml", *words],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def ended(command: subprocess.Popen[str]) -> str:
    said, _ = command.communicate(timeout=SECONDS)
    return f"{command.returncode}\n{said}"


def race(folder: Path, rounds: int, seed: int) -> int:
    """How many commands printed something else than one alone."""
    rng = random.Random(seed)
    samples = folder / "calibration.npy"
    np.save(samples, np.random.default_rng(seed).random((20, 1, 8, 8), np.float32))
    float_model, int8_model = str(DIGITS / "model_float.onnx"), str(DIGITS / "model.onnx")
    commands = [["run", int8_model], ["run", float_model, "--quantize", str(samples)], ["run", float_model]]
    alone = [ended(started(words, folder / "alone")) for words in commands]
    wrong = killed = 0
    for number in range(rounds):
        cache = folder / ("shared" if rng.random() < 0.6 else f"empty{number}")
        chosen = [rng.randrange(len(commands)) for _ in range(TOGETHER)]
        running = [started(commands[index], cache) for index in chosen]
        time.sleep(rng.uniform(0, 6))
        victim = running[0]
        if victim.poll() is None:
            os.killpg(victim.pid, signal.SIGKILL)
            killed += 1
        said = [ended(command) for command in running]
        for index, command, text in zip(chosen, running, said, strict=True):
            if command.returncode != -signal.SIGKILL and text != alone[index]:
                wrong += 1
                print(f"round {number}: {' '.join(commands[index])}: {text}", flush=True)
        last = rng.randrange(len(commands))
        if (text := ended(started(commands[last], cache))) != alone[last]:
            wrong += 1
            print(f"round {number}, afterwards: {' '.join(commands[last])}: {text}", flush=True)
    print(f"seed {seed}: {rounds} rounds of {TOGETHER}, {killed} killed, {wrong} wrong")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=8, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=1, help="another seed, other commands and moments")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tinyml-caches-") as folder:
        return 1 if race(Path(folder), args.rounds, args.seed) else 0


if __name__ == "__main__":
    sys.exit(main())
