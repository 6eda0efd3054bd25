# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Where a reference computes differently by design, the same graph in its arithmetic: so that nothing else
has to be compared with a tolerance.

LiteRT's dense layers multiply by a double and round once. We multiply by a fixed-point number and round
twice, as earlier releases, TensorFlow Lite Micro and CMSIS-NN do.

onnxruntime computes functions of int16 in float32. Ours are tables of 513 entries and straight lines between
them; ``tests/host/test_quantize_int16.py`` holds each of them against the real function on all 65,536 inputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import cast
from unittest.mock import patch

import numpy as np
import tflite

from tests.random_graphs.recipe import Model
from tinyml.compare.litert_dense import with_their_dense_layers
from tinyml.ir import Array, DType, Graph, Layer, Op, given
from tinyml.ops.dense.dense import Dense
from tinyml.ops.dense.matmul import MatMul
from tinyml.ops.elementwise.unary import Unary
from tinyml.ops.framework import fixed_point as fp
from tinyml.ops.quantization.quantize import Quantize
from tinyml.ops.shared.quant import centred, quant_of
from tinyml.ops.softmax import int16
from tinyml.ops.weighted.weighted import Weighted
from tinyml.pipeline import optimize


@dataclass(frozen=True)
class MatMulOfLiteRt(MatMul):
    """The same for a dense layer with computed weights, which is a product of two tensors to us."""

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        sums = np.matmul(centred(layer, inputs, 0), centred(layer, inputs, 1))
        x, w, y = (quant_of(tensor) for tensor in (layer.input(0), layer.input(1), layer.output))
        steps = fp.round_half_away(sums * (x.scale * w.scale / y.scale)).astype(np.int64) + y.zero_point
        return (np.clip(steps, *layer.output.dtype.limits).astype(layer.output.dtype.numpy),)


def _has_dense_layers(model: Model) -> bool:
    file = tflite.Model.GetRootAs(model.content, 0)
    codes = [file.OperatorCodes(i).BuiltinCode() for i in range(file.OperatorCodesLength())]
    return tflite.BuiltinOperator.FULLY_CONNECTED in codes


def in_their_arithmetic(model: Model, graph: Graph) -> Graph:
    """The optimised graph as the reference of ``model`` computes it."""
    if model.is_tflite:
        optimized = with_their_dense_layers(optimize(graph))
        dense, narrow = _has_dense_layers(model), _has_narrow_biases(model)
        nodes = (
            replace(node, op=_their_op(node.op, optimized.layer(node), dense, narrow))
            for node in optimized.nodes
        )
        return replace(optimized, nodes=tuple(nodes))
    with (
        patch.object(Unary, "_on_int16", lambda *_: None),
        patch.object(int16, "has_integer_form", lambda *_: False),
    ):
        return optimize(graph)


NUDGE = {DType.INT8: 1e-4, DType.INT16: 1e-2}
"""Of a step: more than float32's error."""


@contextmanager
def ties_rounded(direction: str) -> Iterator[None]:
    """What is quantised, and near the middle between two steps, is rounded ``up``, ``down`` or ``away``.

    onnxruntime's float32 takes one or the other. In a loop, the state that it settles at meets the same tie
    in every turn and in every run, so that such a model may differ on most of its inputs.
    """
    genuine = Quantize.evaluate

    def evaluate(op: Quantize, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x = given(inputs, 0).astype(np.float64)
        if op.quant.axis is None and op.dtype in NUDGE:
            sign = np.sign(x) if direction == "away" else 1.0 if direction == "up" else -1.0
            x = x + sign * NUDGE[op.dtype] * op.quant.scale
        return genuine(op, layer, [x])

    with patch.object(Quantize, "evaluate", evaluate):
        yield


def _with_narrow_sums(op: Weighted) -> Op:
    """int16 layers with int32 biases: LiteRT scales their sums like those of int8 layers."""
    genuine: type[Weighted] = type(op)

    def evaluate(self: Weighted, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        scale = fp.multiply_by_quantized_multiplier
        with patch.object(fp, "multiply_int64_by_quantized_multiplier", scale):
            return genuine.evaluate(self, layer, inputs)

    their = type(f"{genuine.__name__}OfLiteRt", (genuine,), {"evaluate": evaluate})
    return cast(Op, their(**{field.name: getattr(op, field.name) for field in fields(op)}))


def _has_narrow_biases(model: Model) -> bool:
    """Whether the options of a layer say so; a bias of that type alone does not."""
    graph = tflite.Model.GetRootAs(model.content, 0).Subgraphs(0)
    for i in range(graph.OperatorsLength()):
        operator = graph.Operators(i)
        kind = next(k for k, n in vars(tflite.BuiltinOptions).items() if n == operator.BuiltinOptionsType())
        if hasattr(tflite, f"{kind}AddQuantizedBiasType"):
            options = getattr(tflite, kind)()
            options.Init(operator.BuiltinOptions().Bytes, operator.BuiltinOptions().Pos)
            if options.QuantizedBiasType() == tflite.TensorType.INT32:
                return True
    return False


def _their_op(op: Op, layer: Layer, dense: bool, narrow: bool) -> Op:
    if (
        narrow
        and isinstance(op, Weighted)
        and not isinstance(op, Dense)
        and layer.input(0).dtype is DType.INT16
    ):
        return _with_narrow_sums(op)
    if dense and type(op) is MatMul and layer.output.quant is not None and layer.output.dtype is DType.INT8:
        return MatMulOfLiteRt(op.round_once)
    return op
