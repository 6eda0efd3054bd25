# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Write the table of published models in docs/quantize.md: quantise, compile, run, compare with float.

``python -m tools.quantized_models`` measures all models in the folder ``TINYML_MODELS``; a test measures them
again and compares.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx

from tools.environment import ROOT

sys.path.insert(0, str(ROOT / "plugin"))  # the compiler of this tree, whatever is installed

from tinyml import harness
from tinyml.ir import Array, Shape
from tinyml.pipeline import Options, compile_model
from tinyml.quantize.engine import quantize
from tinyml.quantize.measure import Noise
from tinyml.settings.quantize_request import Request

PAGE = ROOT / "docs" / "quantize.md"
HEAD = "| Model | Format | What it is | Constants, bytes | Outputs |"
WHAT = {
    "alibaba_ic_float": "image classifier with inverted residuals",
    "deeploy_ae1d_float": "1-D autoencoder",
    "deeploy_tinyvit_float": "vision transformer",
    "espdl_stream_float": "1-D streaming convolutions",
    "mlonmcu_magicwand_float": "gestures from an accelerometer",
    "mlonmcu_textclass_float": "text classifier with an embedding",
    "oww_computer_float": "wake word",
    "pose_gru_float": "pose classifier, two GRUs",
    "st_yamnet256_float": "sound events",
    "tinyodom_tcn_float": "odometry by dilated convolutions",
    "tract_bidilstm_float": "bidirectional LSTM",
    "yunet_s_float": "face detector; random noise has no faces, its outputs are near zero",
}
ROW = re.compile(r"^\| `(\w+)` \| \w+ \| .* \| ([\d,]+) → ([\d,]+) \| (-?[\d.]+) dB \|$", re.MULTILINE)


@dataclass(frozen=True)
class Golden:
    """The samples that come with a published model, and the float model's outputs."""

    path: Path
    names: list[str]
    samples: list[dict[str, Array]]
    outputs: list[list[Array]]

    @property
    def shapes(self) -> dict[str, Shape]:
        return {name: tuple(array.shape) for name, array in self.samples[0].items()}


@dataclass(frozen=True)
class Measured:
    """What int8 saves and costs: constants in flash, and the signal-to-noise ratio of the worst output."""

    float_bytes: int
    int8_bytes: int
    decibels: float


def golden(folder: Path, name: str) -> Golden:
    (path,) = (p for p in folder.glob(f"{name}.*") if p.suffix in (".onnx", ".tflite"))
    with np.load(folder / f"{name}.npz", allow_pickle=False) as file:
        names = [str(item) for item in file["in_names"]]
        count = len(file["out_names"])
        endings = ["", *(f"_s{i}" for i in range(1, 4) if f"in0_s{i}" in file)]
        samples = [{n: file[f"in{i}{end}"] for i, n in enumerate(names)} for end in endings]
        outputs = [[file[f"out{i}{end}"] for i in range(count)] for end in endings]
    return Golden(path, names, samples, outputs)


def measure(given: Golden, folder: Path) -> Measured:
    """Quantise a model on its own samples, and run its C on them; the files go into ``folder``."""
    data = {f"in{i}": np.stack([s[n] for s in given.samples]) for i, n in enumerate(given.names)}
    np.savez(folder / "calib.npz", allow_pickle=False, **data)
    shapes = given.shapes if given.path.suffix == ".onnx" else {}
    result = quantize(given.path, Request(folder / "calib.npz", method="minmax"), shapes)
    plain = compile_model(given.path, Options("plain", "host", shapes=shapes))
    onnx.save(result.model, folder / "int8.onnx")
    compiled = compile_model(folder / "int8.onnx", Options("int8", "host"))
    inputs = dict(zip(compiled.graph.inputs, given.names, strict=True))
    samples = [{ours: sample[theirs] for ours, theirs in inputs.items()} for sample in given.samples]
    found = harness.run_files(compiled.files, "host", samples).outputs
    worst = []
    for index, output in enumerate(compiled.graph.outputs):
        noise = Noise()
        for wanted, answers in zip(given.outputs, found, strict=True):
            noise.add(wanted[index].reshape(-1), answers[output].reshape(-1))
        worst.append(noise.decibels)
    before, after = (made.summary["weights_bytes"] for made in (plain, compiled))
    return Measured(before, after, min(worst))


def stated() -> dict[str, Measured]:
    """The rows of the page."""
    rows = ROW.findall(PAGE.read_text(encoding="utf-8"))
    return {
        name: Measured(int(before.replace(",", "")), int(after.replace(",", "")), float(decibels))
        for name, before, after, decibels in rows
    }


def row(name: str, kind: str, found: Measured) -> str:
    sizes = f"{found.float_bytes:,} → {found.int8_bytes:,}"
    return f"| `{name}` | {kind} | {WHAT[name]} | {sizes} | {found.decibels:.1f} dB |"


def main() -> int:
    named = os.environ.get("TINYML_MODELS")
    folder = Path(named) if named else ROOT.parent / "shared" / "models"
    rows = []
    for name in WHAT:
        given = golden(folder, name)
        with tempfile.TemporaryDirectory() as scratch:
            found = measure(given, Path(scratch))
        rows.append(row(name, "ONNX" if given.path.suffix == ".onnx" else "TFLite", found))
        print(rows[-1], flush=True)
    text = PAGE.read_text(encoding="utf-8")
    start = text.index("| Model | Format |")
    end = re.compile(r"(?m)^(?!\|)|\Z").search(text, start)
    assert end is not None
    table = "\n".join([HEAD, "| --- | --- | --- | --- | --- |", *rows]) + "\n"
    PAGE.write_text(text[:start] + table + text[end.start() :], encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
