# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`bench` and `report` of packs without code, and one pack on all cores."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tinyml.datasets.generated_samples import generated
from tinyml.harness.run import run_files
from tinyml.pipeline import Options, compile_model
from tinyml.slots.playing import played_on
from tinyml.verbs.cli import main

SAMPLES = Path(__file__).parents[2] / "samples"
DIGITS = SAMPLES / "digits" / "model.onnx"
MACHINE = "qemu-cortex-m4"


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pack") / "digits.tmodel"
    assert main(["pack", str(DIGITS), "--data", "--for", "all", "--version", "3", "-o", str(path)]) == 0
    return path


@pytest.mark.parametrize(
    "machine", ["qemu-cortex-m0", "qemu-cortex-m3", MACHINE, "qemu-cortex-m7", "qemu-cortex-m55"]
)
def test_one_pack_on_every_cortex_m(pack: Path, machine: str) -> None:
    check_outputs(pack, machine)


@pytest.mark.parametrize("machine", ["qemu-riscv32", "qemu-riscv32-zve32x"])
def test_one_pack_on_risc_v(pack: Path, machine: str) -> None:
    check_outputs(pack, machine)


def check_outputs(pack: Path, machine: str) -> None:
    """The same file, the same samples: outputs are those of compiled code on the host, in every bit."""
    compiled = compile_model(DIGITS, Options(target="host", kernels="portable"))
    samples = generated(compiled.graph, 4)
    ours = played_on(pack, machine).run(samples).outputs
    for played, expected in zip(ours, run_files(compiled.files, "host", samples).outputs, strict=True):
        assert played.keys() == expected.keys()
        for name, values in expected.items():
            np.testing.assert_array_equal(played[name], values)


def test_bench_beside_the_model(pack: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One group: the file by which known models are found is that of the model."""
    record = tmp_path / "record.json"
    words = ["bench", str(DIGITS), str(pack), "--kernels", "portable", "--on", MACHINE, "--json", str(record)]
    assert main(words) == 0
    compiled, played = json.loads(record.read_text())["rows"]
    assert (compiled["kernels"], played["kernels"]) == ("portable", "played")
    assert played["sha256"] == compiled["sha256"]
    assert played["output"] == compiled["output"]
    assert played["arena_bytes"] == compiled["arena_bytes"]
    assert played["constants_bytes"] > compiled["constants_bytes"]
    image = len(played_on(pack, MACHINE).content)
    assert image <= played["constants_bytes"] < image + 512
    assert played["kernels_bytes"] > compiled["kernels_bytes"]
    assert main([*words[:-2], "--against", str(record)]) == 0
    assert "nothing changed" in capsys.readouterr().out


def test_what_bench_does_not_do_with_packs(pack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["bench", str(pack), "--on"]
    assert main([*words, "host"]) == 1
    assert "does not count instructions" in capsys.readouterr().out
    assert main([*words, MACHINE, "--optimize", "size"]) == 1
    assert "were chosen when it was made" in capsys.readouterr().out


def test_report_of_a_pack_alone(pack: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "report.json"
    assert main(["report", str(pack), "--on", MACHINE, "--json", str(file)]) == 0
    said = capsys.readouterr().out
    assert "image for the family dsp" in said
    report = json.loads(file.read_text())
    assert report["bytes"] == len(played_on(pack, MACHINE).content)
    profile = played_on(pack, MACHINE).profile(generated(played_on(pack, MACHINE).graph(), 1)).layers
    assert profile is not None
    assert [layer["layer"] for layer in report["layers"]] == sorted(profile)
    spent = sum(layer["instructions"] for layer in report["layers"])
    assert spent == pytest.approx(report["cost"]["instructions"], rel=0.01)
    assert main(["report", str(pack), "--target", "cortex-m0", "--ram", "1k"]) == 1
    said = capsys.readouterr().out
    assert "family arm" in said
    assert "over budget: RAM" in said
    assert "try: tinyml report MODEL" in said


def test_report_with_the_model(pack: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Names, shapes and passes of the model; kernels and costs of the pack."""
    file, page = tmp_path / "report.json", tmp_path / "report.html"
    words = ["report", str(pack), "--of", str(DIGITS), "--on", MACHINE]
    assert main([*words, "--json", str(file), "--html", str(page)]) == 0
    report = json.loads(file.read_text())
    kernels = {layer["label"]: layer["kernel"] for layer in report["layers"]}
    assert kernels["max_pool"] == "tinyml_play_max_pool_s8"
    assert report["kernels"] == "played"
    assert report["measured"]["instructions"] > 0
    assert report["measured"]["stack_bytes"] <= report["measured"]["stack_bound_bytes"]
    assert "tinyml_play_max_pool_s8" in page.read_text()
    other = SAMPLES / "model_update" / "model_v1.onnx"
    assert main(["report", str(pack), "--of", str(other)]) == 1
    assert "was made of another file" in capsys.readouterr().err
    assert main(["report", str(pack), "--html", str(page)]) == 1
    assert "--html needs the model" in capsys.readouterr().err
    assert main(["report", str(DIGITS), "--of", str(DIGITS)]) == 1
    assert "--of belongs to packs" in capsys.readouterr().err
