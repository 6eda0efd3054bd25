# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Cases of our own for what ONNX's node tests lack: layers on int16, and recurrent layers in all their forms.

Somebody else's runtime says what is right: onnxruntime for ONNX models, LiteRT's kernels for TFLite. The
int16 models of ONNX have scales that are powers of two and sums below 2**24, so that onnxruntime's float32 is
exact and every integer must be equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import tflite
from onnx import helper

from tests.conformance.cases import NodeCase
from tests.ops import recurrent
from tests.random_graphs.recipe import Recipe
from tests.support.cases import Case, Const, onnx_nodes_case
from tests.support.data import whole
from tinyml.importers import tflite_graph
from tinyml.ir import Array

GROUPS = {
    "int16": "layers on int16, as ONNX (compared with onnxruntime) and as TFLite (compared with LiteRT)",
    "recurrent": "RNN, GRU and LSTM: directions, states, lengths, functions, clipping (onnxruntime)",
}
EACH = 6
"""TFLite models of each operator, chosen among ``SEEDS``."""
SEEDS = 150

X, Y = 2.0**-10, 2.0**-8
IMAGE = (1, 4, 6, 5)


def own_cases() -> list[NodeCase]:
    """Those whose references are installed."""
    found = []
    if find_spec("onnxruntime"):
        found += [_case("recurrent", case.name.split("_")[0].upper(), case) for case in recurrent.CASES]
        found += [_case("int16", f"{op_type} (int16)", case) for op_type, case in _onnx_int16()]
    if find_spec("ai_edge_litert"):
        found += _tflite_int16()
    return found


def _case(group: str, op_type: str, case: Case) -> NodeCase:
    assert case.expected is not None
    inputs, outputs = [*case.inputs.values()], case.expected()
    return NodeCase(f"{group}_{case.name}", group, op_type, onnx.ModelProto(), inputs, outputs, case.graph)


def _onnx_int16() -> Iterator[tuple[str, Case]]:
    """Every operator between Dequantize and Quantize."""
    weights = {
        "Conv": (4, 4, 3, 2), "ConvTranspose": (4, 3, 2, 3), "Gemm": (5, 30), "depthwise": (4, 1, 3, 3),
    }  # fmt: skip
    for strides in ([1, 1], [2, 1]):
        for op_type in ("Conv", "ConvTranspose"):
            name = f"{op_type}_{strides[0]}"
            yield (
                op_type,
                between(name, op_type, [IMAGE], weights[op_type], strides=strides, pads=[1, 0, 0, 1]),
            )
        yield (
            "Conv",
            between(
                f"Conv_depthwise_{strides[0]}",
                "Conv",
                [IMAGE],
                weights["depthwise"],
                group=4,
                strides=strides,
            ),
        )
    yield "Gemm", between("Gemm", "Gemm", [(3, 30)], weights["Gemm"], transB=1)
    for op_type in ("Add", "Sub", "Mul", "Max", "Min"):
        yield op_type, between(op_type, op_type, [(3, 40), (3, 40)])
        yield op_type, between(f"{op_type}_broadcast", op_type, [(3, 40), (1, 40)])
    for op_type in ("Relu", "Abs", "Neg", "GlobalAveragePool", "GlobalMaxPool"):
        yield op_type, between(op_type, op_type, [(1, 4, 4, 8)])
    for op_type in ("AveragePool", "MaxPool"):
        yield op_type, between(op_type, op_type, [IMAGE], kernel_shape=[2, 2], strides=[1, 2])
    for op_type in ("ReduceMean", "ReduceSum", "ReduceMax"):
        yield op_type, between(op_type, op_type, [(3, 8)], constants={"axes": np.array([1])})
    yield (
        "Clip",
        between("Clip", "Clip", [(3, 40)], constants={"low": np.float32(-0.5), "high": np.float32(1)}),
    )
    yield "LeakyRelu", between("LeakyRelu", "LeakyRelu", [(3, 40)], alpha=0.25)
    yield "Concat", between("Concat", "Concat", [(3, 4), (3, 5)], axis=1)
    yield "Transpose", between("Transpose", "Transpose", [(3, 4, 5)], perm=[2, 0, 1])
    yield "Reshape", between("Reshape", "Reshape", [(3, 4)], constants={"shape": np.array([2, 6])})
    yield "Pad", between("Pad", "Pad", [(3, 4)], constants={"pads": np.array([1, 0, 2, 1])})
    yield (
        "Slice",
        between("Slice", "Slice", [(3, 8)], constants={"starts": np.array([0, 1]), "ends": np.array([2, 7])}),
    )


def between(
    name: str,
    op_type: str,
    shapes: Sequence[tuple[int, ...]],
    weights: tuple[int, ...] = (),
    constants: Mapping[str, Any] | None = None,
    **attributes: Any,
) -> Case:
    """``op_type`` on int16 tensors of ``shapes``, with int8 weights and other constants after them."""
    operands: dict[str, Array | Const] = {
        "sx": Const(np.array(X, np.float32)),
        "sy": Const(np.array(Y, np.float32)),
        "z": Const(np.array(0, np.int16)),
    }
    nodes = []
    names = []
    for index, shape in enumerate(shapes):
        operands[f"x{index}"] = whole(*shape, low=-4000, high=4000, dtype="int16", seed=index)
        nodes.append(helper.make_node("DequantizeLinear", [f"x{index}", "sx", "z"], [f"r{index}"]))
        names.append(f"r{index}")
    if weights:
        operands["w"] = Const(whole(*weights, low=-60, high=60, dtype="int8", seed=7))
        operands["zw"] = Const(np.array(0, np.int8))
        nodes.append(helper.make_node("DequantizeLinear", ["w", "sx", "zw"], ["rw"]))
        names.append("rw")
    for key, value in (constants or {}).items():
        operands[key] = Const(np.asarray(value))
        names.append(key)
    nodes.append(helper.make_node(op_type, names, ["r"], **attributes))
    nodes.append(helper.make_node("QuantizeLinear", ["r", "sy", "z"], ["y"]))
    return onnx_nodes_case(name, nodes, operands, ["y"])


def _tflite_int16() -> list[NodeCase]:
    """Single operators of the random models. Dense layers are left out: LiteRT's have other arithmetic."""
    from tests.random_graphs.tflite_model import litert, tflite_model

    made: dict[str, list[NodeCase]] = {}
    for seed in range(SEEDS):
        model = tflite_model(Recipe("tflite_s16", 1 + seed % 5, 3 + seed % 4, 4 + seed % 3, (seed,)))
        own = made.setdefault(_operator(model.content), [])
        if len(own) < EACH:
            op_type, sample = _operator(model.content), model.samples[0]
            outputs = litert(replace(model, samples=[sample]))[0]
            graph = partial(tflite_graph.read, Path("case.tflite"), model.content, {})
            name = f"int16_tflite_{op_type.lower()}_{len(own)}"
            own.append(
                NodeCase(
                    name, "int16", f"{op_type} (TFLite int16)", onnx.ModelProto(), sample, outputs, graph
                )
            )
    return [case for own in made.values() for case in own]


def _operator(content: bytes) -> str:
    code = tflite.Model.GetRootAs(content).OperatorCodes(0)
    assert code is not None
    return str(tflite.BUILTIN_OPCODE2NAME[code.BuiltinCode()])
