# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""``adapt:``: what a model learns, on the host and in numpy, and what it refuses."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

import tinyml
from tests.support.adapting import (
    CLASSES,
    GESTURE,
    SAMPLES,
    as_in_numpy,
    autoencoder,
    compiled_for,
    examples,
    regression,
)
from tests.support.quantizing import FLOAT
from tinyml.adapt.errors import Damaged, Full, InfiniteLoss, NoRun, Other, OutOfRange, Worse
from tinyml.adapt.last import LastLayer, exp
from tinyml.adapt.plan import Last
from tinyml.base.errors import ConfigError, ToolError
from tinyml.pipeline import Options, compile_model
from tinyml.slots.data_pack import pack_data
from tinyml.slots.version import Version

VIBRATION = SAMPLES / "vibration" / "model.onnx"


def test_without_it_nothing_changes() -> None:
    plain = compile_model(GESTURE, Options(name="m"))
    assert not any("adapt" in text for text in plain.files.values())
    assert plain.adapt is None


def test_before_it_learns_it_computes_what_it_computed() -> None:
    plain = tinyml.compile(GESTURE, target="host", name="m")
    compiled = compiled_for("host", "last")
    x, _ = examples(plain, 20, 1)
    assert np.array_equal(tinyml.run(plain, x)["scores"], tinyml.run(compiled, x)["scores"])
    assert np.array_equal(tinyml.run(plain, x)["scores"], compiled.adapt().run(x)["scores"])


@pytest.mark.parametrize(
    "adapt,batch",
    [
        ("last", 1),
        ({"kind": "last", "batch": 4, "momentum": 0.9, "decay": 0.1, "rate": 0.01}, 4),
        ({"kind": "last", "limit": 0.01, "rate": 0.05}, 1),
        ("prototypes", 1),
        ({"kind": "prototypes", "distance": "euclidean", "reject": 0.5}, 1),
    ],
)
def test_a_device_learns_what_numpy_learns(adapt: object, batch: int) -> None:
    as_in_numpy(compiled_for("host", adapt), "host", batch=batch)


def test_thresholds_of_scores_and_of_autoencoders(tmp_path: Path) -> None:
    path = autoencoder(tmp_path)
    rng = np.random.default_rng(3)
    made = tinyml.quantize(path, rng.normal(0, 1, (64, 12)).astype(np.float32), io="int8")
    made.save(tmp_path / "eight.onnx")
    compiled = compiled_for("host", {"kind": "threshold", "least": 4}, tmp_path / "eight.onnx")
    x, usual = (rng.integers(-25, 25, (40, 12)).astype(np.int8) for _ in range(2))
    as_in_numpy(compiled, "host", data=x)
    adapted = compiled.adapt(x)
    assert adapted.count == 40
    assert adapted.predict(usual).sum() <= 2
    assert adapted.predict(np.full((1, 12), 127, np.int8)).tolist() == [1]


def test_float_scores_differ_by_the_order_of_sums_at_most(tmp_path: Path) -> None:
    compiled = compiled_for("host", {"kind": "threshold", "least": 4}, autoencoder(tmp_path))
    x = np.random.default_rng(3).normal(0, 1, (12, 12)).astype(np.float32)
    x[5, 3] = 3e38
    adapted = compiled.adapt(x[:5])
    with pytest.raises(InfiniteLoss):
        adapted.learn(x[5:6])
    with tinyml.connect("host", model=compiled) as device:
        adapter = device.adapter()
        device.learn(x[:5])
        device.run(None, x[5:6])
        refused(device, "not a number", lambda: adapter.learn(0))
        assert adapter.decide()[0] == 1
        found = struct.unpack("<ffI", adapter.learnt[20:])
    expected = struct.unpack("<ffI", adapted.learnt[20:])
    assert found == pytest.approx(expected, rel=1e-5)
    assert found[2] == 5


def test_a_regression_learns_targets(tmp_path: Path) -> None:
    compiled = compiled_for("host", {"kind": "last", "rate": 0.05, "loss": "squared"}, regression(tmp_path))
    rng = np.random.default_rng(2)
    x = rng.normal(0, 1, (40, 6)).astype(np.float32)
    wanted = compiled.adapt().run(x)["y"] + np.array([0.3, -0.2], np.float32)
    adapted = compiled.adapt(x, wanted)
    before = np.abs(compiled.adapt().run(x)["y"] - wanted).mean()
    assert np.abs(adapted.run(x)["y"] - wanted).mean() < 0.4 * before
    with tinyml.connect("host", model=compiled) as device:
        device.learn(x, wanted)
        assert device.adapter().learnt == adapted.learnt


