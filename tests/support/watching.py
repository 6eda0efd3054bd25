# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Watched models on machines, and the same counting in numpy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import tinyml
from tinyml.api.compiled import CompiledModel
from tinyml.api.replaying import counter_of
from tinyml.ir import Array
from tinyml.watch.figures import Figures, figures


def several(folder: Path) -> Path:
    """Float inputs x and z; scores p, a single value v, and many values w."""
    rng = np.random.default_rng(5)
    constants = {"a": (12, 4), "b": (5, 4), "c": (12, 1), "d": (5, 80)}
    nodes = [
        helper.make_node("MatMul", ["x", "a"], ["xa"]),
        helper.make_node("MatMul", ["z", "b"], ["zb"]),
        helper.make_node("Add", ["xa", "zb"], ["s"]),
        helper.make_node("Softmax", ["s"], ["p"], axis=-1),
        helper.make_node("MatMul", ["x", "c"], ["v"]),
        helper.make_node("MatMul", ["z", "d"], ["w"]),
    ]
    graph = helper.make_graph(
        nodes,
        "several",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, e]) for n, e in (("x", 12), ("z", 5))],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in ("p", "v", "w")],
        [
            numpy_helper.from_array(rng.normal(0, 1, shape).astype(np.float32), name)
            for name, shape in constants.items()
        ],
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, model_version=7
    )
    onnx.save(model, folder / "several.onnx")
    typical = noise(200, 1)
    np.savez(folder / "typical.npz", x=typical["x"], z=typical["z"])
    return folder / "several.onnx"


CHANNELS, STEPS = 5, 12


def model_of_steps(folder: Path, rows: int = STEPS, channels: int = CHANNELS) -> Path:
    """A convolution over steps of several channels, and scores."""
    rng = np.random.default_rng(6)
    constants = {"w": (4, channels, 3, 1), "d": (4 * rows, 3)}
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[0, 3, 1, 2]),
        helper.make_node("Conv", ["t", "w"], ["c"], pads=[1, 0, 1, 0]),
        helper.make_node("Flatten", ["c"], ["f"]),
        helper.make_node("MatMul", ["f", "d"], ["s"]),
        helper.make_node("Softmax", ["s"], ["p"], axis=-1),
    ]
    graph = helper.make_graph(
        nodes,
        "steps",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, rows, 1, channels])],
        [helper.make_tensor_value_info("p", TensorProto.FLOAT, None)],
        [
            numpy_helper.from_array(rng.normal(0, 0.3, shape).astype(np.float32), name)
            for name, shape in constants.items()
        ],
    )
    path = folder / "steps.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def steps(count: int, seed: int) -> Array:
    """Channels of very different sizes."""
    rng = np.random.default_rng(seed)
    sizes = 10.0 ** np.arange(CHANNELS)
    return (rng.normal(0, 1, (count, STEPS, 1, CHANNELS)) * sizes).astype(np.float32)


def noise(rows: int, seed: int, scale: float = 1.0) -> dict[str, Array]:
    """Inputs of ``several``."""
    rng = np.random.default_rng(seed)
    return {
        name: rng.normal(0, scale, (rows, extent)).astype(np.float32)
        for name, extent in (("x", 12), ("z", 5))
    }


def rows_of(data: dict[str, Array]) -> list[dict[str, Array]]:
    count = len(next(iter(data.values())))
    return [{name: array[i : i + 1] for name, array in data.items()} for i in range(count)]


def on_device(compiled: CompiledModel, machine: str, data: dict[str, Array]) -> tuple[Figures, Figures]:
    """What a machine counted, and what numpy counts for the outputs that it computed."""
    with tinyml.connect(machine, model=compiled) as device:
        ran = device.run(None, data)
        counted = device.watch(reset=True)
        assert device.watch().runs == 0
    return counted, in_numpy(compiled, rows_of(data), ran.runs)


def in_numpy(compiled: CompiledModel, inputs: Sequence[Any], outputs: Sequence[Any]) -> Figures:
    counter = counter_of(compiled)
    for seen, made in zip(inputs, outputs, strict=True):
        counter.add(seen, made)
    return figures(counter.report())


def without_cycles(counted: Figures) -> bytes:
    """The CBOR of the counters, without those of a clock that only the machine has."""
    return figures({**counted.raw, "cycles": [0, 0, 0]}).cbor
