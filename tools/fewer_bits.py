# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Accuracy over bytes: the samples with int8, mixed and int4 weights, on test sets that no step has seen.

``python -m tools.fewer_bits [FOLDER [SAMPLE ..]]`` records and trains the samples in FOLDER (default: a
temporary one), quantises each in three ways, runs the compiled models on this computer, and writes the table
in docs/fewer_bits.md and the picture docs/figures/fewer_bits.svg. Speech is synthesised by espeak-ng.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np

from tools.environment import ROOT
from tools.figures import FOLDER as FIGURES
from tools.figures import svg, text

sys.path.insert(0, str(ROOT / "plugin"))  # the compiler of this tree, whatever is installed

import tinyml
from tinyml import harness
from tinyml.api.choices import Weights
from tinyml.ir import Array
from tinyml.pipeline import Options, compile_model

PAGE = ROOT / "docs" / "fewer_bits.md"
HEAD = "| Sample | Weights | Bytes of weights | Layers with four bits | Right, of the test set |"
ROW = re.compile(
    r"^\| (?:([\w ]+) \(([\d,]+) samples\))? ?"
    r"\| (int8|mixed|int4) \| ([\d,]+) \| (\d*) ?\| ([\d.]+) % \|$",
    re.MULTILINE,
)
WAYS: tuple[Weights, ...] = ("int8", "mixed", "int4")
NEEDED = ("common", "gesture", "vibration", "wake_word")
CALIBRATION = 400  # samples
TARGET = "cortex-m4"


@dataclass(frozen=True)
class Task:
    """A float model, data to calibrate it with, and a test set: sequences whose last run decides."""

    model: Path
    calibration: dict[str, Array]
    test: Array  # (sequences, runs, ...)
    labels: Array
    max_loss: str = "1"


@dataclass(frozen=True)
class Row:
    sample: str
    way: str
    weight_bytes: int
    layers: int
    right: float
    tested: int


def digits(folder: Path) -> Task:
    from sklearn.datasets import load_digits

    data = load_digits()
    images, held_back = (data.images / 16).astype(np.float32)[:, None], np.arange(len(data.images)) % 5 == 0
    known = {"image": images[~held_back][:CALIBRATION], "labels": data.target[~held_back][:CALIBRATION]}
    return Task(
        ROOT / "samples" / "digits" / "model_float.onnx",
        known,
        images[held_back][:, None],
        data.target[held_back],
    )


