# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Policies as ML-Agents exports them: a random action beside the deterministic one."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import tinyml
from tests.first_sight import Case, Holds, Refused, Right
from tests.support.onnx_models import model, node
from tests.support.tflite_writer import Call, Part, Value, write

RNG = np.random.default_rng(3)
WEIGHTS = RNG.normal(0, 0.4, (6, 4)).astype(np.float32)


def policy() -> bytes:
    nodes = [
        node("MatMul", "obs w", "mean"),
        node("RandomNormalLike", "mean", "noise"),
        node("Mul", "noise spread", "scaled"),
        node("Add", "mean scaled", "action"),
        node("Tanh", "mean", "deterministic"),
        node("Add", "scaled mask", "masked"),
    ]
    inputs = {"obs": [1, 6], "mask": [1, 4]}
    return model(nodes, inputs, "action deterministic masked", w=WEIGHTS, spread=np.float32(0.2))


def two_heads() -> bytes:
    values = [Value("x", (1, 4)), Value("noise", (1, 4)), Value("y", (1, 4)), Value("z", (1, 4))]
    values.append(Value.constant("shape", np.array([1, 4], np.int32)))
    calls = [
        Call("RANDOM_STANDARD_NORMAL", ["shape"], ["noise"], "RandomOptions"),
        Call("ADD", ["x", "noise"], ["y"], "AddOptions"),
        Call("LOGISTIC", ["x"], ["z"]),
    ]
    return write(Part(values, calls, ["x"], ["y", "z"]))


def in_python(folder: Path) -> None:
    """tinyml.load(outputs=…) is what compile() and quantize() then see."""
    (folder / "policy.onnx").write_bytes(policy())
    chosen = tinyml.load(folder / "policy.onnx", outputs=["deterministic"])
    assert [port.name for port in chosen.outputs] == ["deterministic"]
    assert [port.name for port in chosen.inputs] == ["obs"]
    compiled = tinyml.compile(chosen, target="host")
    assert [port.name for port in compiled.outputs] == ["deterministic"]
    calibration = RNG.normal(0, 1, (16, 6)).astype(np.float32)
    assert [port.name for port in tinyml.quantize(chosen, calibration).outputs] == ["deterministic"]


CASES: list[Case] = [
    Holds("python", in_python),
    Refused("all", policy, ("RandomNormalLike", "--outputs deterministic")),
    Right("one", policy, outputs=("deterministic",)),
    Refused("random", policy, ("RandomNormalLike", "tinyml ops"), outputs=("action",)),
    Refused("unknown", policy, ("no output called speed", "action, deterministic"), outputs=("speed",)),
    Refused("tflite_all", two_heads, ("RANDOM_STANDARD_NORMAL", "--outputs z"), "tflite"),
    Right("tflite_one", two_heads, "tflite", outputs=("z",)),
]
