# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Operators that onnxruntime's optimiser makes of several standard ones, read as those again.

Files that were saved after optimisation have them. ``docs/contrib_ops`` of onnxruntime defines them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from tinyml.base.errors import UnsupportedError
from tinyml.ir import Tensor
from tinyml.ops.dense.matmul import swapped
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.elementwise.unary import Unary
from tinyml.ops.framework.reading import ONNX_READERS, Builder, OnnxNode, onnx_op

MICROSOFT = "com.microsoft"
STANDARD_OPSET = 17  # whose attributes these operators share
EPSILON = 1e-12  # of the normalisations

PARAMETERS = {"LeakyRelu": ("alpha",), "HardSigmoid": ("alpha", "beta"), "Clip": ("min", "max")}
"""Activation -> what ``activation_params`` are."""
ACTIVATIONS = (
    *PARAMETERS,
    *("Relu", "Tanh", "Sigmoid", "Elu", "Selu", "Softplus", "Softsign", "ThresholdedRelu", "HardSwish"),
)


@onnx_op("FusedConv", domain=MICROSOFT)
def read_conv(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    """A convolution, a tensor that is added to it, and an activation; the last two are optional."""
    y = _standard(node, build, "Conv", node.inputs[:3], node.attributes)
    added = node.optional(3)
    if added is not None:
        y = build.add1(Binary("add"), [y, added])
    names = PARAMETERS.get(node.attr("activation", ""), ())
    return [_activated(node, build, y, dict(zip(names, node.attr("activation_params", ()), strict=False)))]


@onnx_op("FusedGemm", domain=MICROSOFT)
def read_gemm(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    y = _standard(node, build, "Gemm", node.inputs, node.attributes)
    prefix = "activation_"
    given = {
        name.removeprefix(prefix): value for name, value in node.attributes.items() if name.startswith(prefix)
    }
    return [_activated(node, build, y, given)]


@onnx_op("FusedMatMul", "TransposeMatMul", domain=MICROSOFT)
def read_matmul(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    """alpha * a x b; a matrix may be transposed, a vector cannot be."""
    if node.attr("transBatchA", 0) or node.attr("transBatchB", 0):
        raise UnsupportedError(
            f"{node.op_type} node {node.name!r} transposes batch axes, which is not supported"
        )
    operands = [
        swapped(build, x) if node.attr(name, 0) and len(x.shape) > 1 else x
        for name, x in (("transA", node.input(0)), ("transB", node.input(1)))
    ]
    y = _standard(node, build, "MatMul", operands)
    alpha = float(node.attr("alpha", 1.0))
    if alpha == 1.0:
        return [y]
    return [build.add1(Binary("mul"), [y, build.constant(np.asarray(alpha, y.dtype.numpy))])]


@onnx_op("BiasGelu", "FastGelu", "QuickGelu", domain=MICROSOFT)
def read_gelu(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    x, bias = node.input(0), node.optional(1)
    if bias is not None:
        x = build.add1(Binary("add"), [x, bias])
    if node.op_type == "QuickGelu":
        return [build.add1(Unary("swish", (float(node.attr("alpha", 1.702)),)), [x])]
    return [build.add1(Unary("gelu_tanh" if node.op_type == "FastGelu" else "gelu"), [x])]


@onnx_op("SkipLayerNormalization", domain=MICROSOFT)
def read_skip_layer(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    """Input, skip, scale, then optionally an offset and a bias; the fourth output is the sum."""
    scale_and_offset = (node.input(2), node.optional(3))
    return _skip(node, build, "LayerNormalization", scale_and_offset, node.optional(4))


@onnx_op("SkipSimplifiedLayerNormalization", domain=MICROSOFT)
def read_skip_simplified(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    """Input, skip, scale, then optionally a bias; the fourth output is the sum."""
    return _skip(node, build, "RMSNormalization", (node.input(2),), node.optional(3))


def _skip(
    node: OnnxNode,
    build: Builder,
    normalization: str,
    parameters: tuple[Tensor | None, ...],
    bias: Tensor | None,
) -> Sequence[Tensor]:
    if node.wants(1) or node.wants(2):
        raise UnsupportedError(f"the second and third outputs of {node.op_type} are not supported")
    total = build.add1(Binary("add"), [node.input(0), node.input(1)])
    if bias is not None:
        total = build.add1(Binary("add"), [total, bias])
    y = _standard(
        node, build, normalization, (total, *parameters), {"epsilon": node.attr("epsilon", EPSILON)}
    )
    return [y, y, y, total] if node.wants(3) else [y]


def _activated(node: OnnxNode, build: Builder, y: Tensor, parameters: Mapping[str, Any]) -> Tensor:
    name = node.attr("activation", "")
    if not name:
        return y
    if name not in ACTIVATIONS:
        raise UnsupportedError(
            f"{node.op_type} node {node.name!r} has the activation {name}",
            f"supported are {', '.join(ACTIVATIONS)}",
        )
    if name == "Clip":
        ends = [build.constant(np.asarray(parameters[end], y.dtype.numpy)) for end in PARAMETERS[name]]
        return _standard(node, build, name, [y, *ends])
    return _standard(node, build, name, [y], parameters)


def _standard(
    node: OnnxNode,
    build: Builder,
    op_type: str,
    inputs: Sequence[Tensor | None],
    attributes: Mapping[str, Any] = MappingProxyType({}),
) -> Tensor:
    """What the standard operator ``op_type`` computes in the place of ``node``."""
    call = replace(
        node,
        op_type=op_type,
        domain="",
        opset=STANDARD_OPSET,
        inputs=tuple(inputs),
        output_names=node.output_names[:1],
        attributes=attributes,
    )
    return ONNX_READERS[("", op_type)](call, build)[0]
