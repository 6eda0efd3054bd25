# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Boxes of detectors as users see them: listed by `run`, drawn by `report`, and kept by `quantize`."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tinyml
from tests.support.tflite_writer import Call, Part, Value, write
from tinyml.datasets.detections import Detection, detections
from tinyml.ir import Array
from tinyml.report.boxes_svg import as_picture, boxes_svg
from tinyml.verbs.cli import main

ROOT = Path(__file__).resolve().parents[2]
PEOPLE = ROOT / "samples" / "people" / "model.onnx"
spec = importlib.util.spec_from_file_location("greys", ROOT / "zephyr_module" / "scripts" / "greys.py")
assert spec is not None
assert spec.loader is not None
greys = importlib.util.module_from_spec(spec)
spec.loader.exec_module(greys)

SIDES = np.array([[[1, 2, 5, 9], [5, 9, 1, 2], [20, 20, 30, 30]]], np.float32)
"""Corners, y before x; the second box is the first one from its other corner."""


def suppressing(center: int, extra: bool = True) -> bytes:
    """Boxes and scores in; what is chosen of them out, with classes."""
    numbers = {"most": [5], "two": [2], "three": [3], "one": [1], "whole": [-1], "per_box": [-1, 4]}
    constants = [numpy_helper.from_array(np.array(value, np.int64), key) for key, value in numbers.items()]
    limits = {"overlap": 0.5, "sure": 0.3}
    constants += [numpy_helper.from_array(np.array([v], np.float32), key) for key, v in limits.items()]
    node = helper.make_node
    nodes = [
        node(
            "NonMaxSuppression",
            ["boxes", "scores", "most", "overlap", "sure"],
            ["chosen"],
            center_point_box=center,
        ),
        node("Slice", ["chosen", "two", "three", "one"], ["numbers"]),
        node("Reshape", ["numbers", "whole"], ["number"]),
        node("Reshape", ["boxes", "per_box"], ["all_boxes"]),
        node("Gather", ["all_boxes", "number"], ["kept"]),
        node("Slice", ["chosen", "one", "two", "one"], ["kinds"]),
        node("Reshape", ["kinds", "whole"], ["kind"]),
    ]
    values = [("kept", TensorProto.FLOAT, ("n", 4)), ("kind", TensorProto.INT64, ("n",))]
    given = [("boxes", (1, 3, 4)), ("scores", (1, 2, 3))]
    graph = helper.make_graph(
        nodes,
        "suppressing",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in given],
        [helper.make_tensor_value_info(*value) for value in (values if extra else values[1:])],
        constants,
    )
    opset = [helper.make_opsetid("", 17)]
    return bytes(helper.make_model(graph, opset_imports=opset, ir_version=8).SerializeToString())


def found_by(content: bytes, tmp_path: Path, boxes: Array = SIDES) -> list[Detection] | None:
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    scores = np.array([[[0.9, 0.8, 0.1], [0.1, 0.2, 0.7]]], np.float32)
    compiled = tinyml.compile(path)
    result = tinyml.run(compiled, {"boxes": boxes, "scores": scores})
    return detections(compiled.built.graph, result.runs[0])


def test_corners_in_either_order(tmp_path: Path) -> None:
    first, second = found_by(suppressing(0), tmp_path) or []
    assert first == Detection(2, 1, 9, 5, -1.0, 0)
    assert second == Detection(20, 20, 30, 30, -1.0, 1)


def test_middle_and_size(tmp_path: Path) -> None:
    boxes = np.array([[[10, 20, 4, 8], [10, 20, 4, 8], [30, 30, 2, 2]]], np.float32)
    first, _ = found_by(suppressing(1), tmp_path, boxes) or []
    assert first == Detection(8, 16, 12, 24, -1.0, 0)


def test_outputs_without_boxes(tmp_path: Path) -> None:
    assert found_by(suppressing(0, extra=False), tmp_path) is None


