# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""TFLite decoders whose caches are variables, written in place, in float and int8."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.support.tflite_decoders import MASKS, Shape, model
from tinyml import harness
from tinyml.compare.reference import OnnxRuntime
from tinyml.importers import load, read_model
from tinyml.ir import Array, DType, Graph, Layer, Node, Tensor
from tinyml.ir.interpreter import interpret
from tinyml.ops.attention.attention import Attention
from tinyml.ops.attention.attention_int8 import AttentionInt8
from tinyml.ops.attention.heads import MASK, POSITION
from tinyml.ops.indexing.dynamic_update import DynamicUpdate
from tinyml.pipeline import Compiled, Options, compile_model
from tinyml.settings.quantize_request import Request

Run = dict[str, Array]
SHAPES = [
    Shape(2, 8, 16, heads_first, mask, written)
    for heads_first in (True, False)
    for mask in MASKS
    for written in ("position", "counted")
]
ODD = Shape(3, 5, 7, False, "add")


def text(shape: Shape, seed: int) -> list[Run]:
    """As many runs as the caches have rows."""
    random = np.random.default_rng(seed)
    runs: list[Run] = []
    for place in range(shape.longest):
        runs.append({"x": random.normal(size=(1, shape.width)).astype(np.float32)})
        if shape.written == "position":
            runs[-1]["position"] = np.array([place], np.int32)
    return runs


def caches_in_place(made: Compiled, shape: Shape, kind: type[Attention | AttentionInt8]) -> None:
    """There is no second cache, no matrix of scores, and no mask."""
    (node,) = (node for node in made.graph.nodes if isinstance(node.op, Attention | AttentionInt8))
    assert isinstance(node.op, kind)
    assert len(node.inputs) == POSITION + 1
    assert not node.inputs[MASK]
    caches = [made.graph.tensors[state.tensor] for state in made.graph.states]
    kept = [cache for cache in caches if cache.elements > 1]
    assert [cache.shape for cache in kept] == [shape.cache] * 2
    assert made.plan.arena_bytes < kept[0].bytes


@pytest.mark.parametrize("shape", [*SHAPES, ODD], ids=str)
def test_as_litert(shape: Shape, tmp_path: Path) -> None:
    litert = pytest.importorskip("ai_edge_litert.interpreter", reason="the reference is LiteRT")
    path = tmp_path / "decoder.tflite"
    path.write_bytes(model(shape, 1))
    made = compile_model(path, Options("net", "host"))
    if shape != ODD:
        caches_in_place(made, shape, Attention)
    reference = litert.Interpreter(
        model_path=str(path), experimental_op_resolver_type=litert.OpResolverType.BUILTIN_REF
    )
    reference.allocate_tensors()
    places = {detail["name"]: detail["index"] for detail in reference.get_input_details()}
    (y,) = reference.get_output_details()
    runs = text(shape, 1)
    found = harness.run_files(made.files, "host", runs).outputs
    for run, ours, values in zip(runs, found, interpret(made.graph, runs), strict=True):
        for name, value in run.items():
            reference.set_tensor(places[name], value)
        reference.invoke()
        np.testing.assert_allclose(ours["y"], reference.get_tensor(y["index"]), rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(ours["y"], values["y"], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [SHAPES[0], SHAPES[3], SHAPES[6]], ids=str)
def test_caches_of_bytes(shape: Shape, tmp_path: Path) -> None:
    """C equals numpy and onnxruntime to the last bit."""
    pytest.importorskip("onnxruntime", reason="the quantiser is onnxruntime's")
    from tinyml.quantize.engine import quantize

    path, int8 = tmp_path / "decoder.tflite", tmp_path / "int8.onnx"
    path.write_bytes(model(shape, 2))
    texts = [text(shape, seed) for seed in range(17)]
    table = {name: np.stack([[run[name] for run in runs] for runs in texts]) for name in texts[0][0]}
    np.savez(tmp_path / "texts.npz", **table)  # type: ignore[arg-type]
    result = quantize(path, Request(tmp_path / "texts.npz", method="minmax"))
    assert result.report.decibels > 25
    onnx.save(result.model, int8)
    made = compile_model(int8, Options("net", "host"))
    caches_in_place(made, shape, AttentionInt8)
    runs = text(shape, 40)
    found = harness.run_files(made.files, "host", runs).outputs
    theirs = OnnxRuntime(read_model(int8), load(int8)).run(runs)
    for ours, values, answer in zip(found, interpret(made.graph, runs), theirs, strict=True):
        np.testing.assert_array_equal(ours["y"], values["y"])
        np.testing.assert_array_equal(ours["y"], answer.outputs[0])


def test_positions_outside_write_and_read_inside(tmp_path: Path) -> None:
    """Under sanitizers; the C and numpy agree on what is limited."""
    path = tmp_path / "decoder.tflite"
    path.write_bytes(model(ODD, 3))
    made = compile_model(path, Options("net", "host"))
    runs = text(ODD, 3)
    for run, place in zip(runs, (7, -1, 2**31 - 1, -(2**31), 8, 6, 5), strict=True):
        run["position"] = np.array([place], np.int32)
    found = harness.run_files(made.files, "host", runs).outputs
    for ours, values in zip(found, interpret(made.graph, runs), strict=True):
        np.testing.assert_allclose(ours["y"], values["y"], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("start", [-(2**31), -3, 0, 1, 9, 2**31 - 1])
@pytest.mark.parametrize("block", [(2, 4, 3), (2, 1, 3), (2, 2, 3), (1, 4, 3), (1, 2, 1)], ids=str)
def test_a_block_is_written_as_onnx(block: tuple[int, ...], start: int) -> None:
    """All of the tensor, rows along one axis, or a part of several; limited where it would not fit."""
    pytest.importorskip("onnxruntime", reason="the reference is onnxruntime")
    from tinyml.quantize import export
    from tinyml.reference.session import Session

    random = np.random.default_rng(4)
    arrays: Run = {
        name: random.normal(size=s).astype(np.float32) for name, s in (("x", (2, 4, 3)), ("b", block))
    }
    arrays["at"] = np.full(3, start, np.int32)
    tensors = {name: Tensor(name, a.shape, DType(str(a.dtype))) for name, a in arrays.items()}
    tensors["y"] = Tensor("y", (2, 4, 3), DType.FLOAT32)
    node = Node("write", DynamicUpdate(), ("x", "b", "at"), ("y",))
    graph = Graph("g", tensors, (node,), tuple(arrays), ("y",))
    (wanted,) = node.op.evaluate(Layer.of(node, tensors), [*arrays.values()])
    found = Session(export.to_onnx(graph)).run(arrays)
    np.testing.assert_array_equal(found["y"], wanted)
