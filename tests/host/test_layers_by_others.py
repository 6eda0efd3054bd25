# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The layers of ``test_every_kernel.py`` in numpy, which kernels are held to, equal onnxruntime's."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from tests.support.weighted_layers import Layers, sampled
from tinyml.ir import Array, Graph, Layer, Quant
from tinyml.ops.conv.depthwise import DepthwiseConv
from tinyml.ops.conv.transpose import ConvTranspose
from tinyml.ops.dense.dense import Dense
from tinyml.ops.shared.quant import quant_of

NEAR_TIES = 0.01
"""Of the elements: onnxruntime scales in float32."""


def first(array: Array) -> Array:
    """Channels first."""
    return np.moveaxis(array, -1, 1) if array.ndim == 4 else array


def weights_of(layer: Layer[Any]) -> Array:
    """As ONNX orders them."""
    op, w = layer.op, layer.input(1).value
    if isinstance(op, Dense):
        return w
    if isinstance(op, DepthwiseConv):
        return np.transpose(w, (3, 0, 1, 2))
    if not isinstance(op, ConvTranspose):
        return first(w)
    outs = w.shape[0] // op.groups  # (group, out, h, w, in) to (group, in, out, h, w)
    grouped = w.reshape(op.groups, outs, *w.shape[1:]).transpose(0, 4, 1, 2, 3)
    return grouped.reshape(-1, *grouped.shape[2:])


def attributes_of(layer: Layer[Any]) -> tuple[str, dict[str, Any]]:
    op = layer.op
    if isinstance(op, Dense):
        return "Gemm", {"transB": 1}
    window = {"strides": op.strides, "dilations": op.dilations}
    if isinstance(op, ConvTranspose):
        sizes, kernel = layer.input(0).shape[1:3], layer.input(1).shape[1:3]
        full = [
            (i - 1) * s + (k - 1) * d + 1
            for i, s, k, d in zip(sizes, op.strides, kernel, op.dilations, strict=True)
        ]
        after = [f - p - o for f, p, o in zip(full, op.pads, op.outputs, strict=True)]
        extra = [max(-a, 0) for a in after]
        pads = [*op.pads, *(max(a, 0) for a in after)]
        return "ConvTranspose", {**window, "pads": pads, "output_padding": extra, "group": op.groups}
    groups = layer.input(0).shape[3] if isinstance(op, DepthwiseConv) else op.groups
    return "Conv", {**window, "pads": op.pads, "group": groups}


def model_of(layer: Layer[Any]) -> onnx.ModelProto:
    """Dequantize, the operator, Quantize."""
    x, w, y = (quant_of(t) for t in (layer.input(0), layer.input(1), layer.output))
    op_type, attributes = attributes_of(layer)
    axis = 1 if op_type == "ConvTranspose" else 0
    constants: dict[str, Array] = {"w": weights_of(layer)}
    nodes = []

    def numbers(name: str, quant: Quant, dtype: str = "int8") -> list[str]:
        single = not quant.per_channel
        constants[f"{name}_s"] = np.asarray(quant.scales[0] if single else quant.scales, np.float32)
        constants[f"{name}_z"] = np.asarray(quant.zero_points[0] if single else quant.zero_points, dtype)
        return [f"{name}_s", f"{name}_z"]

    def real(name: str, quant: Quant, channel: int, dtype: str = "int8") -> str:
        options: dict[str, Any] = {"axis": channel} if quant.per_channel else {}
        nodes.append(
            helper.make_node(
                "DequantizeLinear", [name, *numbers(name, quant, dtype)], [f"{name}_r"], **options
            )
        )
        return f"{name}_r"

    operands = [real("x", x, 0), real("w", w, axis)]
    if layer.has_input(2):
        constants["b"] = layer.input(2).value
        scales = tuple(float(np.float32(x.scale) * np.float32(s)) for s in w.scales)
        operands.append(
            real("b", Quant(scales, (0,) * len(scales), 0 if w.per_channel else None), 0, "int32")
        )
    nodes.append(helper.make_node(op_type, operands, ["t"], **attributes))
    last = "t"
    if layer.op.clamp[0] == 0:
        nodes.append(helper.make_node("Relu", ["t"], ["u"]))
        last = "u"
    nodes.append(helper.make_node("QuantizeLinear", [last, *numbers("y", y)], ["y"]))
    graph = helper.make_graph(
        nodes,
        "layer",
        [
            helper.make_tensor_value_info(
                "x", onnx.TensorProto.INT8, first(np.empty(layer.input(0).shape)).shape
            )
        ],
        [onnx.ValueInfoProto(name="y")],
        [numpy_helper.from_array(np.ascontiguousarray(value), name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def layers() -> Graph:
    made = Layers()
    for name, case in sampled(60).items():
        if not (isinstance(case.op, ConvTranspose) and case.op.groups > 1 and case.channels):
            made.weighted(name, case, once=True)
    return made.graph()


@pytest.mark.parametrize("layer", [*layers().layers()], ids=lambda layer: layer.name)
def test_numpy_equals_onnxruntime(layer: Layer[Any]) -> None:
    pytest.importorskip("onnxruntime", reason="the reference")
    from tinyml.reference.session import Session

    x = np.random.default_rng(3).integers(-128, 128, layer.input(0).shape).astype(np.int8)
    values = [x, *(layer.input(i).value for i in range(1, len(layer.inputs)))]
    (found,) = layer.op.evaluate(layer, values)
    (wanted,) = Session(model_of(layer)).run({"x": np.ascontiguousarray(first(x))}).values()
    steps = np.abs(first(found).astype(int) - wanted)
    assert steps.max() <= 1
    assert np.mean(steps > 0) <= NEAR_TIES