def tflite_detector(version: str, outputs: list[str]) -> bytes:
    """Boxes, scores and classes by the indices that TFLite's suppression chooses."""
    numbers = {
        "most": np.int32(2),
        "overlap": np.float32(0.5),
        "sure": np.float32(0.3),
        "sigma": np.float32(0),
    }
    values = [Value("all_boxes", (3, 4)), Value("all_scores", (3,)), Value("all_kinds", (3,), "int32")]
    values += [Value.constant(name, np.asarray(number)) for name, number in numbers.items()]
    values += [Value("place", (2,), "int32"), Value("own", (2,)), Value("number", (), "int32")]
    values += [Value("boxes", (2, 4)), Value("scores", (2,)), Value("kinds", (2,), "int32")]
    inputs, results = ["all_boxes", "all_scores", *numbers], ["place", "own", "number"]
    if version == "V4":
        inputs.remove("sigma")
        results.remove("own")
    calls = [Call(f"NON_MAX_SUPPRESSION_{version}", inputs, results, f"NonMaxSuppression{version}Options")]
    calls += [
        Call("GATHER", [f"all_{name}", "place"], [name], "GatherOptions", {"Axis": 0})
        for name in ("boxes", "scores", "kinds")
    ]
    return write(Part(values, calls, ["all_boxes", "all_scores", "all_kinds"], outputs))


@pytest.mark.parametrize(
    "version,outputs,first",
    [
        ("V4", ["boxes", "scores", "kinds", "number"], Detection(2, 1, 9, 5, 0.75, 8)),
        ("V5", ["place", "own", "boxes", "number"], Detection(2, 1, 9, 5, 0.75, -1)),
        ("V4", ["boxes", "scores"], None),
        ("V5", ["place", "own", "number"], None),
    ],
    ids=["gathered", "own scores", "no number", "no boxes"],
)
def test_suppression_of_tflite(
    version: str, outputs: list[str], first: Detection | None, tmp_path: Path
) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(tflite_detector(version, outputs))
    compiled = tinyml.compile(path)
    inputs = {
        "all_boxes": SIDES[:, [0, 1, 1]],
        "all_scores": np.array([[0.75, 0.5, 0.25]], np.float32),
        "all_kinds": np.array([[8, 9, 7]], np.int32),
    }
    result = tinyml.run(compiled, {k: v for k, v in inputs.items() if k in compiled.built.graph.inputs})
    found = detections(compiled.built.graph, result.runs[0])
    assert found == (None if first is None else [first])


def test_names() -> None:
    assert Detection(0, 0, 1, 1).name(["cat"]) == "box"
    assert Detection(0, 0, 1, 1, kind=0).name(["cat"]) == "cat"
    assert Detection(0, 0, 1, 1, kind=7).name(["cat"]) == "class 7"


@pytest.fixture(scope="module")
def picture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The third picture of the sample's replay, in which there are two people, and an empty one."""
    values, width = greys.read_png(PEOPLE.with_name("replay.png"))
    strip = np.frombuffer(values, np.uint8).reshape(64, width)
    shrunk = [
        strip[:, left : left + 80].astype(int).reshape(32, 2, 40, 2).sum(axis=(1, 3)) // 4
        for left in (160, 0)
    ]
    path = tmp_path_factory.mktemp("picture") / "picture.npz"
    np.savez(path, input=np.stack(shrunk)[:, np.newaxis].astype(np.float32) / 255)
    return path


def test_run_lists_the_boxes(picture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(PEOPLE), "--input", str(picture)]) == 0
    said = capsys.readouterr().out
    assert "row 0: 2 boxes" in said
    assert "row 1: 0 boxes" in said
    assert "0.999" in said


