# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Models whose input has channels first, as ONNX files of PyTorch have it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tinyml.ir import Graph, Node
from tinyml.ops.transpose import Transpose

CHANNELS, STEPS, CLASSES = 3, 64, 5


def channels_first(graph: Graph) -> Graph:
    """The same model with an input in which channels come first."""
    (name,) = graph.inputs
    _, *extents, channels = graph.tensors[name].shape
    given = replace(graph.tensors[name], name="given", shape=(1, channels, *extents))
    node = Node("first", Transpose((0, 2, 3, 1)), (given.name,), (name,))
    tensors = {**graph.tensors, given.name: given}
    return replace(graph, nodes=(node, *graph.nodes), tensors=tensors, inputs=(given.name,))


def accelerometer(folder: Path) -> Path:
    """What ``torch.onnx.export`` writes for two Conv1d layers and a Linear: x is 1x3x64."""
    rng = np.random.default_rng(7)
    shapes = {
        "w1": (8, CHANNELS, 5),
        "b1": (8,),
        "w2": (12, 8, 3),
        "b2": (12,),
        "w3": (CLASSES, 12),
        "b3": (CLASSES,),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["c1"], kernel_shape=[5], pads=[2, 2]),
        helper.make_node("Relu", ["c1"], ["r1"]),
        helper.make_node("MaxPool", ["r1"], ["p1"], kernel_shape=[2], strides=[2]),
        helper.make_node("Conv", ["p1", "w2", "b2"], ["c2"], kernel_shape=[3], pads=[1, 1]),
        helper.make_node("Relu", ["c2"], ["r2"]),
        helper.make_node("GlobalAveragePool", ["r2"], ["m"]),
        helper.make_node("Flatten", ["m"], ["f"]),
        helper.make_node("Gemm", ["f", "w3", "b3"], ["y"], transB=1),
    ]
    graph = helper.make_graph(
        nodes,
        "accelerometer",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, CHANNELS, STEPS])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, CLASSES])],
        [
            numpy_helper.from_array(rng.normal(0, 0.3, shape).astype(np.float32), name)
            for name, shape in shapes.items()
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = folder / "accelerometer.onnx"
    onnx.save(model, path)
    return path


def movements(count: int, seed: int = 0) -> np.ndarray:
    """Inputs of it, with a level for each channel."""
    rng = np.random.default_rng(seed)
    levels = np.array([0.0, 0.5, 2.0], np.float32)[:, np.newaxis]
    return (rng.normal(0, 1, (count, 1, CHANNELS, STEPS)) + levels).astype(np.float32)
