# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""MFCC, vibrations and normalisation: numpy gives what librosa and scipy give, and C what numpy gives."""

from __future__ import annotations

import importlib.util
import itertools
from pathlib import Path

import numpy as np
import pytest

from tests.support import librosa_reference, torchaudio_reference
from tests.support.batch import Item, run_batch
from tests.support.feeding import compiled_with, cut, feed, negating
from tests.support.librosa_reference import SETTINGS as MFCC
from tests.support.micro_reference import RECORDED
from tinyml.features.feed import attach
from tinyml.features.frames import frames_of
from tinyml.features.settings import FrontEnd, from_mapping
from tinyml.ir import Array
from tinyml.pipeline import compile_frontend

LIBROSA = pytest.mark.skipif(importlib.util.find_spec("librosa") is None, reason="no Python package librosa")
SCIPY = pytest.mark.skipif(importlib.util.find_spec("scipy") is None, reason="no Python package scipy")

SPECTRAL: dict[str, dict[str, object]] = {
    "usual": {},
    "bands": {"axes": 3, "bands": [0, 10, 50, 100, 200, 500], "window_samples": 128, "step_samples": 64},
    "uneven": {
        "rate": 3200,
        "bands": "12.5,100,101,2000",
        "window_samples": 250,
        "step_samples": 250,
        "log": True,
    },
    "statistics": {
        "axes": 2,
        "statistics": "mean,rms,std,skewness,kurtosis,peak",
        "window_samples": 60,
        "step_samples": 7,
    },
    "only_bands": {"statistics": "", "bands": "1,2,3,4,500"},
}


def frontend(kind: str, settings: dict[str, object]) -> FrontEnd:
    return from_mapping({"kind": kind, **settings}, "test")


def speech() -> Array:
    with np.load(RECORDED) as file:
        return file["speech"]


def shaking(axes: int) -> Array:
    """A machine: rotation, harmonics, an offset, noise, and knocks."""
    generator = np.random.default_rng(5)
    time = np.arange(1500)[:, None] / 1000
    wave = np.sin(2 * np.pi * 49 * time) + 0.3 * np.sin(2 * np.pi * 147 * time + np.arange(axes))
    knocks = (generator.random((1500, axes)) < 0.01) * generator.normal(0, 5, (1500, axes))
    return (wave + knocks + generator.normal(0, 0.2, (1500, axes)) + 0.5 * np.arange(axes)).astype(np.float32)


def assert_close(found: Array, expected: Array) -> None:
    """1e-4 relative, of the largest value in a column where that crosses zero."""
    assert found.shape == expected.shape
    assert len(expected) > 2
    np.testing.assert_allclose(
        found, expected, rtol=1e-4, atol=1e-4 * float(np.abs(expected).max(axis=0).mean())
    )


@pytest.mark.parametrize("name", MFCC)
def test_mfcc_is_librosas(name: str) -> None:
    """Recorded with librosa 0.11."""
    with np.load(librosa_reference.RECORDED) as file:
        assert_close(frontend("mfcc", MFCC[name]).compute(speech()), file[name])


@LIBROSA
@pytest.mark.deep
@pytest.mark.parametrize("name", MFCC)
def test_mfcc_is_that_of_the_librosa_here(name: str) -> None:
    assert_close(frontend("mfcc", MFCC[name]).compute(speech()), librosa_reference.compute(speech(), name))


@pytest.mark.parametrize("name", torchaudio_reference.SETTINGS)
def test_mfcc_is_torchaudios(name: str) -> None:
    """Recorded with torchaudio 2.1."""
    end = frontend("mfcc", {"style": "torchaudio", **torchaudio_reference.SETTINGS[name]})
    with np.load(torchaudio_reference.RECORDED) as file:
        assert_close(end.compute(speech()), file[name])


