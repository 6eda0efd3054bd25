# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Bounds of what takes its way by data: trees, sorting, boxes. No run exceeds them; the worst is close."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.ops.trees import FEATURES, ML, forest
from tinyml import harness
from tinyml.bounds import bound_files
from tinyml.bounds.image_bounds import STATED
from tinyml.ir import Array
from tinyml.pipeline import Options, compile_model

ELEMENTS = 24


def trees() -> tuple[onnx.NodeProto, list[int]]:
    attributes = forest(6, 4, "target", [0], ["BRANCH_LEQ"], n_targets=1)
    node = helper.make_node("TreeEnsembleRegressor", ["x"], ["y"], "trees", domain=ML, **attributes)
    return node, [1, FEATURES]


def top(count: int) -> tuple[onnx.NodeProto, list[int]]:
    return helper.make_node("TopK", ["x", "k"], ["y", "places"], f"top{count}"), [1, ELEMENTS]


def model_of(node: onnx.NodeProto, shape: list[int]) -> onnx.ModelProto:
    value = helper.make_tensor_value_info
    outputs = [value("y", TensorProto.FLOAT, None)]
    outputs += [value("places", TensorProto.INT64, None)] if len(node.output) > 1 else []
    count = np.asarray([int(node.name.removeprefix("top") or 0) if node.name != "trees" else 0])
    constants = [numpy_helper.from_array(count, "k")] if "k" in node.input else []
    graph = helper.make_graph([node], node.name, [value("x", TensorProto.FLOAT, shape)], outputs, constants)
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid(ML, 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def adversaries(shape: list[int]) -> list[Array]:
    """In order, in reverse, equal, and random."""
    random = np.random.default_rng(38)
    count = int(np.prod(shape))
    ordered = np.arange(count, dtype=np.float32)
    rows: list[Array] = [ordered, -ordered, 0 * ordered]
    rows += [random.normal(0, 2, count) for _ in range(20)]
    return [row.astype(np.float32).reshape(shape) for row in rows]


@pytest.mark.parametrize("core, close", [("cortex-m3", 1.2), ("cortex-m4", 1.01)])
@pytest.mark.parametrize("made", [trees(), top(6), top(ELEMENTS)], ids=["trees", "top", "sort"])
def test_the_worst_run_is_close(
    made: tuple[onnx.NodeProto, list[int]], core: str, close: float, tmp_path: Path
) -> None:
    node, shape = made
    onnx.save(model_of(node, shape), tmp_path / "m.onnx")
    machine = harness.find_machine(f"qemu-{core}")
    compiled = compile_model(tmp_path / "m.onnx", Options("m", core))
    found = bound_files(compiled.files, machine)
    (name,) = compiled.graph.inputs
    runs = harness.run_files(compiled.files, machine.name, [{name: one} for one in adversaries(shape)])
    assert runs.instructions is not None
    assert found.least_instructions <= min(runs.instructions)
    assert max(runs.instructions) <= found.instructions <= close * max(runs.instructions)
    assert (STATED in found.assumptions) == (node.name == "trees")


BOXES, KEPT, OVERLAP = 20, 5, 0.55
CLOSE_TO_ZERO = np.float32(1.4e-45)


def suppression(rows: int) -> onnx.ModelProto:
    """NonMaxSuppression of boxes of one class."""
    value = helper.make_tensor_value_info
    constants = [
        numpy_helper.from_array(np.asarray([rows]), "rows"),
        numpy_helper.from_array(np.asarray([OVERLAP], np.float32), "overlap"),
    ]
    node = helper.make_node("NonMaxSuppression", ["boxes", "scores", "rows", "overlap"], ["y"], "nms")
    inputs = [
        value("boxes", TensorProto.FLOAT, [1, BOXES, 4]),
        value("scores", TensorProto.FLOAT, [1, 1, BOXES]),
    ]
    graph = helper.make_graph([node], "nms", inputs, [value("y", TensorProto.INT64, None)], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def hard_boxes(rows: int) -> list[tuple[Array, Array]]:
    """All chosen boxes overlap each other, but not enough; the others equal the last of them.

    Some are nested; others are so thin that without an FPU, products and quotients take longest. Corners are
    given in both orders.
    """
    random = np.random.default_rng(38)
    found = []
    falling = -np.arange(BOXES, dtype=np.float32)
    for scores in (-falling, falling, 0 * falling, *random.uniform(0, 1, (6, BOXES)).astype(np.float32)):
        place = np.minimum(np.argsort(np.argsort(-scores, kind="stable"), kind="stable"), rows - 2)
        half = np.float32(1.4) ** place
        start = 0.95 * place
        for corners in (
            np.stack([-half, -half, half, half], 1),
            np.stack([start, 0 * start, start + 3.4, 0 * start + CLOSE_TO_ZERO], 1),
            random.uniform(0, 1, (BOXES, 4)),
        ):
            boxes = corners.astype(np.float32)
            found += [(boxes, scores), (boxes[:, [2, 3, 0, 1]], scores)]
    return [(boxes[None], scores[None, None]) for boxes, scores in found]


@pytest.mark.parametrize(
    "core, rows, close",
    [
        ("cortex-m3", KEPT, 1.4),
        ("cortex-m3", BOXES, 2.0),
        *((core, rows, 1.12) for core in ("cortex-m4", "cortex-m7") for rows in (KEPT, BOXES)),
    ],
)
def test_the_worst_choice_of_boxes_is_close(core: str, rows: int, close: float, tmp_path: Path) -> None:
    onnx.save(suppression(rows), tmp_path / "m.onnx")
    machine = harness.find_machine(f"qemu-{core}")
    compiled = compile_model(tmp_path / "m.onnx", Options("m", core))
    found = bound_files(compiled.files, machine)
    names = compiled.graph.inputs
    samples = [dict(zip(names, pair, strict=True)) for pair in hard_boxes(rows)]
    runs = harness.run_files(compiled.files, machine.name, samples)
    assert runs.instructions is not None
    assert found.least_instructions <= min(runs.instructions)
    assert max(runs.instructions) <= found.instructions <= close * max(runs.instructions)


def test_a_tree_that_is_deeper_than_it_says_is_found(tmp_path: Path) -> None:
    """The seeded fault: a comment with fewer levels gives a bound that runs exceed."""
    node, shape = trees()
    onnx.save(model_of(node, shape), tmp_path / "m.onnx")
    machine = harness.find_machine("qemu-cortex-m4")
    compiled = compile_model(tmp_path / "m.onnx", Options("m", "cortex-m4"))
    assert "/* at most 4 turns */" in compiled.files["m.c"]
    wrong = compiled.files["m.c"].replace("/* at most 4 turns */", "/* at most 2 turns */")
    found = bound_files({**compiled.files, "m.c": wrong}, machine)
    (name,) = compiled.graph.inputs
    runs = harness.run_files(compiled.files, machine.name, [{name: one} for one in adversaries(shape)])
    assert runs.instructions is not None
    assert max(runs.instructions) > found.instructions
