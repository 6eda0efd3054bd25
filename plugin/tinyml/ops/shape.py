# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Shapes and values derived from them: all shapes are static, so all of these are constants."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.base import limits
from tinyml.ir import Tensor
from tinyml.ops.elementwise.cast import onnx_type
from tinyml.ops.expand import expand
from tinyml.ops.framework.reading import Builder, OnnxNode, TfliteNode, onnx_op, tflite_op


@onnx_op("Shape")
def read_shape(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    wanted = slice(int(node.attr("start", 0)), node.attr("end"))
    return [build.constant(np.array(node.input(0).shape[wanted], np.int64))]


@onnx_op("Size")
def read_size(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    return [build.constant(np.array(node.input(0).elements, np.int64))]


@onnx_op("ConstantOfShape")
def read_constant_of_shape(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    shape = tuple(int(extent) for extent in node.const(0).reshape(-1))
    value = np.asarray(node.attr("value", np.zeros(1, np.float32))).reshape(-1)[0]
    limits.check_shape(shape, f"ConstantOfShape node {node.name!r}")
    return [build.constant(np.full(shape, value))]


@onnx_op("Range")
def read_range(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    start, limit, delta = (node.const(i).reshape(()) for i in range(3))
    number = max(int(np.ceil((float(limit) - float(start)) / float(delta))), 0)
    limits.check_shape((number,), f"Range node {node.name!r}")
    steps = np.arange(number).astype(start.dtype)
    return [build.constant((start + steps * delta).astype(start.dtype))]


@onnx_op("NonZero")
def read_non_zero(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    """The input must be a constant, because the output shape depends on its values."""
    return [build.constant(np.stack(np.nonzero(node.const(0))).astype(np.int64))]


@onnx_op("EyeLike")
def read_eye_like(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    x = node.input(0)
    dtype = x.dtype if node.attr("dtype") is None else onnx_type(int(node.attr("dtype")))
    rows, columns = x.shape
    return [build.constant(np.eye(rows, columns, int(node.attr("k", 0)), dtype.numpy))]


@tflite_op("FILL")
def read_fill(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    shape = tuple(int(extent) for extent in node.const(0).reshape(-1))
    value = node.input(1)
    limits.check_shape(shape, f"FILL operator {node.name!r}")
    if value.is_constant:
        return [build.constant(np.full(shape, value.value.reshape(())), quant=value.quant)]
    return [expand(build, value, shape)]


@tflite_op("ZEROS_LIKE")
def read_zeros_like(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    x = node.input(0)
    return [build.constant(np.zeros(x.shape, x.dtype.numpy))]


@tflite_op("RANGE")
def read_tflite_range(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    start, limit, delta = (node.const(i).reshape(()) for i in range(3))
    number = max(int(np.ceil((float(limit) - float(start)) / float(delta))), 0)
    limits.check_shape((number,), f"RANGE operator {node.name!r}")
    return [build.constant((start + np.arange(number).astype(start.dtype) * delta).astype(start.dtype))]