@SCIPY
@pytest.mark.parametrize("name", SPECTRAL)
def test_vibrations_are_scipys(name: str) -> None:
    import scipy.signal
    import scipy.stats

    end = frontend("spectral", SPECTRAL[name])
    settings = end.settings
    rows = []
    for frame in frames_of(shaking(settings.axes), settings).astype(np.float64):
        row: list[float] = []
        for x in frame.T:
            values = {
                "mean": np.mean(x),
                "rms": np.sqrt(np.mean(x**2)),
                "std": np.std(x),
                "skewness": scipy.stats.skew(x),
                "kurtosis": scipy.stats.kurtosis(x),
                "peak": np.abs(x).max(),
            }
            row += [float(values[key]) for key in settings.statistics]  # type: ignore[attr-defined]
            frequencies, density = scipy.signal.periodogram(x, settings.rate, "hann")
            bands = settings.bands  # type: ignore[attr-defined]
            for low, high in itertools.pairwise(bands):
                inside = (frequencies >= low) & (frequencies < high)
                power = float(density[inside].sum() * (frequencies[1] - frequencies[0]))
                row.append(
                    float(np.log10(power)) if SPECTRAL[name].get("log") and power > 0 else max(power, 0.0)
                )
        rows.append(row)
    expected = np.array(rows)
    if SPECTRAL[name].get("log"):
        expected[expected == 0] = -12  # a band without a bin
    assert_close(end.compute(shaking(settings.axes)), expected)


def test_normalisation() -> None:
    end = frontend("normalize", {"mean": [1, 2, 3], "std": "2,4,0.5"})
    samples = np.arange(30, dtype=np.float32).reshape(10, 3)
    np.testing.assert_array_equal(end.compute(samples), (samples - [1, 2, 3]) / np.array([2, 4, 0.5]))


def test_c_is_numpy() -> None:
    ends = {f"mfcc_{name}": frontend("mfcc", given) for name, given in MFCC.items()}
    ends |= {f"spectral_{name}": frontend("spectral", given) for name, given in SPECTRAL.items()}
    ends["plain"] = frontend("normalize", {"axes": 4, "mean": 0.3, "std": "1,2,3,4"})
    items, expected = [], {}
    for name, end in ends.items():
        sound = speech()[:9000] if end.of.sample == "int16" else shaking(end.settings.axes)
        expected[name] = end.compute(sound)
        frames = frames_of(sound, end.settings).reshape(-1, end.settings.window, end.settings.axes)
        files = compile_frontend(end, name, "host")
        items.append(Item(name, files, [{"samples": frame} for frame in frames]))
    for name, outcome in run_batch(items, group=1).items():
        assert not outcome.failure, f"{name}: {outcome.failure}"
        assert_close(np.stack([out["row"] for out in outcome.outputs]), expected[name])


def test_still_samples_have_no_kurtosis() -> None:
    end = frontend(
        "spectral", {"statistics": "kurtosis,skewness,rms", "window_samples": 8, "step_samples": 8}
    )
    still = np.full((24, 1), 2.0, np.float32)
    np.testing.assert_array_equal(end.compute(still), [[0, 0, 2]] * 3)
    item = Item("still", compile_frontend(end, "still", "host"), [{"samples": still[:8]}])
    np.testing.assert_array_equal(run_batch([item])["still"].outputs[0]["row"], [0, 0, 2])


def test_an_offset_does_not_hide_what_deviates_from_it() -> None:
    """Gravity on an accelerometer: at rest there is no skewness, and a small vibration has the right one."""
    given = {"statistics": "mean,std,skewness,kurtosis", "window_samples": 256, "step_samples": 256}
    end = frontend("spectral", {**given, "bands": [0, 100, 500], "log": True})
    still = np.full((256, 1), 9.81, np.float32)
    moving = still + np.random.default_rng(4).gamma(2, 0.01, (256, 1)).astype(np.float32)
    item = Item("offset", compile_frontend(end, "offset", "host"), [{"samples": x} for x in (still, moving)])
    at_rest, vibrating = (out["row"] for out in run_batch([item])["offset"].outputs)
    np.testing.assert_array_equal(at_rest, np.array([9.81, 0, 0, 0, -12, -12], np.float32))
    np.testing.assert_allclose(vibrating, end.compute(moving)[0], rtol=1e-5)


@pytest.mark.parametrize(
    "kind,settings,shape",
    [
        ("normalize", {"mean": "0.1,0.2,0.3", "std": 2, "stride": 10}, [1, 25, 3]),
        ("spectral", {"axes": 3, "bands": [0, 100, 500], "window_samples": 64, "step_samples": 20}, [1, 12]),
    ],
)
def test_sensors_are_fed(kind: str, settings: dict[str, object], shape: list[int], tmp_path: Path) -> None:
    end = frontend(kind, settings)
    compiled = compiled_with(negating(tmp_path, shape), end)
    samples = shaking(3)[:400]
    expected = -attach(end, compiled.graph).inputs(samples)
    found = feed(compiled, [samples, None, *cut(samples, 1, 9), None, *cut(samples, 2, 150)])
    assert_close(found.reshape(len(found), -1), np.concatenate([expected] * 3).reshape(len(found), -1))
