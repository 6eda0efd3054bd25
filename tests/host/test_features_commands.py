# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Front ends as users meet them: tinyml.yaml, command lines, calibration, and what is refused."""

from __future__ import annotations

import json
import wave
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

import tinyml.features
from tests.support.feeding import negating
from tests.support.small_models import model_of
from tinyml.base.errors import ConfigError
from tinyml.datasets.reader import load
from tinyml.datasets.shaping import Input
from tinyml.features.feed import PUBLISHED, Whole, attach, check_training
from tinyml.features.micro.compute import features
from tinyml.features.micro.micro_settings import MicroSettings
from tinyml.features.settings import from_items, from_mapping
from tinyml.ir import Array, DType, Graph, Quant, Tensor
from tinyml.pipeline import Options, compile_model, quantize_model
from tinyml.projects import cmake, manifest
from tinyml.projects.platformio import project as projects
from tinyml.projects.platformio.boards import Board
from tinyml.settings.quantize_request import Request
from tinyml.verbs.cli import main


def wav(path: Path, samples: Array, rate: int = 16000, channels: int = 1) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(samples.astype("<i2").tobytes())
    return path


def noise(count: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(-20000, 20000, count).astype(np.int16)


# The manifest


def test_manifest_to_cmake(tmp_path: Path) -> None:
    path = tmp_path / "tinyml.yaml"
    text = "models:\n- name: kws\n  file: kws.tflite\n  frontend: {kind: micro, step_ms: 10, pcan: false}\n"
    path.write_text(text)
    (entry,) = manifest.load(path).models
    assert entry.frontend is not None
    assert entry.frontend.settings == MicroSettings(step_ms=10, pcan=False)
    assert entry.as_yaml()["frontend"] == {"kind": "micro", "step_ms": 10, "pcan": False}
    assert "[=[FRONTEND]=] [=[kind=micro]=] [=[step_ms=10]=] [=[pcan=false]=]" in cmake.calls(path)
    again = from_items(["kind=micro", "step_ms=10", "pcan=false"], "--frontend")
    assert again == entry.frontend


def test_platformio_option(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    negating(tmp_path / "models", [1, 40])
    keys = []
    for text in ("micro\nstep_ms=10", "kind=micro\nstep_ms=20"):
        options = {"custom_tinyml_frontend": text}
        (model,) = projects.read_models(tmp_path, options, Board("cortex-m4"), False)
        assert model.options.frontend is not None
        assert model.options.frontend.kind == "micro"
        keys.append(model.key("compiler"))
    assert keys[0] != keys[1]  # so that a changed setting builds the model again


BAD: list[tuple[dict[str, Any], str]] = [
    ({}, "has no kind"),
    ({"kind": "mirco"}, "cannot be of kind 'mirco'"),
    ({"kind": "micro", "stepms": 10}, "did you mean 'step_ms'"),
    ({"kind": "micro", "step_ms": "ten"}, "step_ms: 'ten'"),
    ({"kind": "micro", "step_ms": 40}, "does not fit a window"),
    ({"kind": "micro", "window_ms": 3000}, "48000 samples"),
    ({"kind": "micro", "upper_hz": 9000}, "at most 8000 Hz"),
    ({"kind": "micro", "upper_hz": 8000}, "beyond the spectrum"),
    ({"kind": "micro", "rate": 0}, "rate: 0"),
    ({"kind": "micro", "channels": 0}, "channels: 0"),
    ({"kind": "micro", "pcan": "maybe"}, "true or false"),
    ({"kind": "micro", "stride": 0}, "stride of 0"),
    ({"kind": "micro", "input": "guess"}, "no input 'guess'"),
    ({"kind": "micro", "rounding": "up"}, "separate, fused"),
    ({"kind": "mfcc", "fft": 511}, "fft: 511"),
    ({"kind": "mfcc", "fft": 74}, "fft: 74"),
    ({"kind": "mfcc", "step_samples": 600}, "does not fit"),
    ({"kind": "mfcc", "coefficients": 50}, "50 of 40 bands"),
    ({"kind": "mfcc", "style": "kaldi"}, "librosa, torchaudio"),
    ({"kind": "spectral", "step_samples": 300}, "does not fit"),
    ({"kind": "spectral", "statistics": "rms,mode"}, "no 'mode'"),
    ({"kind": "spectral", "bands": [100, 50]}, "rising edges"),
    ({"kind": "spectral", "bands": [0, 600, 700]}, "edges up to 500 Hz"),
    ({"kind": "spectral", "statistics": ""}, "computes no features"),
    ({"kind": "normalize", "mean": [1, 2]}, "2 numbers for 3 axes"),
    ({"kind": "normalize", "std": 0}, "greater than 0"),
    ({"kind": "normalize", "rate": "inf"}, "rate: 'inf'"),
    ({"kind": "normalize", "mean": ["nan"]}, "mean: 'nan'"),
    ({"kind": "micro", "pcan_strength": "nan"}, "pcan_strength: 'nan'"),
]


@pytest.mark.parametrize("given,message", BAD, ids=[message for _, message in BAD])
def test_bad_settings_are_refused(given: dict[str, Any], message: str) -> None:
    def write() -> None:
        end = from_mapping(given, "tinyml.yaml: model 1")
        end.of.write("kws", end.settings)

    with pytest.raises(ConfigError) as refused:
        write()
    assert message in str(refused.value)


# The model


@pytest.mark.parametrize(
    "shape,given,message",
    [
        ([1, 49, 32], {}, "rows of 40 features; input 'x' is 1x49x32"),
        ([1, 40, 49], {}, "next to each other"),
        ([1, 3, 40], {"stride": 4}, "a stride of 4 rows"),
        ([1, 50], {}, "rows of 40 features"),
    ],
)
def test_a_front_end_must_fit(
    shape: list[int], given: dict[str, object], message: str, tmp_path: Path
) -> None:
    end = from_mapping({"kind": "micro", **given}, "test")
    with pytest.raises(ConfigError, match=r"front end|stride") as refused:
        compile_model(negating(tmp_path, shape), Options(frontend=end))
    assert message in str(refused.value)


@pytest.mark.parametrize(
    "metadata,message",
    [
        ({"sample_rate": "8000"}, "trained on 8000 samples per second"),
        ({"tinyml.frontend": "kind=mfcc"}, "trained with the front end mfcc, not micro"),
        (
            {"tinyml.frontend": "kind=micro step_ms=10 channels=32"},
            "step_ms 10 (here 20), channels 32 (here 40)",
        ),
        ({"tinyml.frontend": "kind=micro stepms=10"}, "no key 'stepms'"),
    ],
)
def test_a_front_end_must_be_that_of_the_training(
    metadata: dict[str, str], message: str, tmp_path: Path
) -> None:
    path = negating(tmp_path, [1, 40])
    model = onnx.load(path)
    helper.set_model_props(model, metadata)
    onnx.save(model, path)
    options = Options(frontend=from_mapping("micro", "test"))
    with pytest.raises(ConfigError) as refused:
        compile_model(path, options)
    assert message in str(refused.value)
    helper.set_model_props(model, {"sample_rate": "16000", "tinyml.frontend": "kind=micro step_ms=20"})
    onnx.save(model, path)
    assert "frontend" in compile_model(path, options).summary


def test_a_front_end_needs_the_arena(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be in the caller's memory"):
        Options(frontend=from_mapping("micro", "test"), io="caller")


def graph(dtype: DType, quant: Quant | None) -> Graph:
    tensor = Tensor("x", (1, 3, 40), dtype, quant)
    return Graph("fed", {"x": tensor}, (), ("x",), ("x",))


def test_int8_inputs_are_filled_as_published_models_want_it() -> None:
    """The formula of micro_speech and microWakeWord, where the range is theirs; else its own scale."""
    rows = np.array([0, 1, 2, 333, 500, 665, 666, 670, 2000], np.uint16)
    end = from_mapping("micro", "test")
    theirs = attach(end, graph(DType.INT8, Quant((26 / 255,), (-128,)))).conversion
    assert theirs == Whole(*PUBLISHED)
    expected = [min(max((int(row) * 256 + 333) // 666 - 128, -128), 127) for row in rows]
    np.testing.assert_array_equal(theirs.apply(rows, DType.INT8), expected)
    own = from_mapping({"kind": "micro", "input": "model"}, "test")
    for scale, zero in ((26 / 255, -128), (0.05, 3), (0.7, -100)):
        tensor = graph(DType.INT8, Quant((scale,), (zero,)))
        exact = np.clip(np.round(rows * 0.0390625 / scale) + zero, -128, 127)
        assert np.abs(attach(own, tensor).conversion.apply(rows, DType.INT8) - exact).max() <= 1
    with pytest.raises(ConfigError, match="published micro models take int8"):
        attach(
            from_mapping({"kind": "micro", "input": "published"}, "test"),
            graph(DType.INT16, Quant((1.0,), (0,))),
        )
    with pytest.raises(ConfigError, match="without a scale"):
        attach(end, graph(DType.INT8, None))


# Commands


def test_features_of_a_recording(tmp_path: Path) -> None:
    sound = noise(8000)
    wav(tmp_path / "a.wav", sound)
    out = tmp_path / "out" / "a.npz"
    assert main(["features", str(tmp_path / "a.wav"), "-o", str(out), "--frontend", "micro"]) == 0
    with np.load(out) as file:
        np.testing.assert_array_equal(file["features"], features(sound))
    np.testing.assert_array_equal(tinyml.features.compute(sound, "micro"), features(sound))


def test_features_of_a_folder_of_sensor_data(tmp_path: Path) -> None:
    samples = np.random.default_rng(0).normal(0, 1, (400, 3)).astype(np.float32)
    (tmp_path / "in").mkdir()
    np.savetxt(tmp_path / "in" / "up.csv", samples, delimiter=",", header="x,y,z", comments="", fmt="%.9g")
    np.save(tmp_path / "in" / "down.npy", samples[::-1])
    out = tmp_path / "all.npz"
    frontend = ["--frontend", "spectral", "--frontend", "axes=3", "--frontend", "bands=0,100,500"]
    assert main(["features", str(tmp_path / "in"), "-o", str(out), *frontend]) == 0
    expected = tinyml.features.compute(samples, "spectral", axes=3, bands=(0, 100, 500))
    with np.load(out) as file:
        assert sorted(file.files) == ["down.npy", "up.csv"]
        np.testing.assert_allclose(file["up.csv"], expected, rtol=1e-5)


@pytest.mark.parametrize(
    "name,rate,channels,extra,message",
    [
        ("a.wav", 8000, 1, [], "8000 samples per second; the front end takes 16000"),
        ("a.wav", 16000, 2, [], "has 2 channels; the front end takes 1"),
        ("a.txt", 16000, 1, [], "is not a recording for the front end micro"),
        ("a.wav", 16000, 1, ["--frontend", "step_ms=50"], "does not fit a window"),
    ],
)
def test_wrong_recordings_are_refused(
    name: str, rate: int, channels: int, extra: list[str], message: str, tmp_path: Path, capsys: Any
) -> None:
    path = wav(tmp_path / name, noise(8000), rate, channels)
    out = tmp_path / "a.npz"
    assert main(["features", str(path), "-o", str(out), "--frontend", "micro", *extra]) == 1
    assert message in " ".join(capsys.readouterr().err.split())
    assert not out.exists()


# Calibration


def small(folder: Path) -> Path:
    """5 rows of 40 features to 3 scores each."""
    weights = np.random.default_rng(2).normal(0, 0.1, (40, 3)).astype(np.float32)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    path = folder / "small.onnx"
    onnx.save(model_of(nodes, {"w": weights}, [1, 5, 40]), path)
    return path


def test_calibration_goes_through_the_front_end(tmp_path: Path) -> None:
    sounds = [noise(16000, 1), noise(3000, 2), noise(500, 3)]
    for index, sound in enumerate(sounds):
        wav(tmp_path / "data" / f"{index}.wav", sound)
    end = from_mapping({"kind": "micro", "step_ms": 10}, "test")
    request = Request(tmp_path / "data", frontend=end)
    found = load(request, [Input("x", (1, 5, 40), DType.FLOAT32)])
    expected = []
    for sound in sounds:
        padded = np.pad(sound, (0, max(0, 480 + 4 * 160 - len(sound))))
        rows = features(padded, MicroSettings(step_ms=10)) * np.float32(0.0390625)
        expected += list(rows[: len(rows) // 5 * 5].reshape(-1, 1, 5, 40))
    assert len(found) == len(expected)
    np.testing.assert_array_equal([sample["x"] for sample in found.inputs], expected)


def test_a_float_model_becomes_int8_behind_its_front_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for index in range(4):
        wav(tmp_path / "data" / f"{index}.wav", noise(16000, index))
    arguments = ["compile", str(small(tmp_path)), "--name", "kws", "-o", str(tmp_path / "out")]
    arguments += ["--quantize", str(tmp_path / "data"), "--quantize", "io=int8", "--frontend", "micro"]
    assert main(arguments) == 0
    summary = json.loads((tmp_path / "out" / "kws.json").read_text())
    (port,) = summary["inputs"]
    assert port["dtype"] == "int8"
    assert port["scale"] * 255 < 30  # features of at most 26, not samples of 1 or 32768
    assert summary["frontend"]["rows"] == 5
    assert "kws_feed(const int16_t *samples" in (tmp_path / "out" / "kws.h").read_text()


def test_calibration_at_another_rate_is_refused(tmp_path: Path) -> None:
    wav(tmp_path / "data" / "a.wav", noise(16000), rate=44100)
    request = Request(tmp_path / "data", frontend=from_mapping("micro", "test"))
    with pytest.raises(ConfigError, match="44100 samples per second"):
        load(request, [Input("x", (1, 5, 40), DType.FLOAT32)])


def test_quantizing_keeps_the_front_end_of_the_training(tmp_path: Path) -> None:
    """From the training to the build: the guard must survive `tinyml quantize`."""
    path = negating(tmp_path, [1, 40])
    model = onnx.load(path)
    helper.set_model_props(model, {"author": "somebody", "tinyml.frontend": "kind=micro step_ms=20"})
    onnx.save(model, path)
    data = tmp_path / "data.npy"
    np.save(data, np.random.default_rng(3).uniform(0, 26, (32, 40)).astype(np.float32))
    made = quantize_model(path, Request(data))
    int8 = tmp_path / "int8.onnx"
    int8.write_bytes(made.content)
    facts = {entry.key: entry.value for entry in onnx.load(int8).metadata_props}
    facts.pop("tinyml.watch")  # what the calibration has shown, for counters in the field
    assert facts == {"author": "somebody", "tinyml.frontend": "kind=micro step_ms=20"}
    compile_model(int8, Options(frontend=from_mapping("micro", "test")))
    other = from_mapping({"kind": "micro", "step_ms": 10}, "test")
    with pytest.raises(ConfigError, match=r"step_ms 20 \(here 10\)"):
        compile_model(int8, Options(frontend=other))
    with pytest.raises(ConfigError, match=r"step_ms 20 \(here 10\)"):
        quantize_model(path, Request(data, frontend=other))


@pytest.mark.parametrize("sample", ["gesture", "two_models", "vibration", "wake_word"])
def test_models_of_samples_name_their_front_end(sample: str) -> None:
    folder = Path(__file__).resolve().parents[2] / "samples" / sample
    entries = manifest.load(folder / "tinyml.yaml").models
    for entry in entries:
        model = onnx.load(folder / entry.file)
        facts = {item.key: item.value for item in model.metadata_props}
        assert entry.frontend is not None
        assert "tinyml.frontend" in facts, entry.file
        check_training(entry.frontend, facts)