def test_the_page_shows_them_on_the_picture(picture: Path, tmp_path: Path) -> None:
    page = tmp_path / "people.html"
    assert main(["report", str(PEOPLE), "--input", str(picture), "--html", str(page)]) == 0
    text = page.read_text()
    drawing = text[text.index('<svg class="boxes"') :].split("</svg>")[0]
    assert drawing.count("<rect") == 2
    assert "data:image/png;base64," in drawing
    assert ">box 99 %<" in drawing or ">box 100 %<" in drawing


def test_the_page_of_a_model_without_boxes(
    picture: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    digits = ROOT / "samples" / "digits" / "model.onnx"
    options = ["--html", str(tmp_path / "page.html")]
    given = tmp_path / "digit.npy"
    np.save(given, np.zeros((1, 1, 8, 8), np.float32))
    assert main(["report", str(digits), "--input", str(given), *options]) == 1
    assert "is no detector: its outputs are not boxes" in capsys.readouterr().err
    assert main(["report", str(PEOPLE), "--input", str(picture)]) == 1
    assert "--html FILE" in capsys.readouterr().err


@pytest.mark.parametrize("shape", [(1, 3, 4, 6), (1, 4, 6, 3), (4, 6), (1, 1, 4, 6)], ids=str)
def test_inputs_that_are_pictures(shape: tuple[int, ...]) -> None:
    from tinyml.ir import DType, Tensor

    values = np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape)
    made = as_picture(values, Tensor("x", shape, DType.FLOAT32))
    assert made is not None
    assert made.shape[:2] == (4, 6)
    assert (made.min(), made.max()) == (0, 255)


def test_boxes_that_are_shares_of_the_picture() -> None:
    drawing = boxes_svg(np.zeros((4, 8, 1), np.uint8), [Detection(0.25, 0.5, 0.5, 1.0, 0.5, 3)], [])
    assert '<rect x="120.0" y="120.0" width="120.0" height="120.0"/>' in drawing
    assert "class 3 50 %" in drawing


def test_a_detector_is_quantised_by_what_it_selects_from(tmp_path: Path) -> None:
    """Float and int8 may find different numbers of boxes, which cannot be compared one by one."""
    people = onnx.load(PEOPLE.with_name("model.onnx"))
    assert any(node.op_type == "NonMaxSuppression" for node in people.graph.node)
    random = np.random.default_rng(3)
    path = tmp_path / "float.onnx"
    path.write_bytes(scored(random))
    inputs = random.normal(0, 1, (16, 1, 4, 4)).astype(np.float32)
    result = tinyml.quantize(path, inputs)
    assert set(result.report.outputs) == {"likely", "candidates"}


def scored(random: np.random.Generator) -> bytes:
    """A convolution that gives each of 16 cells a box and a score, then NonMaxSuppression."""
    constants = {
        "w": random.normal(0, 1, (5, 1, 3, 3)).astype(np.float32),
        "rows": np.array([1, 5, 16]),
        "zero": np.array([0]),
        "one": np.array([1]),
        "five": np.array([5]),
        "most": np.array([4]),
        "overlap": np.array([0.5], np.float32),
        "sure": np.array([0.6], np.float32),
    }
    node = helper.make_node
    nodes = [
        node("Conv", ["x", "w"], ["conv"], "conv", pads=[1, 1, 1, 1]),
        node("Reshape", ["conv", "rows"], ["cells"], "cells"),
        node("Slice", ["cells", "zero", "one", "one"], ["logits"], "logits"),
        node("Sigmoid", ["logits"], ["likely"], "likely"),
        node("Slice", ["cells", "one", "five", "one"], ["parts"], "parts"),
        node("Transpose", ["parts"], ["candidates"], "candidates", perm=[0, 2, 1]),
        node(
            "NonMaxSuppression", ["candidates", "likely", "most", "overlap", "sure"], ["chosen"], "suppress"
        ),
    ]
    graph = helper.make_graph(
        nodes,
        "scored",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 1, 4, 4))],
        [helper.make_tensor_value_info("chosen", TensorProto.INT64, ("n", 3))],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(model.SerializeToString())
