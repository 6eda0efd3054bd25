# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Quantised operators without an integer form of their own: computed on real numbers in between."""

from __future__ import annotations

from collections.abc import Sequence

from tinyml.base.errors import ModelError
from tinyml.ir import DType, Op, Tensor, TensorType
from tinyml.ops.framework.reading import Builder, TfliteNode
from tinyml.ops.quantization.quantize import Dequantize, Quantize
from tinyml.ops.shared.quant import dequantize


def to_real(build: Builder, x: Tensor | None) -> Tensor | None:
    """A quantised operand as float32; others as they are."""
    return x if x is None or x.quant is None else build.add1(Dequantize(), [x])


def in_real_numbers(build: Builder, op: Op, inputs: Sequence[Tensor | None], output: TensorType) -> Tensor:
    """quantize(op(dequantize(inputs))), rounding halves away from zero as TFLite does."""
    y = build.add1(op, [to_real(build, x) for x in inputs])
    if output.quant is None:
        return y
    return build.add1(Quantize(output.dtype, output.quant, halves_to_even=False), [y])


HYBRID = (
    "hybrid (dynamic-range) layers are computed in float with dequantised weights; TensorFlow Lite quantises "
    "their activations at run time, so its results differ slightly"
)


NARROW_BIAS = (
    "int16 layers with biases of 32 bits add in 64 bits, like those with biases of 64 bits; LiteRT scales "
    "their sums with other roundings, so its results can differ by one step"
)


def layer_weights(node: TfliteNode, build: Builder, x: Tensor, w: Tensor) -> Tensor:
    """The weights of a layer, which is quantised as a whole or not at all."""
    w, output = real_weights(build, x, w), node.outputs[0]
    if len({t.quant is None for t in (x, w, output)}) > 1:
        kinds = ", ".join(f"{t.dtype.value}{'' if t.quant is None else ' quantised'}" for t in (x, w, output))
        raise ModelError(
            f"{node.op_type} operator {node.name!r}: input, weights and output are {kinds}",
            "all of them quantised, or none",
        )
    return w


def layer_bias(build: Builder, x: Tensor, bias: Tensor | None) -> Tensor | None:
    """The bias of a layer; that of an int16 layer with 64 bits, whatever the file has."""
    if bias is None or x.dtype is not DType.INT16 or bias.dtype is not DType.INT32 or bias.data is None:
        return bias
    build.note(NARROW_BIAS)
    return build.constant(bias.data.astype("int64"), f"{bias.name}/wide", bias.quant)


def real_weights(build: Builder, x: Tensor, w: Tensor) -> Tensor:
    """Weights of a hybrid layer (quantised weights, float activations), dequantised now.

    TensorFlow Lite quantises the activations of such a layer at run time instead, which costs accuracy;
    here it computes what the weights mean.
    """
    if not x.dtype.is_float or w.quant is None or not w.is_constant:
        return w
    build.note(HYBRID)
    return build.constant(dequantize(w.value, w.quant), f"{w.name}/real")