def gesture(folder: Path) -> Task:
    train = _trained(folder, "gesture", "model_float.onnx")
    inputs, labels, held_back = train.load(folder / "gesture" / "recordings")
    some = np.flatnonzero(~held_back)[:: max(1, int((~held_back).sum()) // CALIBRATION)]
    known = {"in0": inputs[some].astype(np.float32), "labels": labels[some]}
    return Task(
        folder / "gesture" / "model_float.onnx",
        known,
        inputs[held_back][:, None].astype(np.float32),
        labels[held_back],
    )


def vibration(folder: Path) -> Task:
    """Healthy recordings to calibrate; held-back ones and all faults to test. Above 0.5 is a fault."""
    train = _trained(folder, "vibration", "model.onnx")
    rows: dict[bool, list[Array]] = {False: [], True: []}
    known: list[Array] = []
    recordings = folder / "vibration" / "recordings"
    for number, path in enumerate(sorted((recordings / "normal").glob("*.csv"))):
        (known if number % 5 else rows[False]).append(train.rows_of(path))
    faults = [path for path in sorted(recordings.glob("*/*.csv")) if path.parent.name != "normal"]
    for number, path in enumerate(faults):
        (known if number % 5 else rows[True]).append(train.rows_of(path))
    healthy, faulty = (np.concatenate(rows[fault]).astype(np.float32) for fault in (False, True))
    seen = np.concatenate(known).astype(np.float32)
    test = np.concatenate([healthy, faulty])
    labels = np.repeat([0, 1], [len(healthy), len(faulty)])
    some = seen[:: max(1, len(seen) // CALIBRATION)]
    return Task(folder / "vibration" / "model.onnx", {"in0": some}, test[:, None], labels)


def wake_word(folder: Path) -> Task:
    """Windows as the stream brings them: three rows a run, from an empty state."""
    train = _trained(folder, "wake_word", "model_float.onnx")
    windows, labels, held_back = train.load(folder / "wake_word" / "recordings")
    padded = np.pad(windows[:, 0], ((0, 0), (1, 0), (0, 0)))
    runs = padded.reshape(len(padded), -1, 1, train.STRIDE, padded.shape[-1]).astype(np.float32)
    places = np.flatnonzero(~held_back)
    some = places[:: max(1, len(places) // (CALIBRATION // runs.shape[1]))]
    return Task(
        folder / "wake_word" / "model_float.onnx", {"in0": runs[some]}, runs[held_back], labels[held_back]
    )


TASKS: dict[str, Callable[[Path], Task]] = {
    "digits": digits,
    "gesture": gesture,
    "vibration": vibration,
    "wake_word": wake_word,
}


def _trained(folder: Path, sample: str, model: str) -> ModuleType:
    """Record and train a sample, unless FOLDER has that already; returns its train.py."""
    here = folder / sample
    if not (here / "recordings").is_dir():
        subprocess.run([sys.executable, "record.py"], cwd=here, check=True)
        subprocess.run([sys.executable, "train.py"], cwd=here, check=True)
    spec = importlib.util.spec_from_file_location(f"{sample}_train", here / "train.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (here / model).is_file()
    return module


def measure(name: str, task: Task) -> list[Row]:
    rows = []
    for way in WAYS:
        limit = task.max_loss if way == "mixed" else None
        made = tinyml.quantize(task.model, task.calibration, weights=way, max_loss=limit)
        with tempfile.TemporaryDirectory(prefix="tinyml-") as scratch:
            path = Path(scratch, "model.onnx")
            made.save(path)
            right = _right(path, task)
        variants = {variant.name: variant for variant in made.report.variants}
        if not variants:  # int8 has nothing to compare with; mixed knows its bytes
            rows.append(Row(name, way, 0, 0, right, len(task.labels)))
            continue
        chosen, plain = variants[way], variants["int8"]
        rows[0] = Row(name, "int8", plain.weight_bytes, 0, rows[0].right, len(task.labels))
        rows.append(Row(name, way, chosen.weight_bytes, chosen.int4_layers, right, len(task.labels)))
    return rows


def _right(path: Path, task: Task) -> float:
    """The share of sequences whose last decision is right, by the compiled model."""
    compiled = compile_model(path, Options("model", "host"))
    (name,) = compiled.graph.inputs
    shape = compiled.graph.tensors[name].shape
    samples = [{name: run.reshape(shape)} for sequence in task.test for run in sequence]
    length = task.test.shape[1]
    result = harness.run_files(
        compiled.files, "host", samples, reset_before=range(0, len(samples), length), timeout_seconds=900
    )
    last = [next(iter(found.values())).reshape(-1) for found in result.outputs[length - 1 :: length]]
    decided = [int(scores.argmax()) if scores.size > 1 else int(scores[0] > 0.5) for scores in last]
    return float(np.mean(np.array(decided) == task.labels))


def table(rows: list[Row]) -> str:
    lines = [HEAD, "| --- | --- | --- | --- | --- |"]
    for row in rows:
        sample = f"{row.sample.replace('_', ' ')} ({row.tested:,} samples)" if row.way == "int8" else ""
        layers = str(row.layers) if row.layers else ""
        lines.append(f"| {sample} | {row.way} | {row.weight_bytes:,} | {layers} | {100 * row.right:.2f} % |")
    return "\n".join(lines) + "\n"


def stated(page: str) -> list[Row]:
    """The rows that the page has."""
    found, sample, tested = [], "", 0
    for match in ROW.finditer(page):
        if match[1]:
            sample, tested = match[1].replace(" ", "_"), int(match[2].replace(",", ""))
        size, right = int(match[4].replace(",", "")), float(match[6]) / 100
        found.append(Row(sample, match[3], size, int(match[5] or 0), right, tested))
    return found


WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 680, 320, 60, 30, 60
KINDS = {"int8": "e", "mixed": "a", "int4": "c"}


def picture(rows: list[Row]) -> str:
    """Accuracy over bytes, one line for each sample."""
    sizes, rights = [row.weight_bytes for row in rows], [100 * row.right for row in rows]
    low = float(np.floor(min(rights) - 0.5))
    widest = max(sizes)

    def at(row: Row) -> tuple[float, float]:
        x = LEFT + (WIDTH - LEFT - 150) * row.weight_bytes / widest
        return x, TOP + (HEIGHT - TOP - BOTTOM) * (100 - 100 * row.right) / (100 - low)

    parts = []
    for share in range(int(low), 101, max(1, round((100 - low) / 5))):
        y = TOP + (HEIGHT - TOP - BOTTOM) * (100 - share) / (100 - low)
        parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - 130}" class="line"/>')
        parts.append(text(LEFT - 8, y + 4, f"{share} %", "soft", "end"))
    step = 10 ** int(np.log10(widest))
    for size in range(0, widest + 1, max(step // 2, 1)):
        x = LEFT + (WIDTH - LEFT - 150) * size / widest
        parts.append(text(x, HEIGHT - BOTTOM + 18, f"{size:,}", "soft", "middle"))
    parts.append(text(LEFT, HEIGHT - BOTTOM + 40, "bytes of weights in flash", "soft"))
    parts.append(text(LEFT - 45, 16, "right decisions on the test set", "soft"))
    for sample in dict.fromkeys(row.sample for row in rows):
        own = [row for row in rows if row.sample == sample]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in map(at, own))
        parts.append(f'<path d="M{path}" class="edge"/>')
        x, y = at(own[0])
        parts.append(text(x + 10, y + 4, sample.replace("_", " ")))
        for row in own:
            x, y = at(row)
            title = f"{sample}, {row.way}: {row.weight_bytes:,} bytes, {100 * row.right:.2f} %"
            dot = f'cx="{x:.1f}" cy="{y:.1f}" r="6" class="{KINDS[row.way]}"'
            parts.append(f"<circle {dot}><title>{title}</title></circle>")
    for number, (way, kind) in enumerate(KINDS.items()):
        x = WIDTH - 240 + 80 * number
        parts.append(f'<circle cx="{x}" cy="{HEIGHT - BOTTOM + 36}" r="6" class="{kind}"/>')
        parts.append(text(x + 12, HEIGHT - BOTTOM + 40, way))
    return svg(WIDTH, HEIGHT, "Accuracy of the samples over the bytes of their weights", parts)


def replaced(page: str, new: str) -> str:
    start = page.index(HEAD)
    end = page.index("\n\n", start) + 1
    return page[:start] + new + page[end:]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", type=Path, help="where samples are recorded and trained")
    parser.add_argument("samples", nargs="*", metavar="SAMPLE", help=f"only these: {', '.join(TASKS)}")
    args = parser.parse_args()
    if unknown := [name for name in args.samples if name not in TASKS]:
        parser.error(f"there is no sample {unknown[0]!r}; one of: {', '.join(TASKS)}")
    with tempfile.TemporaryDirectory(prefix="tinyml-") as scratch:
        folder = args.folder or Path(scratch)
        for part in NEEDED:
            if not (folder / part).is_dir():
                shutil.copytree(ROOT / "samples" / part, folder / part)
        for name in args.samples or TASKS:
            rows = measure(name, TASKS[name](folder))
            print(table(rows), flush=True)
            write(name, rows)
    return 0


def write(name: str, rows: list[Row]) -> None:
    """Replace the rows of one sample; those of the others stay."""
    page = PAGE.read_text(encoding="utf-8")
    others = {sample: [row for row in stated(page) if row.sample == sample] for sample in TASKS}
    every = [row for sample in TASKS for row in (rows if sample == name else others[sample])]
    PAGE.write_text(replaced(page, table(every)), encoding="utf-8")
    (FIGURES / "fewer_bits.svg").write_text(picture(every), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
