# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The layers of ``test_every_kernel.py`` as TFLite files: numpy equals LiteRT's kernels in every bit.

TFLite has no padding per side, so a PAD comes first. Its weights have no zero point, its convolutions always
have a bias, and its transposed convolutions have neither groups nor dilation.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.random_graphs.recipe import Model, Recipe
from tests.random_graphs.their_arithmetic import in_their_arithmetic
from tests.support.interpret import interpret
from tests.support.tflite_writer import Call, Part, Value, write
from tests.support.weighted_layers import Layers, Weighted, sampled
from tinyml.importers import tflite_graph
from tinyml.ir import Layer, Quant, Tensor
from tinyml.ops.conv.conv import Conv
from tinyml.ops.conv.depthwise import DepthwiseConv
from tinyml.ops.conv.transpose import ConvTranspose
from tinyml.ops.dense.dense import Dense
from tinyml.ops.shared.quant import quant_of

COUNT = 80
SAME, VALID = 0, 1
RELU = 1
REFERENCE = {"int8": "tflite_s8", "uint8": "tflite_u8", "int16": "tflite_s16"}


def transposed() -> dict[str, Weighted]:
    """Transposed convolutions of either padding."""
    found = {}
    for strides, kernel in product(((1, 1), (2, 2), (3, 1)), ((1, 1), (2, 3), (4, 3))):
        full = tuple(3 * s + k for s, k in zip(strides, kernel, strict=True))
        sizes = tuple(4 * s for s in strides)
        for padding, outputs in (("valid", full), ("same", sizes)):
            if any(f < o for f, o in zip(full, outputs, strict=True)):
                continue  # TFLite pads the end with what no input reaches
            pads = tuple((f - o) // 2 for f, o in zip(full, outputs, strict=True))
            op = ConvTranspose(strides, pads=pads, outputs=outputs)
            name = f"transposed_{padding}_{strides[0]}{strides[1]}_{kernel[0]}{kernel[1]}"
            found[name] = Weighted(op, (2, 4, 4, 5), (3, *kernel, 5), bias=padding == "same")
    return found


def layers() -> dict[str, Layer[Any]]:
    made = Layers()
    for name, case in sampled(COUNT).items():
        if not isinstance(case.op, ConvTranspose):
            bias = case.bias or type(case.op) is Conv
            made.weighted(name, replace(case, zero=0, lowest=max(case.lowest, -127), bias=bias), once=False)
    for name, case in transposed().items():
        made.weighted(name, case, once=False)
    return {layer.name: layer for layer in made.graph().layers()}


LAYERS = layers()


def stored(tensor: Tensor, dtype: str) -> Quant:
    """int16 tensors have finer scales and no zero points."""
    quant = quant_of(tensor)
    if dtype != "int16":
        zero = quant.zero_point + (128 if dtype == "uint8" else 0)
        return Quant.per_tensor(float(np.float32(quant.scale)), zero)
    return Quant.per_tensor(float(np.float32(quant.scale / 256)), 0)


def file_of(layer: Layer[Any], dtype: str) -> bytes:
    op, w = layer.op, layer.input(1)
    x, y = (stored(tensor, dtype) for tensor in (layer.input(0), layer.output))
    values = [Value("x", layer.input(0).shape, dtype, x), Value("y", layer.output.shape, dtype, y)]
    w_scales = tuple(float(np.float32(scale)) for scale in quant_of(w).scales)
    w_quant = replace(quant_of(w), scales=w_scales)
    if dtype == "uint8":  # the scale of the first channel serves all
        w_scales = w_scales[:1]
        w_quant = Quant.per_tensor(w_scales[0], 128)
        values.append(Value.constant("w", (w.value.astype(np.int16) + 128).astype(np.uint8), w_quant))
    else:
        values.append(Value.constant("w", w.value, w_quant))
    operands = ["x", "w"]
    if layer.has_input(2):
        scales = tuple(float(np.float32(x.scale) * np.float32(s)) for s in w_scales)
        quant = Quant(scales, (0,) * len(scales), 0 if w_quant.per_channel else None)
        bias = layer.input(2).value.astype("int64" if dtype == "int16" else "int32")
        values.append(Value.constant("b", bias, quant))
        operands.append("b")
    fields: dict[str, Any] = {} if isinstance(op, Dense) else {"Padding": VALID}
    calls = []
    if not isinstance(op, Dense):
        fields |= {"StrideH": op.strides[0], "StrideW": op.strides[1]}
    if isinstance(op, ConvTranspose):
        fields["Padding"] = SAME if "same" in layer.name else VALID
        values.append(Value.constant("shape", np.array(layer.output.shape, np.int32)))
        call = Call(
            "TRANSPOSE_CONV", ["shape", "w", "x", *operands[2:]], ["y"], "TransposeConvOptions", fields
        )
        return write(Part(values, [call], ["x"], ["y"]))
    fields["FusedActivationFunction"] = RELU if op.clamp[0] == 0 else 0
    if isinstance(op, Dense):
        name, table = "FULLY_CONNECTED", "FullyConnectedOptions"
    else:
        fields |= {"DilationHFactor": op.dilations[0], "DilationWFactor": op.dilations[1]}
        name, table = "CONV_2D", "Conv2DOptions"
        if isinstance(op, DepthwiseConv):
            name, table = "DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions"
            fields["DepthMultiplier"] = w.shape[3] // layer.input(0).shape[3]
        top, left, bottom, right = op.pads
        amounts = np.array([[0, 0], [top, bottom], [left, right], [0, 0]], np.int32)
        padded = tuple(int(extent) for extent in np.array(layer.input(0).shape) + amounts.sum(axis=1))
        values += [Value.constant("amounts", amounts), Value("p", padded, dtype, x)]
        calls.append(Call("PAD", ["x", "amounts"], ["p"], "PadOptions"))
        operands[0] = "p"
    calls.append(Call(name, operands, ["y"], table, fields))
    return write(Part(values, calls, ["x"], ["y"]))


@pytest.mark.parametrize("dtype", REFERENCE)
@pytest.mark.parametrize("name", LAYERS)
def test_numpy_equals_litert(name: str, dtype: str) -> None:
    pytest.importorskip("ai_edge_litert", reason="the reference")
    from tests.random_graphs.tflite_model import litert

    layer = LAYERS[name]
    info = np.iinfo(dtype)
    x = np.random.default_rng(5).integers(info.min, info.max + 1, layer.input(0).shape).astype(dtype)
    model = Model(Recipe(REFERENCE[dtype], 1, 1, 1, ()), file_of(layer, dtype), [[x]])
    ((wanted,),) = litert(model)
    graph = tflite_graph.read(Path("layer.tflite"), model.content, {})
    (found,) = interpret(in_their_arithmetic(model, graph), {"x": x}).values()
    np.testing.assert_array_equal(found, wanted)
