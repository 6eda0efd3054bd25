# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""TFLite_Detection_PostProcess: random detectors in C against LiteRT's own operator, and files that lie."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flatbuffers import flexbuffers

from tests.support.batch import Item, run_batch
from tests.support.tflite_writer import Call, Part, Value, write
from tinyml.base.errors import TinymlError
from tinyml.emit.model import Provenance
from tinyml.importers import tflite_graph
from tinyml.ir import Array, Quant
from tinyml.ir.interpreter import interpret
from tinyml.pipeline import Options, compile_graph, optimize

NAME = "TFLite_Detection_PostProcess"
ORIGIN = Provenance("m.tflite", "0" * 64, "")
USUAL: dict[str, Any] = {
    "max_detections": 6,
    "max_classes_per_detection": 1,
    "detections_per_class": 4,
    "use_regular_nms": False,
    "nms_score_threshold": 0.3,
    "nms_iou_threshold": 0.5,
    "num_classes": 3,
    "y_scale": 10.0,
    "x_scale": 10.0,
    "h_scale": 5.0,
    "w_scale": 5.0,
}


def stored(options: Mapping[str, Any]) -> bytes:
    """Options as the converter writes them."""
    out: Any = flexbuffers.Builder()
    with out.Map():
        for name, value in options.items():
            out.Key(name)
            {bool: out.Bool, int: out.Int, float: out.Float}[type(value)](value)
    return bytes(out.Finish())


def detector(
    options: Mapping[str, Any],
    boxes: int,
    scores: int,
    anchors: Value,
    kind: str = "float32",
    numbers: int = 4,
) -> bytes:
    quants = {"float32": (None, None)}.get(kind, (Quant.per_tensor(0.03, 120), Quant.per_tensor(1 / 256, 0)))
    rows = options["max_detections"] * options["max_classes_per_detection"]
    values = [
        Value("boxes", (1, boxes, 4), kind, quants[0]),
        Value("scores", (1, boxes, scores), kind, quants[1]),
        anchors,
        *(Value(name, (1, rows, *more)) for name, more in (("found", (4,)), ("classes", ()), ("best", ()))),
        Value("count", (1,)),
    ]
    outputs = [value.name for value in values[3:]]
    call = Call(
        "CUSTOM", ["boxes", "scores", "anchors"], outputs, custom=NAME, custom_options=stored(options)
    )
    return write(Part(values, [call], ["boxes", "scores"], outputs))


def drawn(seed: int, kind: str) -> tuple[bytes, list[Array], Mapping[str, Any]]:
    """A detector with many equal scores, and its inputs."""
    rng = np.random.default_rng(seed)
    regular = bool(seed % 2)
    boxes, classes, background = int(rng.integers(1, 60)), int(rng.integers(1, 7)), int(rng.integers(0, 2))
    options = {
        **USUAL,
        "max_detections": int(rng.integers(1, 14)),
        "max_classes_per_detection": 1 if regular else int(rng.integers(1, min(classes, 3) + 1)),
        "detections_per_class": int(rng.integers(1, 9)),
        "use_regular_nms": regular,
        "nms_score_threshold": float(rng.choice([0.1, 0.5, 0.66])),
        "nms_iou_threshold": float(rng.choice([0.3, 0.5, 0.6])),
        "num_classes": classes,
    }
    shape = (1, boxes, classes + background)
    if kind == "float32":
        anchors = np.column_stack([rng.uniform(0, 1, (boxes, 2)), rng.uniform(0.1, 0.5, (boxes, 2))])
        table = Value.constant("anchors", anchors.astype(np.float32))
        inputs: list[Array] = [rng.normal(0, 1, (1, boxes, 4)), rng.integers(0, 5, shape) / 6]
    else:
        anchors = rng.integers(40, 200, (boxes, 4)).astype(kind)
        table = Value.constant("anchors", anchors, Quant.per_tensor(1 / 200, 5))
        inputs = [rng.integers(0, 256, (1, boxes, 4)), rng.integers(0, 16, shape) * 16]
    arrays = [array.astype(kind) for array in inputs]
    return detector(options, boxes, shape[2], table, kind), arrays, options


def litert(content: bytes, inputs: list[Array]) -> list[Array]:
    interpreter = pytest.importorskip("ai_edge_litert.interpreter").Interpreter(model_content=content)
    interpreter.allocate_tensors()
    for port, array in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(port["index"], array)
    interpreter.invoke()
    return [interpreter.get_tensor(port["index"]).copy() for port in interpreter.get_output_details()]