def last_of(compiled: tinyml.CompiledModel) -> Last:
    assert compiled.built.adapt is not None
    return compiled.built.adapt.last


def test_steps_are_those_of_gradient_descent() -> None:
    """Against float64, with weight decay towards the file's weights: within 1e-6 of the weights."""
    compiled = compiled_for(
        "host", {"kind": "last", "rate": 0.002, "momentum": 0.5, "decay": 0.05, "limit": 100}
    )
    part = last_of(compiled)
    layer = LastLayer(part)
    rng = np.random.default_rng(4)
    x_scale = (part.unit.astype(np.float64) / part.step)[:, np.newaxis]
    weights = part.weights * part.step[:, np.newaxis]
    sums = part.bias + part.in_zero * part.weights.astype(np.int64).sum(axis=1)
    bias = sums * part.unit.astype(np.float64)
    moved, moved_bias = np.zeros_like(weights), np.zeros_like(bias)
    speed, speed_bias = np.zeros_like(weights), np.zeros_like(bias)
    for _ in range(10):
        stored = rng.integers(-128, 0, part.features).astype(np.int8)
        label = int(rng.integers(0, CLASSES))
        layer.run(stored)
        layer.learn(label)
        x = (stored.astype(np.float64) - part.in_zero) * x_scale[0]
        logits = (weights + moved) @ x + bias + moved_bias
        errors = np.exp(logits - logits.max())
        errors = errors / errors.sum() - (np.arange(CLASSES) == label)
        speed = 0.5 * speed + 0.002 * (np.outer(errors, x) + 0.05 * moved)
        speed_bias = 0.5 * speed_bias + 0.002 * (errors + 0.05 * moved_bias)
        moved, moved_bias = moved - speed, moved_bias - speed_bias
    found = layer.values[CLASSES:].reshape(CLASSES, -1) * part.step[:, np.newaxis]
    assert np.abs(moved).max() > 1e-3
    assert np.abs(found - moved).max() < 1e-6
    assert np.abs(layer.values[:CLASSES] * part.unit - moved_bias).max() < 1e-6


def test_powers_of_e() -> None:
    x = -np.linspace(0, 100, 20001, dtype=np.float32)
    real = np.exp(x.astype(np.float64))
    assert (np.abs(exp(x) - real)[x > -87] / real[x > -87]).max() < 4e-7
    assert exp(np.array([-87, -88, -1e30, -np.inf], np.float32)).tolist() == [0, 0, 0, 0]


def test_limits_hold_whatever_the_labels() -> None:
    compiled = compiled_for("host", {"kind": "last", "rate": 1, "limit": 0.1})
    adapted = compiled.adapt(*examples(compiled, 60, 7))
    learner = adapted._simulation.learner
    assert isinstance(learner, LastLayer)
    limits = learner.limits()
    assert (np.abs(learner.values) <= limits).all()
    assert (np.abs(learner.values) == limits).mean() > 0.1  # they were reached


def refused(device: tinyml.Device, what: str, call: object) -> None:
    before = device.adapter().learnt
    with pytest.raises(ToolError, match=what):
        call()  # type: ignore[operator]
    assert device.adapter().learnt == before


def test_bad_examples_change_nothing_of_the_last_layer() -> None:
    compiled = compiled_for("host", {"kind": "last", "batch": 2})
    x, y = examples(compiled, 4, 2)
    adapted = compiled.adapt()
    learner = adapted._simulation.learner
    assert isinstance(learner, LastLayer)
    with pytest.raises(NoRun):
        learner.learn(0)
    with tinyml.connect("host", model=compiled) as device:
        adapter = device.adapter()
        refused(device, "no run since the last example", lambda: adapter.learn(0))
        device.learn(x, y)
        device.run(None, x[:1])
        for label in (-1, CLASSES, 1 << 30):
            refused(device, "out of range", lambda label=label: adapter.learn(label))
        adapter.learn(1)
        refused(device, "no run", lambda: adapter.learn(1))
        refused(device, "no run", adapter.end)
        adapter.begin()
        refused(device, "no run", adapter.end)
        for _ in range(2):
            device.run(None, x[:1])
            adapter.learn(0)
        device.run(None, x[:1])
        refused(device, "batch is full", lambda: adapter.learn(0))
        adapter.end()
        refused(device, "out of range", lambda: adapter.forget(0))
    adapted.run(x[:1])
    with pytest.raises(OutOfRange, match="label 9"):
        learner.learn(9)


