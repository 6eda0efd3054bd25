# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Models that learn, on machines and in numpy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import tinyml
from tinyml.api.compiled import CompiledModel
from tinyml.cores.machines import find_machine
from tinyml.ir import Array

SAMPLES = Path(__file__).parents[2] / "samples"
GESTURE = SAMPLES / "gesture" / "model.onnx"
CLASSES = 4


def compiled_for(machine: str, adapt: Any, model: Path = GESTURE, **more: Any) -> CompiledModel:
    return tinyml.compile(model, target=find_machine(machine).target.name, adapt=adapt, name="m", **more)


def examples(compiled: CompiledModel, count: int, seed: int, scale: float = 2.0) -> tuple[Array, Array]:
    """Inputs that are noise, and labels."""
    rng = np.random.default_rng(seed)
    x = rng.normal(0, scale, (count, *compiled.inputs[0].shape[1:])).astype(np.float32)
    return x, rng.integers(0, CLASSES, count)


def as_in_numpy(
    compiled: CompiledModel, machine: str, count: int = 12, batch: int = 1, data: Array | None = None
) -> None:
    """What a machine learns, stores, takes back and decides is what numpy does, in every bit."""
    x, y = examples(compiled, count, 5)
    x = x if data is None else data[:count]
    expected = compiled.adapt()
    with tinyml.connect(machine, model=compiled) as device:
        adapter = device.adapter()
        for start in range(0, count, batch):
            rows = slice(start, start + batch)
            device.learn(x[rows], y[rows], batch=batch > 1)
            expected.learn(x[rows], y[rows], batch=batch > 1)
        found = adapter.learnt
        assert found == expected.learnt
        assert any(found[20:])
        ran = device.run(None, x)
        for name, outputs in expected.run(x).items():
            assert np.array_equal(ran.outputs[name].reshape(-1), outputs.reshape(-1))
        if "last" not in repr(expected):
            assert adapter.decide() == expected.decide()
        adapter.factory()
        assert not any(adapter.learnt[16:])
        adapter.restore(found)
        assert adapter.learnt == found
        assert adapter.count == expected.count


def autoencoder(folder: Path, basis: Array | None = None) -> Path:
    """Float, with an output as long as its input. It rebuilds what consists of the rows of ``basis``."""
    rng = np.random.default_rng(8)
    weights = {"a": rng.normal(0, 0.4, (12, 5)), "b": rng.normal(0, 0.4, (5, 12))}
    if basis is not None:
        into = np.linalg.pinv(basis)
        weights = {"a": np.concatenate([into, -into], axis=1), "b": np.concatenate([basis, -basis])}
    nodes = [
        helper.make_node("MatMul", ["x", "a"], ["h"]),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("MatMul", ["r", "b"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "autoencoder",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 12])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 12])],
        [numpy_helper.from_array(values.astype(np.float32), name) for name, values in weights.items()],
    )
    path = folder / "autoencoder.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def regression(folder: Path) -> Path:
    """Int8, with two outputs that are values."""
    rng = np.random.default_rng(9)
    nodes = [
        helper.make_node("Gemm", ["x", "a", "c"], ["h"]),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("Gemm", ["r", "b", "d"], ["y"]),
    ]
    shapes = {"a": (6, 8), "c": (8,), "b": (8, 2), "d": (2,)}
    graph = helper.make_graph(
        nodes,
        "regression",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 6])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 2])],
        [
            numpy_helper.from_array(rng.normal(0, 0.6, shape).astype(np.float32), name)
            for name, shape in shapes.items()
        ],
    )
    path = folder / "regression.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    made = tinyml.quantize(path, rng.normal(0, 1, (64, 6)).astype(np.float32))
    made.save(folder / "regression8.onnx")
    return folder / "regression8.onnx"
