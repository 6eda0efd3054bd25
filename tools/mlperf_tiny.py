# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Let MLPerf Tiny's own runner test its published models, compiled, on emulated devices.

``TINYML_MLPERF_TINY=CHECKOUT TINYML_MODELS=FOLDER python -m tools.mlperf_tiny [ID ...]``

Builds samples/mlperf_tiny with the model of each benchmark and runs the unmodified runner in accuracy and
performance mode. The data are the recorded inputs of the published models, and labels are arbitrary: the
check is that every result equals the recorded output. Times are virtual and no scores; none are printed.
"""

from __future__ import annotations

import sys
import tempfile
import wave
from pathlib import Path
from typing import Any

import numpy as np

from tests.support import goldens
from tests.support.mlperf import (
    SAMPLE,
    SETTING,
    InterfaceBoard,
    Terminal,
    emulated,
    on_qemu,
    repository,
    run_official,
    write_dataset,
)
from tests.zephyr.building import west_build

BOARD, NATIVE = "mps2/an385", "native_sim/native/64"
MODELS = {
    "kws01": ("mlperf_kws_int8", 12),
    "vww01": ("mlperf_vww_int8", 2),
    "ic01": ("mlperf_resnet_int8", 10),
    "ad01": ("mlperf_ad_int8", 2),
}
STREAMING = "mlperf_strww_int8"
SAMPLES = ("", "_s1", "_s2", "_s3")
LOOPS = 5  # files that performance mode loads


def bytes_of(name: str, stored: np.ndarray, scale: float, zero: int) -> bytes:
    """What a runner sends for an int8 input."""
    if name == "ad01":
        return ((stored.astype(np.float32) - zero) * np.float32(scale)).astype("<f4").tobytes()
    return (
        stored.view(np.uint8) if name == "kws01" else (stored.astype(np.int16) + 128).astype(np.uint8)
    ).tobytes()


def expected_of(name: str, stored: np.ndarray, output: np.ndarray, facts: Any) -> np.ndarray:
    (in_scale, in_zero), (out_scale, out_zero) = facts
    values = (output.astype(np.float64).reshape(-1) - out_zero) * out_scale
    if name != "ad01":
        return values
    given = (stored.astype(np.float64).reshape(-1) - in_zero) * in_scale
    return np.array([np.mean((values - given) ** 2)])


def quantisation(model: Path) -> tuple[tuple[float, int], tuple[float, int]]:
    """Scale and zero point of the input and of the output."""
    from tinyml.pipeline import read_graph

    graph = read_graph(model, {})
    first, last = graph.tensors[graph.inputs[0]].quant, graph.tensors[graph.outputs[0]].quant
    assert first is not None
    assert last is not None
    return (first.scale, first.zero_point), (last.scale, last.zero_point)


def one_shot(name: str, folder: Path, checkout: Path) -> str:
    stem, classes = MODELS[name]
    model, recorded = folder / f"{stem}.tflite", np.load(folder / f"{stem}.npz")
    facts = quantisation(model)
    files, expected = [], []
    for index in range(max(classes, LOOPS)):
        sample = SAMPLES[index % len(SAMPLES)]
        stored = recorded[f"in0{sample}"]
        output = recorded.get(f"tfl214_out0{sample}", recorded[f"out0{sample}"])
        files.append((bytes_of(name, stored, *facts[0]), index % classes))
        expected.append(expected_of(name, stored, output, facts))
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        write_dataset(root / "data", name, files, classes)
        kind = f"-DCONFIG_MLPERF_TINY_{name.upper()}=y"
        elf = west_build(SAMPLE, root / "build", BOARD, kind, f"-DMLPERF_MODEL={model.resolve()}").elf
        notes = []
        for mode in "ap":
            (root / mode).mkdir()
            with emulated(on_qemu(BOARD, elf)) as terminal:
                said, found = run_official(checkout, ["--dut", terminal], mode, root / "data", root / mode)
            runs = [result["infer"] for result in found if "infer" in result]
            errors = [
                (np.abs(np.array(run["results"]) - want) / np.maximum(1, np.abs(want))).max()
                for run, want in zip(runs, expected, strict=False)
            ]
            done = "Top 1%" in said if mode == "a" else "Median throughput" in said
            words = (
                "completes"
                if done
                else "ends with: " + [line for line in said.splitlines() if "ERROR" in line][-1]
            )
            notes.append(f"{words}, {len(runs)} results, largest difference {max(errors):.1e}")
    return " | ".join(notes)


def streaming(folder: Path, checkout: Path) -> str:
    recording = checkout / "benchmark" / "runner" / "sd_card" / "short_wav_easy10s.wav"
    with wave.open(str(recording)) as source:
        stereo = np.frombuffer(source.readframes(source.getnframes()), "<i2").reshape(
            -1, source.getnchannels()
        )
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        with wave.open(str(root / "mono.wav"), "wb") as target:
            target.setparams((1, 2, 16000, 0, "NONE", ""))
            target.writeframes(np.concatenate([stereo[:, 0], np.zeros(512, "<i2")]).astype("<i2").tobytes())
        overlay = (
            (SAMPLE / "sww.overlay").read_text().replace("../wake_word/replay.wav", str(root / "mono.wav"))
        )
        (root / "sww.overlay").write_text(overlay)
        settings = [
            f"-DEXTRA_CONF_FILE={SAMPLE / 'sww.conf'}",
            f"-DEXTRA_DTC_OVERLAY_FILE={root / 'sww.overlay'}",
        ]
        settings += [f"-DMLPERF_MODEL={(folder / f'{STREAMING}.tflite').resolve()}"]
        settings += ["-DCONFIG_NATIVE_SIM_SLOWDOWN_TO_REAL_TIME=n"]
        program = west_build(SAMPLE, root / "build", NATIVE, *settings).folder / "zephyr" / "zephyr.exe"
        data = root / "data" / "sww01"
        data.mkdir(parents=True)
        short = checkout / "benchmark" / "runner" / "sww_data_dir" / "sww_short_test.json"
        (data / "sww_long_test.json").write_text(short.read_text())
        with emulated([program]) as terminal, Terminal(terminal) as dut:
            board = InterfaceBoard(dut, len(stereo) / 16000)
            said, _ = run_official(checkout, ["--interface", board.name], "p", root / "data", root, "sww")
    return next(line for line in said.splitlines() if line.startswith("Accuracy:"))


def main(names: list[str]) -> int:
    folder, checkout = goldens.folder(), repository()
    if folder is None or checkout is None:
        print(f"set TINYML_MODELS and {SETTING}", file=sys.stderr)
        return 2
    for name in names or [*MODELS, "sww01"]:
        done = streaming(folder, checkout) if name == "sww01" else one_shot(name, folder, checkout)
        print(f"{name} | {done}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