def test_an_infinite_loss_changes_nothing() -> None:
    compiled = compiled_for("host", {"kind": "last", "limit": 100, "rate": 0.05})
    x, _ = examples(compiled, 1, 3, 6.0)
    adapted = compiled.adapt()
    with tinyml.connect("host", model=compiled) as device:
        step = 0
        with pytest.raises(ToolError, match="the loss is infinite"):  # noqa: PT012 (one of the steps)
            for step in range(20):  # the labels contradict each other, and the steps are far too long
                device.learn(x, [step % CLASSES])
                adapted.learn(x, [step % CLASSES])
        assert device.adapter().learnt == adapted.learnt
    with pytest.raises(InfiniteLoss):
        adapted.learn(x, [step % CLASSES])


def test_classes_that_are_full_forgotten_or_too_far() -> None:
    compiled = compiled_for("host", {"kind": "prototypes", "classes": 2, "reject": 0.02})
    x, _ = examples(compiled, 5, 6)
    adapted = compiled.adapt()
    with tinyml.connect("host", model=compiled) as device:
        adapter = device.adapter()
        device.run(None, x[:1])
        with pytest.raises(ToolError, match="too few examples"):
            adapter.decide()  # there is no class
        assert device.learn(x[:1], [-1]) == [0]
        assert device.learn(x[1:2], [-1]) == [1]
        adapted.learn(x[:2], [-1, -1])
        device.run(None, x[2:3])
        refused(device, "no free class", lambda: adapter.learn(-1))
        refused(device, "out of range", lambda: adapter.learn(2))
        assert adapter.decide()[0] == -2  # none of them
        device.run(None, x[:1])
        assert adapter.decide()[0] == 0
        adapter.forget(0)
        refused(device, "out of range", lambda: adapter.forget(0))
        assert device.learn(x[3:4], [-1]) == [0]
        found = adapter.learnt
    learner = adapted._simulation.learner
    adapted.run(x[2:3])
    with pytest.raises(Full):
        learner.learn(-1)
    learner.forget(0)  # type: ignore[union-attr]
    adapted.learn(x[3:4], [-1])
    assert adapted.learnt == found


def test_a_class_of_many_examples_forgets_the_oldest() -> None:
    compiled = compiled_for("host", {"kind": "prototypes", "classes": 1})
    x, _ = examples(compiled, 1, 6)
    rows, labels = np.repeat(x, 300, axis=0), np.zeros(300, np.int64)
    adapted = compiled.adapt(rows, labels)
    with tinyml.connect("host", model=compiled) as device:
        device.learn(rows, labels)
        assert device.adapter().learnt == adapted.learnt
        assert device.adapter().count == 300
        device.run(None, x)
        assert device.adapter().decide()[1] < 1e-3


def test_only_bytes_of_the_same_model_are_taken_back() -> None:
    compiled = compiled_for("host", "last")
    x, y = examples(compiled, 3, 1)
    adapted = compiled.adapt(x, y)
    good = adapted.learnt
    damaged = bytearray(good)
    damaged[40] ^= 1
    too_far = bytearray(good)
    too_far[20:24] = struct.pack("<f", 1e9)
    too_far[:4] = struct.pack("<I", zlib.crc32(bytes(too_far[4:])))
    nan = bytearray(good)
    nan[24:28] = struct.pack("<f", float("nan"))
    nan[:4] = struct.pack("<I", zlib.crc32(bytes(nan[4:])))
    other = compiled_for("host", "last", SAMPLES / "digits" / "model.onnx")
    version = bytearray(good)
    version[4] += 1
    wrong = {
        bytes(damaged): (Damaged, "damaged"),
        bytes(too_far): (Damaged, "damaged"),
        bytes(nan): (Damaged, "damaged"),
        bytes(version): (Other, "another model or version"),
    }
    with tinyml.connect("host", model=compiled) as device:
        adapter = device.adapter()
        for data, (kind, words) in wrong.items():
            before = adapted.learnt
            with pytest.raises(kind):
                adapted.restore(data)
            assert adapted.learnt == before
            with pytest.raises(ToolError, match=words):
                adapter.restore(data)
            assert adapter.count == 0
        adapter.restore(good)
        assert adapter.learnt == good
    with pytest.raises(Other):
        other.adapt().restore(good)
    with pytest.raises(Other):
        compiled_for("host", {"kind": "prototypes"}).adapt().restore(good)
    with pytest.raises(Other):
        adapted.restore(good[:10])


