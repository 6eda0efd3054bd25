# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The micro front end: numpy, C and TensorFlow's own library give the same integers."""

from __future__ import annotations

import ctypes
import importlib.util
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.support.batch import Item, run_batch
from tests.support.feeding import compiled_with, cut, feed, negating
from tests.support.micro_reference import RECORDED, reference
from tests.support.small_models import model_of
from tinyml import harness
from tinyml.features.feed import attach
from tinyml.features.micro.compute import features
from tinyml.features.micro.micro_settings import ROUNDINGS, MicroSettings
from tinyml.features.settings import FrontEnd, from_mapping
from tinyml.ir import Array
from tinyml.pipeline import compile_frontend

PACKAGE = importlib.util.find_spec("pymicro_features") is not None
TEN_MS = MicroSettings(step_ms=10)
GENERATOR = np.random.default_rng(3)
SOUNDS: dict[str, Array] = {
    "loud": GENERATOR.integers(-32768, 32768, 16000),
    "faint": GENERATOR.integers(-1, 2, 16000),
    "silence": np.zeros(8000),
    "bursts": np.where(np.arange(16000) // 2000 % 2, GENERATOR.integers(-32768, 32768, 16000), 0),
    "square": np.where(np.arange(16000) // 37 % 2, 32767, -32768),
    "sine": 32767 * np.sin(np.arange(16000) * 0.31),
    "steady": GENERATOR.normal(0, 3000, 16000).clip(-32768, 32767),
    "spikes": (GENERATOR.normal(0, 1, 16000) * np.exp(GENERATOR.normal(0, 3, 16000)) * 99).clip(
        -32768, 32767
    ),
}


def recorded() -> dict[str, Array]:
    with np.load(RECORDED) as file:
        return {name: file[name] for name in file.files}


@pytest.mark.parametrize("name", ["speech", "noise"])
def test_numpy_gives_the_recorded_features(name: str) -> None:
    found = recorded()
    expected = found[f"{name}_features"]
    assert expected.any()
    np.testing.assert_array_equal(features(found[name], TEN_MS), expected)


def all_features(rounding: str) -> dict[str, Array]:
    sounds = {
        name: sound.astype(np.int16) for name, sound in (SOUNDS | recorded()).items() if sound.ndim == 1
    }
    return {name: features(sound, replace(TEN_MS, rounding=rounding)) for name, sound in sounds.items()}


@pytest.mark.skipif(not PACKAGE, reason="no Python package pymicro-features")
def test_numpy_is_pymicro_features() -> None:
    """Every feature of every sound, with the rounding that the package was compiled with."""
    ours = {rounding: all_features(rounding) for rounding in ROUNDINGS}
    theirs = {name: reference((SOUNDS | recorded())[name].astype(np.int16)) for name in ours["fused"]}
    wrong = {
        rounding: {name: int((rows[name] != theirs[name]).sum()) for name in theirs}
        for rounding, rows in ours.items()
    }
    if exact_logarithm():  # of GNU's C library since 2.41: weights that are one step off
        assert min(sum(counts.values()) for counts in wrong.values()) < 100
    else:
        assert any(not any(counts.values()) for counts in wrong.values()), wrong


def exact_logarithm() -> bool:
    """Whether the C library that the package computes its filters with rounds logarithms correctly."""
    library = ctypes.CDLL(None).log1pf
    library.restype, library.argtypes = ctypes.c_float, [ctypes.c_float]
    places = [float(np.float32(bin_ * 31.25 / 700)) for bin_ in range(257)]
    return all(library(x) == np.float32(math.log1p(x)) for x in places)


SETTINGS: dict[str, dict[str, object]] = {
    "usual": {"step_ms": 10},
    "long": {"window_ms": 64, "step_ms": 32, "channels": 80},  # a transform of 2 * 4^4 points
    "slow": {"rate": 8000, "window_ms": 25, "step_ms": 10, "channels": 20, "upper_hz": 3800},
    "odd": {"rate": 11025, "window_ms": 25, "step_ms": 11, "channels": 32, "upper_hz": 5000},  # 275 samples
    "plain": {"pcan": False, "noise_bits": 8, "rounding": "fused"},
    "linear": {"pcan": False, "log": False},
    "narrow": {"window_ms": 4, "step_ms": 4, "channels": 30},  # bands without a bin
}


def frontend(**settings: object) -> FrontEnd:
    return from_mapping({"kind": "micro", **settings}, "test")


def windows(sound: Array, settings: MicroSettings) -> Array:
    count = (len(sound) - settings.window) // settings.step + 1
    return sound[np.arange(count)[:, None] * settings.step + np.arange(settings.window)]


def test_c_is_numpy() -> None:
    """Each setting, over all sounds one after the other: the noise estimate is kept between rows."""
    sound = np.concatenate([x[:4000] for x in (*SOUNDS.values(), recorded()["speech"][4000:])]).astype(
        np.int16
    )
    items, expected = [], {}
    for name, chosen in SETTINGS.items():
        end = frontend(**chosen)
        assert isinstance(end.settings, MicroSettings)
        expected[name] = end.compute(sound)
        frames = windows(sound, end.settings)
        samples = [{"samples": frame[:, None]} for frame in frames]
        items.append(Item(name, compile_frontend(end, name, "host"), samples))
    for name, outcome in run_batch(items, group=1).items():
        assert not outcome.failure, f"{name}: {outcome.failure}"
        np.testing.assert_array_equal(np.stack([out["row"] for out in outcome.outputs]), expected[name], name)


@pytest.mark.parametrize("rows,stride", [(1, None), (3, 3), (5, 2), (4, 1)])
def test_feeding_in_pieces_is_computing_at_once(tmp_path: Path, rows: int, stride: int | None) -> None:
    sound = recorded()["speech"][:12000]
    end = frontend(step_ms=10, stride=stride or 1)
    compiled = compiled_with(negating(tmp_path, [1, rows, 40]), end)
    expected = -attach(end, compiled.graph).inputs(sound)
    assert len(expected) > 5
    runs = feed(
        compiled, [sound, None, *cut(sound, 1, 37), None, *cut(sound, 2, 700), None, *cut(sound, 3, 3000)]
    )
    np.testing.assert_array_equal(runs, np.concatenate([expected] * 4))


def test_a_reset_starts_a_new_stream(tmp_path: Path) -> None:
    sound = recorded()["speech"][:6000]
    compiled = compiled_with(negating(tmp_path, [2, 40]), frontend(step_ms=10, stride=2))
    once = feed(compiled, [sound])
    twice = feed(compiled, [sound[:1111], None, sound, None, sound])
    assert len(twice) > 2 * len(once)
    np.testing.assert_array_equal(twice[-len(once) :], once)
    np.testing.assert_array_equal(twice[-2 * len(once) : -len(once)], once)


def test_without_a_counter_all_samples_are_taken(tmp_path: Path) -> None:
    sound = recorded()["speech"][:6000]
    compiled = compiled_with(negating(tmp_path, [2, 40]), frontend(step_ms=10, stride=2))
    np.testing.assert_array_equal(feed(compiled, [sound], whole=True), feed(compiled, [sound])[-1:])


def test_a_convolution_behind_a_front_end(tmp_path: Path) -> None:
    """Headers of kernels and streams agree, and a fed model computes what a run computes."""
    weights = np.random.default_rng(1).normal(0, 0.1, (3, 1, 3, 3)).astype(np.float32)
    node = helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1])
    path = tmp_path / "conv.onnx"
    onnx.save(model_of([node], {"w": weights}, [1, 1, 4, 40]), path)
    end = frontend(step_ms=10, stride=4)
    compiled = compiled_with(path, end)
    sound = recorded()["speech"][:8000]
    inputs = attach(end, compiled.graph).inputs(sound)
    expected = harness.run_files(compiled.files, "host", [{"x": x} for x in inputs])
    found = feed(compiled, cut(sound, 1, 999))
    np.testing.assert_array_equal(found, [out["y"] for out in expected.outputs])
