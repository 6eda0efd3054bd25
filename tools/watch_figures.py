# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Show how the figures of watched samples rise while accuracy falls, and write the tables of docs/watch.md.

``python -m tools.watch_figures [--only vibration|wake_word]``

The vibration sample feels a motor that turns at another speed; the wake word sample hears noise. Recordings
are synthesised as the samples do it; speech needs espeak-ng.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from types import ModuleType

from tools.environment import ROOT

sys.path.insert(0, str(ROOT / "plugin"))  # the compiler of this tree, whatever is installed

import numpy as np

import tinyml
from tinyml import features, harness
from tinyml.api.replaying import counter_of
from tinyml.ir import Array
from tinyml.watch.figures import Figures, figures

PAGE = ROOT / "docs" / "watch.md"
SPEEDS = (1.0, 1.1, 1.2, 1.35, 1.5, 1.75)
NOISES = (None, 20, 10, 5, 0, -5)
"""Decibels of the speech above the noise that is added."""

WORDS, OTHERS = 30, 30


def sample(name: str, module: str) -> ModuleType:
    """A script of a sample, as a module."""
    spec = importlib.util.spec_from_file_location(
        f"{name}_{module}", ROOT / "samples" / name / f"{module}.py"
    )
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = found  # dataclasses look for it
    spec.loader.exec_module(found)
    return found


class Watched:
    """A sample's model on this machine, compared with typical inputs."""

    def __init__(self, name: str, typical: Array, folder: Path, channels: bool = False) -> None:
        np.save(folder / f"{name}.npy", typical)
        self.compiled = tinyml.compile(
            ROOT / "samples" / name / "model.onnx",
            target="host",
            watch=True,
            watch_data=folder / f"{name}.npy",
            watch_channels=channels,
        )
        (self.input,) = self.compiled.built.graph.inputs
        (self.output,) = self.compiled.built.graph.outputs

    def run(self, recordings: Sequence[Array]) -> tuple[Figures, list[Array]]:
        """Figures of all recordings, and the outputs of each; every recording starts afresh."""
        starts = np.cumsum([0, *(len(rows) for rows in recordings)])
        tensor = self.compiled.built.graph.tensors[self.input]
        inputs = [{self.input: row.reshape(tensor.shape)} for rows in recordings for row in rows]
        ran = harness.run_files(self.compiled.files, "host", inputs, reset_before={*map(int, starts[:-1])})
        counter = counter_of(self.compiled)
        for seen, made in zip(inputs, ran.outputs, strict=True):
            counter.add(seen, made)
        outputs = np.stack([made[self.output].reshape(-1) for made in ran.outputs])
        parts = [outputs[a:b] for a, b in pairwise(starts)]
        return figures(counter.report()), parts


def vibration(folder: Path) -> list[str]:
    """A motor that turns faster than the healthy one that the model knows."""
    record, train = sample("vibration", "record"), sample("vibration", "train")

    def rows_of(samples: Array) -> Array:
        return features.compute(samples.astype(np.float32), **train.FRONTEND)

    def faster(samples: Array, speed: float) -> Array:
        times = np.arange(0, len(samples) - 1, speed)
        return np.stack([np.interp(times, np.arange(len(samples)), axis) for axis in samples.T], axis=1)

    random = np.random.default_rng(5)
    typical = np.concatenate([rows_of(record.recording("normal", 4, random)) for _ in range(20)])
    model = Watched("vibration", typical, folder, channels=True)
    states = [
        (state, record.recording(state, 8, random)) for state in ("normal", "bearing") for _ in range(8)
    ]
    lines = [
        "| speed | drift | largest drift of a feature | at the ends or outside | drift of the anomaly score "
        "| false alarms | accuracy |",
        "|---|---|---|---|---|---|---|",
    ]
    for speed in SPEEDS:
        recordings = [rows_of(faster(samples, speed)) for _, samples in states]
        healthy = [rows for rows, (state, _) in zip(recordings, states, strict=True) if state == "normal"]
        seen, _ = model.run(healthy)
        _, outputs = model.run(recordings)
        right = [
            (part[:, 0] > 0.5) == (state != "normal")
            for part, (state, _) in zip(outputs, states, strict=True)
        ]
        false = np.concatenate([part[:, 0] > 0.5 for part in outputs[: len(healthy)]])
        score = seen.outputs[0].drift  # type: ignore[union-attr]
        lines.append(
            f"| {speed:g} times | {seen.inputs[0].drift:.4f} | {seen.drift:.3f} | "
            f"{100 * seen.inputs[0].outside:.1f} % | {score:.3f} | "
            f"{100 * np.mean(false):.0f} % | {100 * np.mean(np.concatenate(right)):.0f} % |"
        )
    return lines


def wake_word(folder: Path) -> list[str]:
    """Speech with more and more noise."""
    record, train = sample("wake_word", "record"), sample("wake_word", "train")
    random = np.random.default_rng(9)
    texts = [(record.WORD, True)] * WORDS
    texts += [(record.OTHERS[i % len(record.OTHERS)], False) for i in range(OTHERS)]
    sounds = [(record.recording(text, random), wake) for text, wake in texts]

    def rows_of(sound: Array) -> Array:
        integers = np.clip(np.round(sound), -32768, 32767).astype("<i2")
        rows: Array = train.rows_of(integers.tobytes())
        whole = len(rows) // train.STRIDE * train.STRIDE
        return rows[:whole].reshape(-1, 1, train.STRIDE, rows.shape[1])

    others = [rows_of(record.recording(text, random)) for text in (*record.OTHERS, *[record.WORD] * 15)]
    model = Watched("wake_word", np.concatenate(others), folder)
    lines = [
        "| speech above noise | drift | score | margin | entropy | wake words heard | accuracy |",
        "|---|---|---|---|---|---|---|",
    ]
    for decibels in NOISES:
        recordings = []
        for sound, _ in sounds:
            loud = np.sqrt(np.mean(sound**2)) * 10 ** (-decibels / 20) if decibels is not None else 0.0
            recordings.append(rows_of(sound + loud * random.normal(0, 1, len(sound))))
        seen, outputs = model.run(recordings)
        heard = np.array([part[:, 1].max() > 0.5 for part in outputs])
        truth = np.array([wake for _, wake in sounds])
        decided = seen.decided
        assert decided is not None
        lines.append(
            f"| {'as recorded' if decibels is None else f'{decibels} dB'} | {seen.drift:.4f} | "
            f"{decided.top:.3f} | {decided.margin:.3f} | {decided.entropy:.3f} bits | "
            f"{100 * heard[truth].mean():.0f} % | {100 * (heard == truth).mean():.0f} % |"
        )
    return lines


TABLES = {"vibration": vibration, "wake_word": wake_word}


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", choices=TABLES, help="one of the tables")
    only = parser.parse_args(argv).only
    text = PAGE.read_text(encoding="utf-8")
    for name, table in TABLES.items():
        if only in (None, name):
            with tempfile.TemporaryDirectory(prefix="tinyml-") as folder:
                lines = table(Path(folder))
            print("\n".join(lines))
            start, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
            before, _, rest = text.partition(start)
            text = before + start + "\n".join(lines) + "\n" + end + rest.partition(end)[2]
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
