"""Published float models, made int8, compiled and run: as close to float as the guide states."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import pytest

from tinyml import harness
from tinyml.ir import Array, Shape
from tinyml.pipeline import Options, compile_model
from tinyml.quantize.engine import Quantized, quantize
from tinyml.quantize.measure import Noise
from tinyml.quantize.request import Request

pytest.importorskip("onnxruntime", reason="the quantiser is onnxruntime's")

GUIDE = Path(__file__).parents[2] / "docs" / "quantize.md"
ROW = re.compile(r"^\| `(\w+)` \| \w+ \| .* \| ([\d.]+) dB \|$", re.MULTILINE)
STATED = {name: float(decibels) for name, decibels in ROW.findall(GUIDE.read_text(encoding="utf-8"))}


@dataclass(frozen=True)
class Golden:
    """The samples that come with a published model."""

    path: Path
    names: list[str]
    samples: list[dict[str, Array]]
    outputs: list[list[Array]]

    @property
    def shapes(self) -> dict[str, Shape]:
        return {name: tuple(array.shape) for name, array in self.samples[0].items()}


def golden(folder: Path, name: str) -> Golden:
    (path,) = (p for p in folder.glob(f"{name}.*") if p.suffix in (".onnx", ".tflite"))
    with np.load(folder / f"{name}.npz", allow_pickle=False) as file:
        names = [str(item) for item in file["in_names"]]
        count = len(file["out_names"])
        endings = ["", *(f"_s{i}" for i in range(1, 4) if f"in0_s{i}" in file)]
        samples = [{n: file[f"in{i}{end}"] for i, n in enumerate(names)} for end in endings]
        outputs = [[file[f"out{i}{end}"] for i in range(count)] for end in endings]
    return Golden(path, names, samples, outputs)


def quantized(given: Golden, folder: Path) -> Quantized:
    data = {f"in{i}": np.stack([s[n] for s in given.samples]) for i, n in enumerate(given.names)}
    np.savez(folder / "calib.npz", allow_pickle=False, **data)
    shapes = given.shapes if given.path.suffix == ".onnx" else {}
    return quantize(given.path, Request(folder / "calib.npz", method="minmax"), shapes)


@pytest.mark.parametrize("name", STATED)
def test_published_model(name: str, models_folder: Path, tmp_path: Path) -> None:
    given = golden(models_folder, name)
    result = quantized(given, tmp_path)
    onnx.save(result.model, tmp_path / "int8.onnx")
    compiled = compile_model(tmp_path / "int8.onnx", Options("int8", "host"))
    inputs = dict(zip(compiled.graph.inputs, given.names, strict=True))
    samples = [{ours: sample[theirs] for ours, theirs in inputs.items()} for sample in given.samples]
    found = harness.run_files(compiled.files, "host", samples).outputs
    worst = []
    for index, output in enumerate(compiled.graph.outputs):
        noise = Noise()
        for wanted, answers in zip(given.outputs, found, strict=True):
            noise.add(wanted[index].reshape(-1), answers[output].reshape(-1))
        worst.append(noise.decibels)
    print(f"{name}: {min(worst):.1f} dB as C, {result.report.decibels:.1f} dB as ONNX")
    # Another integer kernel may move the figure a little; a worse one is a defect, a much better one news.
    assert STATED[name] - 1 <= min(worst) <= STATED[name] + 6


def test_every_float_model_is_stated(models_folder: Path) -> None:
    published = {path.stem for path in models_folder.glob("*_float.npz")}
    assert published == set(STATED)
