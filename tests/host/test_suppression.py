# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""NON_MAX_SUPPRESSION_V4 and V5: random models in C against LiteRT's own operators, and files that lie."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.batch import Item, run_batch
from tests.support.tflite_writer import Call, Part, Value, write
from tinyml.base.errors import TinymlError
from tinyml.emit.model import Provenance
from tinyml.importers import tflite_graph
from tinyml.ir import Array, Graph
from tinyml.ir.interpreter import interpret
from tinyml.pipeline import Options, compile_graph, optimize

ORIGIN = Provenance("m.tflite", "0" * 64, "")
NAMES = ("max_output_size", "iou_threshold", "score_threshold", "soft_nms_sigma")
USUAL: dict[str, Any] = dict(zip(NAMES, (6, 0.5, 0.1, 0.5), strict=True))


def suppression(boxes: int, options: Mapping[str, Any], arriving: tuple[str, ...] = ()) -> bytes:
    """A file with one operator: V5 if ``options`` have a sigma. ``arriving``: options that are inputs."""
    version = "V5" if "soft_nms_sigma" in options else "V4"
    values = [Value("boxes", (boxes, 4)), Value("scores", (boxes,))]
    for name, number in options.items():
        data = np.asarray(number, np.int32 if name == "max_output_size" else np.float32)
        values.append(Value(name, (), data.dtype.name) if name in arriving else Value.constant(name, data))
    inputs = [value.name for value in values]
    rows = max(int(options["max_output_size"]), 1)
    found = [Value("chosen", (rows,), "int32"), Value("kept", (rows,)), Value("count", (), "int32")]
    if version == "V4":
        del found[1]
    outputs = [value.name for value in found]
    call = Call(f"NON_MAX_SUPPRESSION_{version}", inputs, outputs, f"NonMaxSuppression{version}Options")
    return write(Part([*values, *found], [call], ["boxes", "scores", *arriving], outputs))


def read(content: bytes, **settings: Any) -> Graph:
    return tflite_graph.read(Path("m.tflite"), content, {}, **settings)


def litert(content: bytes, inputs: list[Array]) -> list[Array]:
    interpreter = pytest.importorskip("ai_edge_litert.interpreter").Interpreter(model_content=content)
    interpreter.allocate_tensors()
    for port, array in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(port["index"], array)
    interpreter.invoke()
    return [interpreter.get_tensor(port["index"]).copy() for port in interpreter.get_output_details()]


@dataclass(frozen=True)
class Drawn:
    content: bytes
    inputs: list[Array]


def drawn(seed: int, soft: bool) -> Drawn:
    """Boxes of all kinds: equal, nested, inverted, empty, and some that are no numbers."""
    rng = np.random.default_rng((seed, soft))
    count = int(rng.integers(1, 50))
    corners = rng.uniform(0, 1, (count, 4))
    if seed % 3 == 0:
        corners[:, 2:] = corners[:, :2] + rng.uniform(0, 0.6, (count, 2))
    if seed % 4 == 1:
        corners[rng.integers(0, count, 5)] = corners[0]
    if seed % 4 == 2:
        corners[rng.integers(0, count, 3), 2:] = corners[0, :2]
        corners[0, 2:] = corners[0, :2]  # no area
    if seed % 5 == 3:
        corners.flat[rng.integers(0, corners.size, 4)] = [np.nan, np.inf, -np.inf, 3e38]
    scores = rng.integers(-1, 5, count) / 6 if seed % 2 else rng.uniform(0, 1, count)
    if seed % 5 == 4:
        scores[rng.integers(0, count, 3)] = [np.nan, np.inf, -0.0]
    options = {
        "max_output_size": int(rng.integers(1, 30)),
        "iou_threshold": float(rng.choice([0.0, 0.2, 0.5, 0.7, 1.0])),
        "score_threshold": float(rng.choice([-1.0, 0.0, 0.1])),
    }
    if soft or seed % 2:
        options["soft_nms_sigma"] = float(rng.choice([0.1, 0.3, 0.5, 1.0])) if soft else 0.0
    return Drawn(suppression(count, options), [corners.astype(np.float32), scores.astype(np.float32)])


def same(found: list[Array], wanted: list[Array]) -> bool:
    """Boxes equal, in their order. exp() rounds one of 200 numbers differently, so scores may be a step off
    for each chosen box."""
    equal = all(np.array_equal(found[i], wanted[i]) for i in (0, -1))
    return equal and np.allclose(found[1], wanted[1], rtol=1e-6, atol=0)


