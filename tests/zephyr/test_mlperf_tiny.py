# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""samples/mlperf_tiny on emulated devices: driven from here, and by MLPerf Tiny's own runner.

The runner's repository is not part of this one: the setting names a checkout.
"""

from __future__ import annotations

import wave
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

import tinyml
from tests.support import mlperf
from tests.support.mlperf import SAMPLE, SETTING, Terminal, emulated, on_qemu, results, run_official
from tests.zephyr.building import DIGITS, ROOT, west_build

QEMU, NATIVE = "qemu_cortex_m3", "native_sim/native/64"
BOARDS = (QEMU, NATIVE)
RECORDING = ROOT / "samples" / "wake_word" / "replay.wav"

official = pytest.mark.skipif(
    mlperf.repository() is None, reason=f"{SETTING} names no checkout of github.com/mlcommons/tiny"
)


def checkout() -> Path:
    found = mlperf.repository()
    assert found is not None
    return found


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The digits with probabilities, which the runner expects, instead of logits."""
    path = tmp_path_factory.mktemp("model") / "digits.onnx"
    digits = onnx.load(DIGITS / "model.onnx")
    logits = digits.graph.output[0].name
    digits.graph.node.append(helper.make_node("Softmax", [logits], ["scores"], axis=1))
    digits.graph.output[0].name = "scores"
    onnx.save(digits, path)
    return path


@pytest.fixture(scope="module")
def classifier(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An image of ic01."""
    return west_build(SAMPLE, tmp_path_factory.mktemp("ic") / "build", QEMU, f"-DMLPERF_MODEL={model}").elf


@pytest.fixture
def device(classifier: Path) -> Iterator[str]:
    with emulated(on_qemu(QEMU, classifier)) as terminal:
        yield terminal


def images() -> tuple[np.ndarray, np.ndarray]:
    """Pixels of 0 to 255 of all digits, and their labels."""
    data = pytest.importorskip("sklearn.datasets", reason="the digits come with scikit-learn").load_digits()
    held_back = slice(0, 400, 10)
    return np.round(data.images[held_back] / 16 * 255).astype(np.uint8), data.target[held_back]


def test_protocol(device: str, model: Path) -> None:
    """The results are those of the host, however often a loaded image is inferred."""
    pixels, _ = images()
    batch = (pixels[:4].astype(np.float32) / 255)[:, None]
    expected = [tinyml.run(model, [image[None]])["scores"] for image in batch]
    with Terminal(device) as dut:
        assert dut.send("name") == ["m-name-dut-[west-tinyml]"]
        assert dut.send("profile")[1] == "m-model-[ic01]"
        for image, scores in zip(pixels, expected, strict=False):
            assert dut.load(image.tobytes())[-1] == "m-load-done"
            for command in ("infer 1 0", "infer 3 1"):
                assert results(dut.send(command)) == pytest.approx(scores.reshape(-1).tolist(), abs=2e-6)
        assert dut.send("start") == ["e-[start is a command of sww01]"]


@official
@pytest.mark.parametrize("mode", ["a", "p"])
def test_official_runner(mode: str, device: str, tmp_path: Path) -> None:
    pixels, labels = images()
    files = [(image.tobytes(), int(label)) for image, label in zip(pixels, labels, strict=True)]
    mlperf.write_dataset(tmp_path / "data", "ic01", files, 10)
    said, found = run_official(checkout(), ["--dut", device], mode, tmp_path / "data", tmp_path)
    if mode == "a":
        scores = [result["infer"]["results"] for result in found]
        right = np.mean(np.argmax(scores, axis=1) == labels)
        assert f"Top 1% = {100 * right:.1f}" in said
        assert right > 0.95
    else:
        assert "Performance results for window 5" in said  # of virtual time: not a score
        assert sum("throughput" in result.get("infer", {}) for result in found) == 5


def streaming(folder: Path, *settings: str) -> Path:
    overlay = f"-DEXTRA_DTC_OVERLAY_FILE={SAMPLE / 'sww.overlay'}"
    fast = "-DCONFIG_NATIVE_SIM_SLOWDOWN_TO_REAL_TIME=n"
    build = west_build(SAMPLE, folder, NATIVE, "-DEXTRA_CONF_FILE=sww.conf", overlay, fast, *settings)
    return build.folder / "zephyr" / "zephyr.exe"


@pytest.mark.deep
def test_streaming(tmp_path: Path) -> None:
    """Another wake word's model: between start and stop, every 512 samples of the recording are used."""
    with wave.open(str(RECORDING)) as recording:
        frames = recording.getnframes() // 512
    with emulated([streaming(tmp_path / "build")]) as terminal, Terminal(terminal) as dut:
        assert dut.send("profile")[-1] == "m-model-[sww01]"
        assert dut.send("stop") == ["Not listening."]
        assert dut.send("start")[-1] == "Listening."
        mlperf.wait_for_device(dut, 32e-3 * (frames + 2))
        said = dut.send("stop")
    assert f"Stopped after {frames} frames, 0 overruns." in said
    activations = "".join(said).partition("target activations: [")[2].rstrip("]").split(",")
    assert len(activations) == frames
    assert len(set(activations)) > 1
