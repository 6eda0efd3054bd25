# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Cast and CastLike of ONNX, which also know types of two and four bits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.ir import DType, Tensor
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.elementwise.cast import cast, onnx_type
from tinyml.ops.framework.narrow import NARROW, Narrow
from tinyml.ops.framework.reading import Builder, OnnxNode, onnx_op


def onnx_kind(code: int) -> DType | Narrow:
    """The element type with ONNX's number ``code``, as the file has it."""
    from onnx import helper

    kind = NARROW.get(helper.tensor_dtype_to_np_dtype(code).name)
    return onnx_type(code) if kind is None else kind


def cast_to(build: Builder, x: Tensor, kind: DType | Narrow) -> Tensor:
    """``x`` as another type; narrow integers lose their upper bits."""
    if isinstance(kind, DType):
        return cast(build, x, kind)
    if build.kind(x) == kind:
        return x
    if x.dtype.is_float:
        x = cast(build, x, DType.INT32)  # saturates, where a byte would lose bits that count
    low, high = kind.limits
    kept = build.add1(Binary("bitwise_and"), [cast(build, x, DType.UINT8), _byte(build, high - low)])
    if kind.signed:  # flip the sign bit, and subtract what it weighs
        flipped = build.add1(Binary("bitwise_xor"), [kept, _byte(build, -low)])
        signed = cast(build, flipped, DType.INT8)
        kept = build.add1(Binary("add"), [signed, build.constant(np.asarray(low, np.int8))])
    build.narrow[kept.name] = kind
    return kept


def _byte(build: Builder, value: int) -> Tensor:
    return build.constant(np.asarray(value, np.uint8))


@onnx_op("Cast")
def read_cast(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    return [cast_to(build, node.input(0), onnx_kind(int(node.attr("to"))))]


@onnx_op("CastLike")
def read_cast_like(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    return [cast_to(build, node.input(0), build.kind(node.input(1)))]