def test_what_fails_the_self_test_is_not_kept(tmp_path: Path) -> None:
    plain = compiled_for("host", "last")
    x, _ = examples(plain, 30, 11)
    y = plain.adapt().predict(x)  # so that all are right before it learns
    np.savez(tmp_path / "held.npz", x, labels=y)
    compiled = compiled_for(
        "host", {"kind": "last", "holdout": str(tmp_path / "held.npz"), "rate": 0.0002, "limit": 2}
    )
    assert last_of(compiled).holdout_correct == 30
    lenient = {"kind": "last", "holdout": str(tmp_path / "held.npz"), "tolerance": 0.1}
    assert last_of(compiled_for("host", lenient)).holdout_correct == 27
    many, wrong = np.tile(x, (4, 1, 1, 1)), np.tile((y + 1) % CLASSES, 4)
    adapted = compiled.adapt(many, wrong)
    with tinyml.connect("host", model=compiled) as device:
        adapter = device.adapter()
        device.learn(many, wrong)
        with pytest.raises(ToolError, match="loses accuracy on the self-test"):
            _ = adapter.learnt
        with pytest.raises(ToolError, match="loses accuracy"):
            adapter.check()
        assert adapter.count == 0
        device.learn(x, y)
        adapter.check()
        kept = adapter.learnt
    with pytest.raises(Worse):
        adapted.check()
    adapted.learn(x, y)
    adapted.check()
    assert adapted.learnt == kept


@pytest.mark.parametrize(
    "model,adapt,message",
    [
        (FLOAT, "last", "is not int8 with symmetric weights"),
        (FLOAT, "prototypes", "is not int8"),
        (VIBRATION, "last", "comes from Binary"),
        (GESTURE, "threshold", "neither a score nor as long as one input"),
        (GESTURE, {"kind": "last", "loss": "squared"}, "ends in softmax"),
        (GESTURE, {"kind": "last", "classes": 3}, "'last' has no key 'classes'"),
        (GESTURE, {"kind": "last", "rate": -1}, "rate cannot be '-1'"),
        (GESTURE, {"kind": "last", "rate": "fast"}, "rate cannot be 'fast'"),
        (GESTURE, {"kind": "last", "batch": 2.5}, "batch cannot be '2.5'"),
        (GESTURE, {"kind": "first"}, "unknown kind 'first'"),
        (GESTURE, {"rate": 1}, "'kind' is missing"),
        (GESTURE, {"kind": "last", "rat": 1}, "unknown key 'rat'"),
        (GESTURE, {"kind": "prototypes", "distance": "far"}, "distance cannot be 'far'"),
        (GESTURE, {"kind": "last", "tolerance": 1}, "tolerance cannot be '1'"),
        (GESTURE, 3, "must say what learns"),
        (GESTURE, {"kind": "last", "holdout": "nowhere.npz"}, "there is no holdout file nowhere.npz"),
    ],
)
def test_what_cannot_learn(model: Path, adapt: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        compiled_for("host", adapt, model)


def test_where_it_is_not_offered() -> None:
    with pytest.raises(ConfigError, match="arrives in rows cannot learn"):
        compiled_for("host", "last", io="rows")
    with pytest.raises(ConfigError, match="a model as data does not learn"):
        pack_data(GESTURE, Options(adapt="last"), (), Version(1, 0, 0))
    plain = tinyml.compile(GESTURE, target="host")
    with pytest.raises(ConfigError, match="was not compiled to learn"):
        plain.adapt()
    with tinyml.connect("host", model=plain) as device, pytest.raises(ConfigError, match="does not learn"):
        device.adapter()


def test_a_model_can_be_watched_and_learn_in_the_callers_memory() -> None:
    compiled = compiled_for("host", "prototypes", watch=True)
    as_in_numpy(compiled, "host", count=4)
    text = compiled_for("host", "last", io="caller").files["m.c"]
    assert "tinyml_adapt_dense_s8(&m_adapter, x, y)" in text
