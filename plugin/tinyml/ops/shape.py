# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Shapes and values derived from them: all shapes are static, so all of these are constants."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.base import limits
from tinyml.ir import Tensor
from tinyml.ops.concat import Concat
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.elementwise.cast import onnx_type
from tinyml.ops.expand import expand
from tinyml.ops.framework.reading import Builder, OnnxNode, TfliteNode, onnx_op, tflite_op
from tinyml.ops.reshape import Reshape


@onnx_op("Shape")
def read_shape(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    x = node.input(0)
    wanted = slice(int(node.attr("start", 0)), node.attr("end"))
    shape = np.array(x.shape, np.int64)
    known = build.counted.get(x.name)
    if known is None or known.axis not in range(len(shape))[wanted]:
        return [build.constant(shape[wanted])]
    extents = [build.constant(shape[a : a + 1]) for a in range(len(shape))]
    extents[known.axis] = build.tensors[known.count]  # as many as there are
    parts = extents[wanted]
    return [parts[0] if len(parts) == 1 else build.add1(Concat(0), parts)]


@onnx_op("Size")
def read_size(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    x = node.input(0)
    known = build.counted.get(x.name)
    if known is None:
        return [build.constant(np.array(x.elements, np.int64))]
    others = build.constant(np.array([x.elements // max(x.shape[known.axis], 1)], np.int64))
    product = build.add1(Binary("mul"), [build.tensors[known.count], others])
    return [build.add1(Reshape(()), [product])]


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