@pytest.mark.parametrize("soft", [False, True])
def test_equal_to_litert(soft: bool) -> None:
    items, wanted, problems, boxes, exact = [], {}, [], 0, 0
    for seed in range(40):
        case = drawn(seed, soft)
        graph, name = read(case.content), f"m{seed}"
        samples = dict(zip(graph.inputs, case.inputs, strict=True))
        wanted[name] = litert(case.content, case.inputs)
        boxes += int(wanted[name][-1])
        (values,) = interpret(optimize(graph), [samples])
        if not same([values[output] for output in graph.outputs], wanted[name]):
            problems.append(f"{name}: numpy")
        compiled = compile_graph(graph, name, ORIGIN, Options(target="host"))
        assert ("tinyml_soft_suppression_f32(" in compiled.files[f"{name}.c"]) == soft
        items.append(Item(name, compiled.files, [samples]))
    assert boxes > 200
    for name, outcome in run_batch(items).items():
        found = [] if outcome.failure else list(outcome.outputs[0].values())
        if not found or not same(found, wanted[name]):
            problems.append(f"{name}: C {outcome.failure}")
        exact += all(np.array_equal(a, b) for a, b in zip(found, wanted[name], strict=True))
    assert not problems, problems
    assert exact >= (30 if soft else 40)


def test_limits_that_arrive() -> None:
    content = suppression(12, USUAL, ("iou_threshold", "score_threshold"))
    rng = np.random.default_rng(5)
    inputs = [rng.uniform(0, 1, (12, 4)), rng.uniform(0, 1, 12), np.asarray(0.4), np.asarray(0.3)]
    arrays = [np.asarray(array, np.float32) for array in inputs]
    graph = read(content)
    samples = dict(zip(graph.inputs, arrays, strict=True))
    compiled = compile_graph(graph, "m", ORIGIN, Options(target="host"))
    (found,) = run_batch([Item("m", compiled.files, [samples])])["m"].outputs
    assert same(list(found.values()), litert(content, arrays))


@pytest.mark.parametrize(
    "changed, words",
    [
        ({"max_output_size": 0}, "max_output_size is 0"),
        ({"max_output_size": -3}, "max_output_size is -3"),
        ({"max_output_size": 2**31 - 1}, "at most 67,108,864"),
        ({"iou_threshold": 1.5}, "iou_threshold is 1.5"),
        ({"iou_threshold": float("nan")}, "iou_threshold is nan"),
        ({"score_threshold": float("nan")}, "score_threshold is nan"),
        ({"soft_nms_sigma": -0.5}, "soft_nms_sigma is -0.5"),
        ({"soft_nms_sigma": float("inf")}, "soft_nms_sigma is inf"),
    ],
)
def test_options_that_make_no_sense(changed: dict[str, Any], words: str) -> None:
    with pytest.raises(TinymlError) as error:
        read(suppression(5, {**USUAL, **changed}))
    assert words in str(error.value)


@pytest.mark.parametrize("name", ["max_output_size", "soft_nms_sigma"])
def test_what_must_be_constant(name: str) -> None:
    with pytest.raises(TinymlError) as error:
        read(suppression(5, USUAL, (name,)))
    assert f"{name} arrives at run time" in str(error.value)


def test_a_batch_that_the_file_declares_and_nothing_computes() -> None:
    """What the converter makes of tf.image.non_max_suppression_padded."""
    options = {name: USUAL[name] for name in NAMES[:3]}
    constants = [
        Value.constant(name, np.asarray(value, np.int32 if name == NAMES[0] else np.float32))
        for name, value in options.items()
    ]
    values = [
        *(Value("boxes", (9, 4)), Value("scores", (9,)), *constants),
        *(Value("chosen", (1, 6), "int32"), Value("count", (), "int32")),
        *(Value.constant("flat", np.asarray([6], np.int32)), Value("y", (6,), "int32")),
    ]
    calls = [
        Call("NON_MAX_SUPPRESSION_V4", ["boxes", "scores", *options], ["chosen", "count"]),
        Call("RESHAPE", ["chosen", "flat"], ["y"], "ReshapeOptions"),
    ]
    graph = read(write(Part(values, calls, ["boxes", "scores"], ["y", "count"])))
    assert graph.tensors[graph.outputs[0]].shape == (6,)


def test_a_bound_keeps_fewer_boxes() -> None:
    graph = read(suppression(12, USUAL), bounds={"chosen": 2})
    assert graph.tensors["chosen"].shape == graph.tensors["kept"].shape == (2,)
