# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Train the detector on pictures.npz, as record.py writes it, and write ``model_float.onnx``.

    python train.py

A convolutional network on pictures of 40x32 greys, trained in numpy, with relu after every convolution but
the last. Each cell of a grid of 10x8 says whether the middle of a person is in it, where exactly, and how
large the person is:

    1x32x40 -> conv 3x3 /2, 8 -> conv 3x3 /2, 16 -> conv 3x3, 24 -> conv 5x5, 24 -> conv 1x1, 1 and 4

The end of the model turns the cells into boxes and keeps the best of those that overlap (NonMaxSuppression).
Every tenth picture is held back, in test.npz; calibration.npz has 200 of the others.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from threadpoolctl import threadpool_limits  # comes with scikit-learn

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "common"))

from network import Array, Conv, Layer, Relu, constants, finished, train

ROWS, COLUMNS = 32, 40  # of the model's input
GRID = (8, 10)
CELL = 4  # pixels of the input on a side
UNIT = 16.0  # pixels of the input that the network's 1.0 stands for
MOST, OVERLAP, SURE = 4, 0.4, 0.6  # of NonMaxSuppression
SEED = 4


def shrunk(pictures: Array) -> Array:
    """The input of the model, from 0 to 1: samples/common/shrink.c computes the same."""
    factor = pictures.shape[1] // ROWS
    tiles = pictures.astype(int).reshape(len(pictures), ROWS, factor, COLUMNS, factor)
    return (tiles.sum(axis=(2, 4)) // factor**2 / 255).astype(np.float32)[:, np.newaxis]


def network() -> list[Layer]:
    random = np.random.default_rng(SEED)
    return [
        Conv("conv1", (1, 8), (3, 3), (2, 2), (1, 1), random=random),
        Relu(),
        Conv("conv2", (8, 16), (3, 3), (2, 2), (1, 1), random=random),
        Relu(),
        Conv("conv3", (16, 24), (3, 3), (1, 1), (1, 1), random=random),
        Relu(),
        Conv("conv4", (24, 24), (5, 5), (1, 1), (2, 2), random=random),
        Relu(),
        Conv("cells", (24, 5), (1, 1), random=random),
    ]


def middles() -> Array:
    """The middle of every cell, across and down, in pixels of the input."""
    down, across = np.meshgrid(np.arange(GRID[0]), np.arange(GRID[1]), indexing="ij")
    return np.stack([across, down]) * CELL + CELL / 2


def wanted(boxes: Array) -> Array:
    """For each cell: 1 for a person, 0 for nobody, -1 beside a person; and the four numbers of the box."""
    result = np.zeros((len(boxes), 5, *GRID))
    for number, people in enumerate(boxes):
        here = people[people[:, 3] > 0]
        cells = np.minimum((here[:, 1::-1] / CELL).astype(int), np.array(GRID) - 1)
        for row, column in cells:
            around = result[number, 0, max(row - 1, 0) : row + 2, max(column - 1, 0) : column + 2]
            around[around == 0] = -1
        for (row, column), (x, y, width, height) in zip(cells, here, strict=True):
            across, down = middles()[:, row, column]
            result[number, :, row, column] = 1, *(np.array([x - across, y - down, width, height]) / UNIT)
    return result


def loss(found: Array, right: Array) -> tuple[float, Array]:
    """Cross entropy of being a person, and the squared error of the boxes of people."""
    score = 1 / (1 + np.exp(-found[:, 0]))
    person = right[:, 0] == 1
    counts = right[:, 0] >= 0
    people = max(int(person.sum()), 1)
    grad = np.zeros_like(found)
    grad[:, 0] = counts * (score - person) * np.where(person, 2.0, 1.0) / people
    grad[:, 1:] = 2 * (found[:, 1:] - right[:, 1:]) * person[:, np.newaxis] / people
    entropy = -np.log(np.where(person, score, 1 - score) + 1e-12)[counts].sum() / people
    error = ((found[:, 1:] - right[:, 1:]) ** 2 * person[:, np.newaxis]).sum() / people
    return float(entropy + error), grad


def model(layers: list[Layer]) -> onnx.ModelProto:
    """The network, and what makes boxes of its cells: middle, width and height in pixels of the input."""
    count = GRID[0] * GRID[1]
    offsets = np.zeros((1, count, 4), np.float32)
    offsets[0, :, :2] = middles().reshape(2, -1).T
    values: dict[str, Array] = {
        "one_class": np.array([1, 1, count]),
        "four_rows": np.array([1, 4, count]),
        "one": np.array([1]),
        "unit": np.array(UNIT, np.float32),
        "offsets": offsets,
        "most": np.array([MOST]),
        "overlap": np.array([OVERLAP], np.float32),
        "sure": np.array([SURE], np.float32),
        "box_number": np.array([2]),
        "three": np.array([3]),
        "whole": np.array([-1]),
        "per_box": np.array([-1, 4]),
    }
    *body, cells = layers
    nodes, at = [], "input"
    for index, layer in enumerate(body):
        nodes.append(layer.node(at, layer.name or f"relu{index}"))
        at = layer.name or f"relu{index}"
    # Two layers instead of one, because int8 gives each its own range.
    for name, part in (("person", slice(0, 1)), ("place", slice(1, 5))):
        values |= {f"{name}.{key}": array[part].astype(np.float32) for key, array in cells.weights.items()}
        nodes.append(helper.make_node("Conv", [at, f"{name}.weight", f"{name}.bias"], [name], name))
    node = helper.make_node
    nodes += [
        node("Sigmoid", ["person"], ["likely"], "likely"),
        node("Reshape", ["likely", "one_class"], ["scored"], "scored"),
        node("Reshape", ["place", "four_rows"], ["rows"], "rows"),
        node("Transpose", ["rows"], ["columns"], "columns", perm=[0, 2, 1]),
        node("Mul", ["columns", "unit"], ["scaled"], "scaled"),
        node("Add", ["scaled", "offsets"], ["candidates"], "candidates"),
        node(
            "NonMaxSuppression",
            ["candidates", "scored", "most", "overlap", "sure"],
            ["chosen"],
            "suppress",
            center_point_box=1,
        ),
        node("Slice", ["chosen", "box_number", "three", "one"], ["numbers"], "numbers"),
        node("Reshape", ["numbers", "whole"], ["number"], "number"),
        node("Reshape", ["candidates", "per_box"], ["all_boxes"], "all_boxes"),
        node("Reshape", ["scored", "whole"], ["all_scores"], "all_scores"),
        node("Gather", ["all_boxes", "number"], ["boxes"], "boxes", axis=0),
        node("Gather", ["all_scores", "number"], ["scores"], "scores", axis=0),
    ]
    numbers = {name: np.asarray(value) for name, value in values.items()}
    tensors = [
        numpy_helper.from_array(value if value.dtype == np.float32 else value.astype(np.int64), name)
        for name, value in numbers.items()
    ]
    graph = helper.make_graph(
        nodes,
        "people",
        [helper.make_tensor_value_info("input", TensorProto.FLOAT, (1, 1, ROWS, COLUMNS))],
        [
            helper.make_tensor_value_info("boxes", TensorProto.FLOAT, ("people", 4)),
            helper.make_tensor_value_info("scores", TensorProto.FLOAT, ("people",)),
        ],
        [*constants(body), *tensors],
    )
    return finished(graph)


def overlap(one: Array, other: Array) -> float:
    """The intersection of two boxes over their union."""
    low = np.maximum(one[:2] - one[2:] / 2, other[:2] - other[2:] / 2)
    high = np.minimum(one[:2] + one[2:] / 2, other[:2] + other[2:] / 2)
    shared = float(np.prod(np.maximum(high - low, 0)))
    return shared / float(np.prod(one[2:]) + np.prod(other[2:]) - shared)


def matches(found: Array, people: Array) -> int:
    """How many people have a box of their own that covers about the same."""
    left = list(people)
    hits = 0
    for box in found:
        best = max(left, key=lambda one: overlap(box, one), default=None)
        if best is not None and overlap(box, best) >= 0.5:
            left = [one for one in left if one is not best]
            hits += 1
    return hits


def main() -> None:
    path = HERE / "pictures.npz"
    if not path.is_file():
        sys.exit("no pictures.npz: run record.py, or bring your own")
    with np.load(path) as data:
        inputs, boxes = shrunk(data["pictures"]), data["boxes"] * (ROWS / data["pictures"].shape[1])
    held_back = np.arange(len(boxes)) % 10 == 0
    layers = network()
    with threadpool_limits(1):
        train(layers, inputs[~held_back], wanted(boxes[~held_back]), loss, epochs=20, seed=SEED)
    (HERE / "model_float.onnx").write_bytes(model(layers).SerializeToString())
    np.savez(HERE / "calibration.npz", input=inputs[~held_back][:200])
    np.savez(HERE / "test.npz", input=inputs[held_back], boxes=boxes[held_back])
    count = sum(value.size for layer in layers for value in layer.weights.values())
    print(f"{len(inputs)} pictures, {count} parameters -> model_float.onnx")


if __name__ == "__main__":
    main()
