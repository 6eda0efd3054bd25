# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Weights of two and four bits for random ONNX models: per tensor, per channel, in blocks, as MatMulNBits."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import helper

from tests.random_graphs.float_graph import FloatGraph, Step
from tests.random_graphs.quantizer import MICROSOFT, channel_axis, model_of
from tinyml.ir import Array
from tinyml.ops.framework.narrow import NARROW, packed

KINDS = ("int4", "uint4")


def steps_of(values: Array, kind: str, scales: Array, zeros: Array) -> Array:
    """Real numbers as stored integers."""
    low, high = NARROW[kind].limits
    stored = np.clip(np.rint(values / scales) + zeros, low, high)
    return stored.astype(np.dtype(getattr(ml_dtypes, kind)))


def zero_points(rng: np.random.Generator, kind: str, shape: tuple[int, ...]) -> Array:
    """In the middle of the type, or anywhere."""
    low, high = NARROW[kind].limits
    middle = (low + high + 1) // 2
    return rng.integers(low, high, shape, endpoint=True) if rng.random() < 0.4 else np.full(shape, middle)


def packed_model(graph: FloatGraph, rng: np.random.Generator) -> onnx.ModelProto:
    """A float model whose layers have packed weights."""
    constants: dict[str, Array] = dict(graph.constants)
    nodes: list[onnx.NodeProto] = []
    for step in graph.steps:
        operands = list(step.inputs)
        plain = 1 in step.weights and constants[operands[1]].dtype == np.float32
        if plain and step.op_type == "MatMul" and constants[operands[1]].ndim == 2 and rng.random() < 0.5:
            nodes.append(_product(step, constants, rng))
            continue
        if plain:
            nodes.append(_real(step, constants, rng))
            operands[1] = nodes[-1].output[0]
        nodes.append(helper.make_node(step.op_type, operands, [step.output], **step.attributes))
    return model_of(graph, nodes, constants, graph.outputs(), "float32")


def _real(step: Step, constants: dict[str, Array], rng: np.random.Generator) -> onnx.NodeProto:
    """DequantizeLinear in one of its three forms."""
    name, kind = step.inputs[1], str(rng.choice(KINDS))
    values, axis = constants[name], channel_axis(step)
    attributes: dict[str, Any] = {}
    form = rng.choice(["tensor", "channel", "block"])
    if form == "block":
        axis = 1 if values.ndim != 2 else 1 - axis
        block = int(rng.choice([3, 8, 16, 32]))
        shape = tuple(-(-n // block) if i == axis else n for i, n in enumerate(values.shape))
        attributes = {"axis": axis, "block_size": block}
    else:
        shape = (values.shape[axis],) if form == "channel" else ()
        attributes = {"axis": axis} if form == "channel" else {}
    scales = rng.uniform(0.02, 0.2, shape).astype(np.float32)
    zeros = zero_points(rng, kind, shape)
    wide = [scales, zeros]
    if form == "block":
        wide = [np.take(np.repeat(p, block, axis), range(values.shape[axis]), axis) for p in wide]
    elif form == "channel":
        wide = [p.reshape([-1 if i == axis else 1 for i in range(values.ndim)]) for p in wide]
    constants[f"{name}_p"] = steps_of(values, kind, *wide)
    constants[f"{name}_s"] = scales
    constants[f"{name}_z"] = zeros.astype(constants[f"{name}_p"].dtype)
    used = [f"{name}_p", f"{name}_s", f"{name}_z"]
    return helper.make_node("DequantizeLinear", used, [f"{step.output}_w"], **attributes)


def _product(step: Step, constants: dict[str, Array], rng: np.random.Generator) -> onnx.NodeProto:
    """MatMulNBits with random weights."""
    ins, outs = constants[step.inputs[1]].shape
    bits, block = int(rng.choice([4, 8])), int(rng.choice([16, 32, 64]))
    blocks, name = -(-ins // block), step.inputs[1]
    constants[f"{name}_p"] = rng.integers(0, 256, (outs, blocks, block * bits // 8)).astype(np.uint8)
    constants[f"{name}_s"] = rng.uniform(-0.1, 0.1, outs * blocks).astype(np.float32)
    operands = [step.inputs[0], f"{name}_p", f"{name}_s"]
    if rng.random() < 0.5:
        zeros = rng.integers(0, 1 << bits, (outs, blocks))
        rows = [packed(row, NARROW["uint4"]) if bits == 4 else bytes(row.tolist()) for row in zeros]
        constants[f"{name}_z"] = np.frombuffer(b"".join(rows), np.uint8)
        operands.append(f"{name}_z")
    attributes: dict[str, Any] = {"K": ins, "N": outs, "bits": bits, "block_size": block}
    return helper.make_node("MatMulNBits", operands, [step.output], domain=MICROSOFT, **attributes)