def same(found: list[Array], wanted: list[Array], options: Mapping[str, Any]) -> bool:
    """Boxes to within rounding, all else equal; LiteRT leaves what follows the last box as it was."""
    rows = int(wanted[3][0]) * options["max_classes_per_detection"]
    if found[3] != wanted[3] or any(part[0, rows:].any() for part in found[:3]):
        return False
    equal = all(np.array_equal(found[i][0, :rows], wanted[i][0, :rows]) for i in (1, 2))
    return equal and np.allclose(found[0][0, :rows], wanted[0][0, :rows], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("place", [0, 1])
def test_a_score_that_is_no_number(place: int) -> None:
    """Comparisons with it are false: its class wins only if it comes first; then the box does not count."""
    table = Value.constant("anchors", np.tile(np.asarray([0.5, 0.5, 0.2, 0.2], np.float32), (3, 1)))
    graph = tflite_graph.read(Path("m.tflite"), detector(USUAL, 3, 3, table), {})
    scores = np.asarray([[[0.5, 0.6, 0.7], [0.4, 0.8, 0.6], [0.9, 0.3, 0.3]]], np.float32)
    scores[0, 1, place] = np.nan
    boxes = np.asarray([[[0, 0, 0, 0], [40, 0, 0, 0], [0, 40, 0, 0]]], np.float32)
    samples = dict(zip(graph.inputs, [boxes, scores], strict=True))
    (values,) = interpret(optimize(graph), [samples])
    compiled = compile_graph(graph, "m", ORIGIN, Options(target="host"))
    (found,) = run_batch([Item("m", compiled.files, [samples])])["m"].outputs
    for name in graph.outputs:
        np.testing.assert_allclose(found[name], values[name], rtol=1e-5, atol=1e-6)
    assert values[graph.outputs[3]][0] == (2 if place == 0 else 3)


@pytest.mark.parametrize("kind", ["float32", "uint8"])
def test_equal_to_litert(kind: str) -> None:
    items, wanted, problems, boxes = [], {}, [], 0
    for seed in range(16):
        content, inputs, options = drawn(seed, kind)
        graph = tflite_graph.read(Path("m.tflite"), content, {})
        samples = dict(zip(graph.inputs, inputs, strict=True))
        name = f"m{seed}"
        wanted[name] = (litert(content, inputs), options)
        boxes += int(wanted[name][0][3][0])
        (values,) = interpret(optimize(graph), [samples])
        if not same([values[output] for output in graph.outputs], *wanted[name]):
            problems.append(f"{name}: numpy")
        compiled = compile_graph(graph, name, ORIGIN, Options(target="host"))
        assert ("_s8(" in compiled.files[f"{name}.c"]) == (kind == "uint8")
        items.append(Item(name, compiled.files, [samples]))
    assert boxes > 40
    for name, outcome in run_batch(items).items():
        if outcome.failure or not same(list(outcome.outputs[0].values()), *wanted[name]):
            problems.append(f"{name}: C {outcome.failure}")
    assert not problems, problems


@pytest.mark.parametrize(
    "changed, words",
    [
        ({"num_classes": 9}, "Boxes have the shape"),
        ({"num_classes": 0}, "num_classes is 0"),
        ({"max_detections": -3}, "max_detections"),
        ({"max_detections": 2**31 - 1}, "at most 67,108,864"),
        ({"max_classes_per_detection": 0}, "max_classes_per_detection is 0"),
        ({"detections_per_class": 0}, "detections_per_class is 0"),
        ({"nms_iou_threshold": 0.0}, "nms_iou_threshold is 0.0"),
        ({"nms_iou_threshold": float("nan")}, "nms_iou_threshold"),
        ({"h_scale": 0.0}, "scales are positive"),
        ({"w_scale": float("inf")}, "w_scale"),
    ],
)
def test_options_that_make_no_sense(changed: dict[str, Any], words: str) -> None:
    safe = {k: v for k, v in changed.items() if k != "max_detections" and k != "max_classes_per_detection"}
    anchors = Value.constant("anchors", np.full((5, 4), 0.5, np.float32))
    content = detector({**USUAL, **safe}, 5, 4, anchors)
    if safe != changed:  # the shapes of the outputs stay what they were
        content = content.replace(stored({**USUAL, **safe}), stored({**USUAL, **changed}))
        assert stored({**USUAL, **changed}) in content
    with pytest.raises(TinymlError) as error:
        tflite_graph.read(Path("m.tflite"), content, {})
    assert words in str(error.value)


@pytest.mark.parametrize("content", [b"", b"\x01", b"\xff" * 40, stored({})])
def test_options_that_are_no_options(content: bytes) -> None:
    anchors = Value.constant("anchors", np.full((5, 4), 0.5, np.float32))
    values = [Value("b", (1, 5, 4)), Value("s", (1, 5, 4)), anchors, Value("y", (1, 6, 4))]
    call = Call("CUSTOM", ["b", "s", "anchors"], ["y"], custom=NAME, custom_options=content)
    with pytest.raises(TinymlError):
        tflite_graph.read(Path("m.tflite"), write(Part(values, [call], ["b", "s"], ["y"])), {})


def test_a_bound_keeps_fewer_boxes() -> None:
    anchors = Value.constant("anchors", np.full((5, 4), 0.5, np.float32))
    content = detector(USUAL, 5, 4, anchors)
    graph = tflite_graph.read(Path("m.tflite"), content, {}, bounds={"found": 2})
    assert graph.tensors["found"].shape == (1, 2, 4)
