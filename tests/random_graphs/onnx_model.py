# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A float graph as an ONNX model: as it is, with Quantize and Dequantize around every node, or as QLinear.

``qat`` is what training for quantisation leaves: real numbers go in and come out, pairs of Quantize and
Dequantize are behind the layers that compute, and pools, reshapes and the like are between them.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper

from tests.random_graphs.float_graph import FloatGraph, float_graph
from tests.random_graphs.packed_weights import packed_model
from tests.random_graphs.quantizer import SAME_SCALE, Quantizer, channel_axis, float_nodes, model_of
from tests.random_graphs.recipe import Model, Recipe
from tinyml.ir import Array

SAMPLES = 4
DTYPES = {"w4": "int8", "s8": "int8", "u8": "uint8", "s16": "int16"}


def onnx_model(recipe: Recipe) -> Model:
    graph = float_graph(recipe)
    rng = np.random.default_rng(zlib.crc32(repr(recipe).encode()))
    inputs = [[rng.normal(0, 1.5, graph.shapes["x"]).astype(np.float32)] for _ in range(SAMPLES)]
    if recipe.kind == "float":
        model = model_of(graph, float_nodes(graph), graph.constants, graph.outputs(), "float32")
        return Model(recipe, model.SerializeToString(), inputs)
    if recipe.kind == "float_w4":
        return Model(recipe, packed_model(graph, rng).SerializeToString(), inputs)
    style, dtype = recipe.kind.split("_")
    if style == "qat":
        trained = trained_model(graph, DTYPES[dtype], rng, inputs)
        return Model(recipe, trained.SerializeToString(), inputs)
    quantizer = Quantizer(graph, DTYPES[dtype], rng, style == "qop", dtype == "w4")
    model = quantizer.model(inputs)
    scale, zero = quantizer.params["x"]
    info = np.iinfo(DTYPES[dtype])
    stored = [[np.clip(np.rint(x / scale) + zero, info.min, info.max).astype(info.dtype)] for (x,) in inputs]
    return Model(recipe, model.SerializeToString(), stored)


PASSING = (*SAME_SCALE, "Concat", "Relu", "Clip", "ReduceMax", "ReduceMin", "Pad")
"""Operators that training for quantisation leaves without a pair of their own, mostly."""


def trained_model(
    graph: FloatGraph, dtype: str, rng: np.random.Generator, inputs: Sequence[Sequence[Array]]
) -> onnx.ModelProto:
    """Pairs behind most layers that compute, fewer behind the others, none behind outputs, mostly."""
    made = Quantizer(graph, dtype, rng, operators=False)
    made.start(inputs)
    last = set(graph.outputs())
    names = {"x": made.pair("x", "x")}
    for step in graph.steps:
        operands = [names.get(name, name) for name in step.inputs]
        share = 0.1 if step.output in last else 0.25 if step.op_type in PASSING else 0.9
        paired = bool(rng.random() < share)
        channels = bool(rng.random() < 0.6) and step.op_type != "MatMul"
        quantised = step.weights if rng.random() < 0.95 else ()
        for position, name in enumerate(step.inputs):
            if position not in quantised:
                continue
            if position == 1:
                axis = channel_axis(step)
                stored, s, z, scales = made.weights(name, axis, channels)
            elif step.inputs[0] in made.params and rng.random() < 0.5:
                stored, s, z = made.bias(name, step.inputs[0], scales)
                axis = 0
            else:
                if step.inputs[0] in made.params and (paired or step.output not in last):
                    made.whole_bias(name, step.inputs[0], scales)
                continue  # the bias is a float
            attributes: dict[str, Any] = {"axis": axis} if scales.ndim else {}
            operands[position] = f"{step.output}_r{position}"
            made.nodes.append(
                helper.make_node("DequantizeLinear", [stored, s, z], [operands[position]], **attributes)
            )
        made.nodes.append(helper.make_node(step.op_type, operands, [step.output], **step.attributes))
        known = step.op_type in PASSING and step.inputs[0] in made.params
        if known and (not paired or (step.op_type in SAME_SCALE and rng.random() < 0.7)):
            made.params[step.output] = made.params[step.inputs[0]]
        if paired:
            names[step.output] = made.pair(step.output, step.output)
    outputs = [names.get(name, name) for name in graph.outputs()]
    return model_of(graph, made.nodes, made.constants, outputs, "float32")
