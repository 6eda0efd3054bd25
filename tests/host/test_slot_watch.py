# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A device that watches the model in its slot, keeps a good one by itself and gives up a bad one."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import tinyml
from tests.support.programs import build_program
from tests.support.quantizing import FLOAT, digits
from tinyml.harness.program_build import RUNTIME_C, SANITIZERS, WARNINGS
from tinyml.ir import Array
from tinyml.pipeline import Options
from tinyml.player.table import sources, table
from tinyml.slots.data_pack import pack_data
from tinyml.slots.data_reading import read_data
from tinyml.slots.families import PLAIN
from tinyml.slots.version import Version
from tinyml.verbs.cli import main
from tinyml.watch.figures import ClassFigures

MAIN = Path(__file__).parents[1] / "support" / "slot_watch_main.c"
RUNS = 120


@dataclass(frozen=True)
class Device:
    program: Path
    samples: Path

    def run(
        self, margin: int, *images: Path, drift: int | None = None, samples: Path | None = None
    ) -> list[str]:
        seen = samples or self.samples
        command: list[str | Path] = [self.program, seen, str(margin), str(RUNS), *images]
        more = {} if drift is None else {"DRIFT": str(drift)}
        done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, **more})
        return done.stdout.splitlines()


def packed(model: Path, version: int, folder: Path) -> Path:
    pack, _ = pack_data(model, Options(name="digits"), (PLAIN,), Version(version))
    path = folder / f"{model.stem}_{version}.bin"
    path.write_bytes(pack.images["plain"])
    return path


def flattened(folder: Path) -> Path:
    """The model with logits so close that it still decides, but is sure of nothing."""
    model = onnx.load(FLOAT)
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    layers = [node for node in model.graph.node if any(name in constants for name in node.input)]
    for name in layers[-1].input[1:]:
        small = numpy_helper.to_array(constants[name]) * np.float32(0.02)
        constants[name].CopyFrom(numpy_helper.from_array(small.astype(np.float32), name))
    onnx.save(model, folder / "flat.onnx")
    return folder / "flat.onnx"


@pytest.fixture(scope="module")
def images() -> Array:
    pictures, _, held_back = digits()
    return np.asarray(pictures[held_back][:RUNS].astype(np.float32))


@pytest.fixture(scope="module")
def packs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("packs")
    flat = flattened(folder)
    return {
        "good 1": packed(FLOAT, 1, folder),
        "flat 2": packed(flat, 2, folder),
        "good 3": packed(FLOAT, 3, folder),
    }


def write_reference(folder: Path) -> None:
    """Of the images that are not held back."""
    pictures, _, held_back = digits()
    np.savez(folder / "typical.npz", image=np.delete(pictures, held_back, axis=0).astype(np.float32))
    shutil.copy(FLOAT, folder / "digits.onnx")
    words = [str(folder / "digits.onnx"), "--reference", str(folder / "reference.h")]
    assert main(["watch", *words, "--watch-data", str(folder / "typical.npz")]) == 0


@pytest.fixture(scope="module")
def device(packs: dict[str, Path], images: Array, tmp_path_factory: pytest.TempPathFactory) -> Device:
    folder = tmp_path_factory.mktemp("device")
    kernels = read_data(packs["good 1"].read_bytes()).kernels  # all have the same layers
    (folder / "table.c").write_text(table(kernels))
    write_reference(folder)
    own = {"player/slot_player.c", "watch/slot_watch.c", "watch/watch.c", "watch/drift.c"}
    slot = ("slot", "slots", "update", "marks", "flash", "crc32", "sync")
    names = {*sources(kernels), *own, *(f"slot/{name}.c" for name in slot)}
    files = [MAIN, folder / "table.c", *(RUNTIME_C / name for name in sorted(names))]
    includes = (folder, RUNTIME_C, RUNTIME_C / "include")
    build_program(folder / "program", files, ("-std=c11", "-O1", *SANITIZERS, *WARNINGS), includes)
    (folder / "samples.bin").write_bytes(images.tobytes())
    return Device(folder / "program", folder / "samples.bin")


def test_a_good_model_is_kept_and_a_flat_one_given_up(device: Device, packs: dict[str, Path]) -> None:
    said = device.run(77, *packs.values())
    assert said[0] == "start -20"
    assert said[1] == "without a model -20"
    verdicts = [line for line in said if line.startswith("verdict")]
    assert verdicts == [
        f"verdict 1 after {RUNS} runs, version 1",
        f"verdict 2 after {RUNS} runs, version 1",  # back to what was in use
        f"verdict 1 after {RUNS} runs, version 3",
    ]
    assert said[-1] == "after 0 3"


def test_without_a_model_before_there_is_none_after(device: Device, packs: dict[str, Path]) -> None:
    said = device.run(77, packs["flat 2"])
    assert [line for line in said if line.startswith("verdict")] == [
        f"verdict 2 after {RUNS} runs, version 0"
    ]
    assert said[-1] == "after 0 3"


def test_without_limits_every_model_is_kept(device: Device, packs: dict[str, Path]) -> None:
    said = device.run(0, packs["good 1"], packs["flat 2"])
    assert [line.split(" after ")[0] for line in said if line.startswith("verdict")] == ["verdict 1"] * 2


def test_the_firmware_counts_what_a_watched_model_counts(
    device: Device, packs: dict[str, Path], images: Array, tmp_path: Path
) -> None:
    """A compiled-in model knows whether its outputs are scores; the firmware finds out."""
    np.savez(tmp_path / "data.npz", image=images)
    (period,) = tinyml.replay(FLOAT, tmp_path / "data.npz", period=RUNS)
    decided = period.decided
    assert isinstance(decided, ClassFigures)
    (line,) = (line for line in device.run(77, packs["good 1"]) if line.startswith("counted"))
    totals, decisions = line.removeprefix("counted ").split(":")
    runs, top, margin, entropy, switches = map(int, totals.split())
    assert (runs, switches) == (RUNS, decided.switches)
    assert [int(word) for word in decisions.split()] == list(decided.decisions)
    assert top / runs / 256 == pytest.approx(decided.top)
    assert margin / runs / 256 == pytest.approx(decided.margin)
    assert entropy / runs / 32 == pytest.approx(decided.entropy)


def test_drift_from_what_the_firmware_expects(
    device: Device, packs: dict[str, Path], images: Array, tmp_path: Path
) -> None:
    """A device that sees something else than its models were made for keeps no new one."""
    (tmp_path / "dark.bin").write_bytes((images * np.float32(0.3)).tobytes())

    def verdict(drift: int, samples: Path | None = None) -> str:
        said = device.run(0, packs["good 1"], drift=drift, samples=samples)
        (line,) = (line for line in said if line.startswith("verdict"))
        return line.split(" after ")[0]

    assert verdict(200) == "verdict 1"
    assert verdict(200, tmp_path / "dark.bin") == "verdict 2"
    assert verdict(9000, tmp_path / "dark.bin") == "verdict 1"


def test_a_reference_needs_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", str(FLOAT), "--reference", str(tmp_path / "r.h")]) == 1
    assert "there is no reference for the first input" in " ".join(capsys.readouterr().err.split())
    assert main(["watch", "--reference", str(tmp_path / "r.h")]) == 1
    assert "--reference needs the model file" in capsys.readouterr().err
    assert not (tmp_path / "r.h").exists()
