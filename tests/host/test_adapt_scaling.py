# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""``adapt: {kind: threshold, normalize: …}``: sensors that differ from piece to piece."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

import tinyml
from tests.support.adapting import GESTURE, SAMPLES, as_in_numpy, autoencoder, compiled_for
from tinyml.adapt import scaling
from tinyml.adapt.errors import Damaged, InfiniteLoss, Other
from tinyml.base.errors import ConfigError, ToolError
from tinyml.ir import Array

FEATURES = 12
VIBRATION = SAMPLES / "vibration" / "model.onnx"


def settings(**more: object) -> dict[str, object]:
    return {"kind": "threshold", "least": 4, "normalize": 5, **more}


@pytest.fixture
def lab(tmp_path: Path) -> tuple[Array, Path]:
    """What the sensor of the training measures, and the int8 model of it."""
    rng = np.random.default_rng(3)
    basis = np.random.default_rng(5).normal(0, 1, (4, FEATURES))
    x = (rng.normal(0, 1, (400, 4)) @ basis / 2).astype(np.float32)
    made = tinyml.quantize(autoencoder(tmp_path, basis), x, io="int8")
    made.save(tmp_path / "eight.onnx")
    return x, tmp_path / "eight.onnx"


@pytest.mark.parametrize("reference", [False, True])
def test_a_device_scales_as_numpy_does(lab: tuple[Array, Path], reference: bool, tmp_path: Path) -> None:
    """Before and after the examples that say what the inputs are like; as bytes too."""
    x, model = lab
    np.save(tmp_path / "lab.npy", x)
    compiled = compiled_for(
        "host", settings(**({"reference": str(tmp_path / "lab.npy")} if reference else {})), model
    )
    stored = np.random.default_rng(1).integers(-90, 60, (16, FEATURES)).astype(np.int8)
    as_in_numpy(compiled, "host", data=stored)


def test_rows_of_features_share_their_scale() -> None:
    """A window of 64 samples and 3 axes has three features; a score is the only output."""
    compiled = compiled_for("host", settings(), VIBRATION)
    shape = compiled.inputs[0].shape[1:]
    x = np.random.default_rng(2).normal(3, 2, (12, *shape)).astype(np.float32)
    adapted = compiled.adapt(x)
    assert adapted.count == 12
    values = np.frombuffer(adapted.learnt[36:], "<f4").reshape(2, -1)
    assert values.shape[1] == shape[-1]
    rows = x[:5].reshape(-1, shape[-1]).astype(np.float64)
    assert np.allclose(values[0], rows.mean(axis=0), rtol=1e-4)
    assert np.allclose(values[1], ((rows - rows.mean(axis=0)) ** 2).sum(axis=0), rtol=1e-3)
    with tinyml.connect("host", model=compiled) as device:
        device.learn(x)
        found = device.adapter().learnt
    assert found[32:] == adapted.learnt[32:]  # the inputs to the last bit; scores are sums of float layers


def test_another_piece_of_the_sensor(lab: tuple[Array, Path], tmp_path: Path) -> None:
    """Offsets and gains of its own hide what is unusual; normalised, it decides as the laboratory's does."""
    x, model = lab
    np.save(tmp_path / "lab.npy", x)
    rng = np.random.default_rng(8)
    gain, offset = rng.uniform(0.4, 0.8, FEATURES), rng.uniform(-0.5, 0.5, FEATURES)
    wrong = x[300:360] + rng.normal(0, 0.5, (60, FEATURES))  # no longer what the features have in common

    def seen(values: Array) -> Array:
        return (values * gain + offset).astype(np.float32)

    labels = np.repeat([0, 1], 60)
    test = np.concatenate([x[200:260], wrong])
    plain = compiled_for("host", {"kind": "threshold", "sigmas": 3}, model)
    scaled = compiled_for(
        "host",
        {"kind": "threshold", "sigmas": 3, "normalize": 100, "reference": str(tmp_path / "lab.npy")},
        model,
    )
    of_the_lab = plain.adapt(x[:200]).accuracy(test.astype(np.float32), labels)
    without = plain.adapt(seen(x[:200])).accuracy(seen(test), labels)
    within = scaled.adapt(seen(x[:200])).accuracy(seen(test), labels)
    assert within > without + 0.5 * (of_the_lab - without)
    assert of_the_lab > without + 0.1


