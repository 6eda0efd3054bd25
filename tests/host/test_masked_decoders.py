# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Decoders with a second mask that arrives at run time and has holes, beside onnxruntime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

pytest.importorskip("onnxruntime", reason="the reference is onnxruntime")

from tests.support.decoders import Shape, model, tokens
from tinyml import harness
from tinyml.compare.reference import OnnxRuntime
from tinyml.importers import load, read_model
from tinyml.ir.interpreter import interpret
from tinyml.ops.attention.attention import Attention
from tinyml.ops.attention.heads import MASK, POSITION
from tinyml.pipeline import Options, compile_model

LOWEST = float(np.finfo(np.float32).min)
TYPES = {"int64": TensorProto.INT64, "bool": TensorProto.BOOL, "float32": TensorProto.FLOAT}


def masked(shape: Shape, kind: str, low: float, before: bool) -> onnx.ModelProto:
    """The decoder with an input ``holes``, (1, longest): integers, truths, or what is added to the scores.

    ``before``: its mask comes before the one that the position makes.
    """
    file = model(shape, 1)
    graph = file.graph
    graph.input.append(helper.make_tensor_value_info("holes", TYPES[kind], (1, shape.longest)))
    graph.initializer.append(numpy_helper.from_array(np.array(low, np.float32), "low"))
    softmax = next(node for node in graph.node if node.op_type == "Softmax")
    place = list(graph.node).index(softmax)
    if before:
        place -= 1  # what hides later keys is just before the softmax
    reader = graph.node[place]
    operand = next(i for i, name in enumerate(reader.input) if name.startswith("t") and _scores(graph, name))
    scores, reader.input[operand] = reader.input[operand], "with_holes"
    nodes = {
        "int64": [
            helper.make_node("Cast", ["holes"], ["seen"], to=TensorProto.BOOL),
            helper.make_node("Where", ["seen", scores, "low"], ["with_holes"]),
        ],
        "bool": [helper.make_node("Where", ["holes", scores, "low"], ["with_holes"])],
        "float32": [helper.make_node("Add", [scores, "holes"], ["with_holes"])],
    }[kind]
    whole = [*graph.node[:place], *nodes, *graph.node[place:]]
    del graph.node[:]
    graph.node.extend(whole)
    return file


def _scores(graph: onnx.GraphProto, name: str) -> bool:
    """Whether a tensor comes from the product of queries and keys, and not from the position."""
    node = next(node for node in graph.node if name in node.output)
    while node.op_type not in ("MatMul", "Unsqueeze"):
        name = node.input[1] if node.op_type == "Where" else node.input[0]
        node = next(node for node in graph.node if name in node.output)
    return node.op_type == "MatMul"


@pytest.mark.parametrize("low", [LOWEST, -np.inf, -1e4])
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("form,steps", [("elements", 1), ("places", 3), ("where", 1)])
@pytest.mark.parametrize("before", [False, True])
def test_a_mask_with_holes(
    form: str, steps: int, kind: str, low: float, before: bool, tmp_path: Path
) -> None:
    """Every query sees its own key; heads share keys, and have an odd number of elements."""
    shape = Shape(form, groups=2, many=3, size=5, longest=11, steps=steps)
    path = tmp_path / "decoder.onnx"
    onnx.save(masked(shape, kind, low, before), path)
    made = compile_model(path, Options("net", "host"))
    fused = [node for node in made.graph.nodes if isinstance(node.op, Attention)]
    replaced = kind != "float32" and low == -1e4  # scores that hide little stay scores
    assert len(fused) == (0 if replaced else 1)
    for node in fused:
        assert len(node.inputs) == POSITION + 1
        assert node.inputs[MASK]
    random = np.random.default_rng(2)
    samples = tokens(shape, random, 12)
    for sample in samples:
        first = int(sample["position"][0])
        seen = random.random((1, shape.longest)) < 0.6
        seen[:, first : first + steps] = True
        added = np.where(seen, 0, low).astype(np.float32)
        sample["holes"] = added if kind == "float32" else seen.astype(kind)
    found = harness.run_files(made.files, "host", samples).outputs
    theirs = OnnxRuntime(read_model(path), load(path)).run(samples)
    for ours, values, answer in zip(found, interpret(made.graph, samples), theirs, strict=True):
        np.testing.assert_allclose(ours["y"], answer.outputs[0], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(ours["y"], values["y"], rtol=1e-5, atol=1e-6)
