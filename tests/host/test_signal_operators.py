# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""TensorFlow Lite Micro's signal operators in .tflite files: features, transforms, mistakes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.interpret import interpret
from tests.support.micro_reference import RECORDED
from tests.support.signal_models import flexible, one_call, preprocessor
from tests.support.tflite_writer import Value
from tinyml import harness
from tinyml.base.errors import TinymlError
from tinyml.features.micro.micro_settings import MicroSettings
from tinyml.importers import load
from tinyml.ir import Array
from tinyml.ops.signal import fft_s16
from tinyml.pipeline import Options, compile_model

SETTINGS = MicroSettings(step_ms=10)


def saved(folder: Path, content: bytes) -> Path:
    path = folder / "signal.tflite"
    path.write_bytes(content)
    return path


def test_a_preprocessor_gives_the_features_of_pymicro_features(tmp_path: Path) -> None:
    """Recorded features of speech and noise, in C; the estimate of the noise is state of the model."""
    compiled = compile_model(
        saved(tmp_path, preprocessor(SETTINGS)), Options(name="preprocessor", target="host")
    )
    with np.load(RECORDED) as file:
        for name in ("speech", "noise"):
            sound, expected = file[name], file[f"{name}_features"]
            if name == "noise":  # TensorFlow Lite Micro scales -32768 in another way than the front end
                sound = np.maximum(sound, -32767)
            places = np.arange(len(expected))[:, None] * SETTINGS.step + np.arange(SETTINGS.window)
            frames = [{"frame": frame[None]} for frame in sound[places]]
            result = harness.run_files(compiled.files, "host", frames, reset_before={0})
            found = np.stack([out["features"] for out in result.outputs])
            np.testing.assert_array_equal(found, expected, name)


LOST = 1 / 8000  # of the largest number for each bit of the length: factors of 1 are 32767/32768


@pytest.mark.parametrize("n", [4, 16, 64, 128, 512, 2048])
@pytest.mark.parametrize("size", [32767, 3000, 20])
def test_the_transform_is_near_the_exact_one(n: int, size: int) -> None:
    """1/n of it, with rounding of a few steps in each part, and a little less in proportion."""
    generator = np.random.default_rng(n)
    x = generator.integers(-size, size + 1, n).astype(np.int16)
    found = fft_s16.real_transform(x[None])[0]
    spectrum = np.fft.rfft(x.astype(np.float64)) / n
    exact = np.stack([spectrum.real, spectrum.imag], -1)
    assert np.abs(found - exact).max() <= 3.5 + LOST * n.bit_length() * np.abs(exact).max()
    bins = generator.integers(-size // 2, size // 2 + 1, (n // 2 + 1, 2)).astype(np.int16)
    bins[0, 1] = bins[-1, 1] = 0
    back = fft_s16.real_inverse(bins[None])[0]
    wave = np.fft.irfft(bins[:, 0] + 1j * bins[:, 1].astype(np.float64), n)
    assert np.abs(back - wave).max() <= 5 + LOST * n.bit_length() * np.abs(wave).max()


def test_transforms_of_floats_are_ordinary_ones(tmp_path: Path) -> None:
    x = np.random.default_rng(1).normal(0, 1, (2, 50)).astype(np.float32)
    values = Value("x", (2, 50)), Value("y", (2, 62))
    graph = load(saved(tmp_path, one_call("Rfft", values[:1], values[1:], {"T": 0, "fft_length": 60})))
    spectrum = np.fft.rfft(x.astype(np.float64), 60)
    expected = np.stack([spectrum.real, spectrum.imag], -1).reshape(2, -1)
    (found,) = interpret(graph, {"x": x}).values()
    np.testing.assert_allclose(found, expected, atol=1e-5)
    values = Value("x", (2, 62)), Value("y", (2, 60))
    graph = load(saved(tmp_path, one_call("Irfft", values[:1], values[1:], {"T": 0, "fft_length": 60})))
    (back,) = interpret(graph, {"x": found}).values()
    np.testing.assert_allclose(back, np.pad(x, ((0, 0), (0, 10))), atol=1e-5)


def constants(*arrays: Array) -> list[Value]:
    return [Value.constant(f"c{i}", array) for i, array in enumerate(arrays)]


SAMPLES, WORDS = Value("x", (16,), "int16"), Value("x", (16,), "uint32")
SPECTRUM, ROW = Value("y", (18,), "int16"), Value("y", (3,), "uint64")
ZEROS, ONES = np.zeros(4, np.int16), np.ones(4, np.int16)
NO_KEYS = b"T\0fft_length\0\x02\x0e\r\x02\0\x01\0\x02\0\x07\0\0\x02\x05\x05\x06\x13\x01"
WRONG: dict[str, tuple[str, list[Value], list[Value], dict[str, int] | bytes, str]] = {
    "no options": ("Rfft", [SAMPLES], [SPECTRUM], b"", "has no option 'fft_length'"),
    "options cut off": ("Rfft", [SAMPLES], [SPECTRUM], flexible({"fft_length": 16})[:9], "malformed options"),
    "keys of no kind": ("Rfft", [SAMPLES], [SPECTRUM], NO_KEYS, "malformed options"),
    "odd length": ("Rfft", [SAMPLES], [SPECTRUM], {"fft_length": 24}, "in int16 with a length of 24"),
    "too short": ("Rfft", [SAMPLES], [SPECTRUM], {"fft_length": 8}, "at most as long as the transform"),
    "too long": ("Rfft", [SAMPLES], [SPECTRUM], {"fft_length": 1 << 20}, "from 4 to 65536"),
    "int32": ("Rfft", [Value("x", (16,), "int32")], [SPECTRUM], {"fft_length": 16}, "on int32"),
    "half a spectrum": ("Irfft", [SAMPLES], [SPECTRUM], {"fft_length": 16}, "2 \\+ 1 complex numbers"),
    "window": ("Window", [SAMPLES, *constants(ZEROS)], [SAMPLES], {"shift": 12}, "one weight for each"),
    "shift": ("Window", [SAMPLES, *constants(ZEROS)], [SAMPLES], {"shift": 40}, "from 0 to 31"),
    "bins": ("Energy", [SAMPLES], [ROW], {"start_index": 3, "end_index": 9}, "Start and end count"),
    "filters": (
        "FilterBank",
        [WORDS, *constants(ZEROS, ZEROS, ONES * 14, ZEROS, ONES * 3)],
        [ROW],
        {"num_channels": 3},
        "negative or out of range",
    ),
    "few filters": (
        "FilterBank",
        [WORDS, *constants(ZEROS, ZEROS, ZEROS, ZEROS, ONES)],
        [ROW],
        {"num_channels": 4},
        "negative or out of range",
    ),
    "gains": ("PCAN", [WORDS, WORDS, *constants(ZEROS)], [WORDS], {"snr_shift": 6}, "has 4 numbers of int16"),
    "type": (
        "FilterBankLog",
        [SAMPLES],
        [SAMPLES],
        {"input_correction_bits": 3, "output_scale": 64},
        "uint32",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_mistakes_are_messages(tmp_path: Path, what: str) -> None:
    name, inputs, outputs, options, message = WRONG[what]
    known = list({value.name: value for value in inputs}.values())
    renamed = [Value("z" if v.name == "x" else v.name, v.shape, v.dtype) for v in outputs]
    content = one_call(name, known, renamed, options, [v.name for v in inputs])
    with pytest.raises(TinymlError, match=message):
        load(saved(tmp_path, content))