def test_bad_values_change_nothing(tmp_path: Path) -> None:
    compiled = compiled_for("host", settings(normalize=2), autoencoder(tmp_path))
    x = np.random.default_rng(3).normal(0, 1, (6, FEATURES)).astype(np.float32)
    x[1, 3] = 3e38
    adapted = compiled.adapt(x[:1])
    before = adapted.learnt
    with pytest.raises(InfiniteLoss):
        adapted.learn(x[1:2])
    assert adapted.learnt == before
    with tinyml.connect("host", model=compiled) as device:
        adapter = device.adapter()
        device.learn(x[:1])
        assert adapter.learnt == before
        device.run(None, x[1:2])
        with pytest.raises(ToolError, match="not a number"):
            adapter.learn(0)
        assert adapter.learnt == before
        with pytest.raises(ToolError, match="too few examples"):
            adapter.decide()
        assert adapter.count == 1
    for offset, value in ((32, struct.pack("<I", 3)), (36, struct.pack("<f", np.nan)), (84, b"\0\0\x80\xbf")):
        wrong = bytearray(before)
        wrong[offset : offset + 4] = value
        wrong[:4] = struct.pack("<I", zlib.crc32(bytes(wrong[4:])))
        with pytest.raises(Damaged):
            adapted.restore(bytes(wrong))
        with (
            tinyml.connect("host", model=compiled) as device,
            pytest.raises(ToolError, match="damaged"),
        ):
            device.adapter().restore(bytes(wrong))
    with pytest.raises(Other):
        compiled_for("host", {"kind": "threshold"}, tmp_path / "autoencoder.onnx").adapt().restore(before)
    with pytest.raises(Other):
        compiled_for("host", settings(normalize=3), tmp_path / "autoencoder.onnx").adapt().restore(before)


def test_features_that_never_change_and_gains_that_are_too_large(tmp_path: Path) -> None:
    compiled = compiled_for("host", settings(normalize=3), autoencoder(tmp_path))
    x = np.random.default_rng(4).normal(0, 1, (10, FEATURES)).astype(np.float32)
    x[:, 0] = 7  # gain 1
    x[:, 1] *= 1e-4  # gain 16
    x[:, 2] *= 1e4  # gain 1/16
    adapted = compiled.adapt(x)
    with tinyml.connect("host", model=compiled) as device:
        device.learn(x)
        assert device.adapter().learnt[32:] == adapted.learnt[32:]
        ran = device.run(None, x).outputs["y"]
    assert np.allclose(ran, adapted.run(x)["y"], rtol=1e-4, atol=1e-3)
    scale = adapted._simulation.learner.inputs.run(x[5:6])  # type: ignore[union-attr]
    means = np.frombuffer(adapted.learnt[36:], "<f4")[:FEATURES]
    assert scale[0, 0] == 0
    assert scale[0, 1] == pytest.approx(16 * (x[5, 1] - means[1]), rel=1e-4)
    assert scale[0, 2] == pytest.approx((x[5, 2] - means[2]) / 16, rel=1e-4)


@pytest.mark.parametrize(
    "model,adapt,message",
    [
        (VIBRATION, {"kind": "threshold", "reference": "a.npy"}, "for inputs that are normalised"),
        (VIBRATION, settings(reference="nowhere.npy"), "there is no reference nowhere.npy"),
        (VIBRATION, settings(normalize=-1), "normalize cannot be '-1'"),
        (GESTURE, {"kind": "last", "normalize": 4}, "'last' has no key 'normalize'"),
    ],
)
def test_what_cannot_be_normalised(model: Path, adapt: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        compiled_for("host", adapt, model)


def test_examples_that_have_too_many_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scaling, "MOST_VALUES", 4)
    with pytest.raises(ConfigError, match=r"(?s)normalize: 5 examples have too many values.*4 or fewer"):
        compiled_for("host", settings(), VIBRATION)
