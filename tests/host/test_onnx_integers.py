# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""ONNX operators on int8 and uint8 compute on the stored integers, between quantised layers too."""
# ruff: noqa: E501 (one case to a line)

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.support.interpret import interpret
from tinyml.cores.targets import find_target
from tinyml.importers import ModelFile, read
from tinyml.pipeline import choose_kernels, optimize
from tinyml.reference import session

SHAPE = (1, 2, 5, 5)


def operators(kind: type) -> dict[str, tuple[str, str, dict[str, Any], dict[str, Any]]]:
    """Operator, inputs (q is the tensor), attributes, constants."""
    widths = {"w": np.array([0, 0, 1, 1, 0, 0, 1, 1])}
    return {
        "Pad": ("Pad", "q w v", {}, {**widths, "v": kind(7)}),
        "Pad with 0": ("Pad", "q w", {}, widths),
        "Clip": ("Clip", "q lo hi", {}, {"lo": kind(10), "hi": kind(60)}),
        "Max": ("Max", "q v", {}, {"v": kind(20)}),
        "Abs": ("Abs", "q", {}, {}),
        "MaxPool": ("MaxPool", "q", {"kernel_shape": [2, 2]}, {}),
        "ReduceMax": ("ReduceMax", "q", {"keepdims": 1}, {}),
        "Concat": ("Concat", "q v", {"axis": 1}, {"v": np.full((1, 1, 5, 5), 9, kind)}),
        "Where": ("Where", "c q v", {}, {"c": np.arange(50).reshape(SHAPE) % 2 == 0, "v": kind(9)}),
        "Transpose": ("Transpose", "q", {"perm": [0, 2, 3, 1]}, {}),
        "ScatterElements": (
            "ScatterElements", "q i u", {}, {"i": np.zeros((1, 1, 1, 1), np.int64), "u": np.full((1, 1, 1, 1), 5, kind)}
        ),
        **({"Relu": ("Relu", "q", {}, {})} if kind is np.int8 else {}),
    }  # fmt: skip


@pytest.mark.parametrize("plain", [False, True], ids=["quantised", "plain"])
@pytest.mark.parametrize("kind", [np.int8, np.uint8])
def test_stored_integers(kind: type, plain: bool) -> None:
    for name, (op_type, inputs, attributes, constants) in operators(kind).items():
        found, wanted = results(kind, plain, op_type, inputs.split(), attributes, constants)
        assert np.allclose(found, wanted, atol=1e-5), name


def results(
    kind: type,
    plain: bool,
    op_type: str,
    inputs: list[str],
    attributes: dict[str, Any],
    constants: dict[str, Any],
) -> tuple[Any, Any]:
    """Ours, and those of onnxruntime. ``plain``: the model's input is the integer tensor."""
    rng = np.random.default_rng(1)
    element = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    if plain:
        limits = np.iinfo(kind)
        x: Any = rng.integers(limits.min, limits.max, SHAPE).astype(kind)
        nodes = []
    else:
        x = (rng.normal(size=SHAPE) * 5).astype(np.float32)
        nodes = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"])]
    inputs = ["x" if name == "q" and plain else name for name in inputs]
    nodes += [
        helper.make_node(op_type, inputs, ["r"], **attributes),
        helper.make_node("DequantizeLinear", ["r", "s", "z"], ["y"]),
    ]
    constants = {"s": np.float32(0.1), "z": kind(3 if kind is np.int8 else 100), **constants}
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", element if plain else TensorProto.FLOAT, SHAPE)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.asarray(value), key) for key, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    wanted = session.answers(model, {"x": x})[0]
    ours = optimize(read(ModelFile(Path("integers.onnx"), model.SerializeToString())))
    choose_kernels(ours, find_target("cortex-m3"), "portable", False)
    return interpret(ours, {"x": x})["y"], wanted
