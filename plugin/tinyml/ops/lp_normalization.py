"""LpNormalization: divided by the norm along an axis; where that is 0, so is the result."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.errors import UnsupportedError
from tinyml.ir import Tensor
from tinyml.ops._axes import onnx_axis
from tinyml.ops.binary import Binary
from tinyml.ops.reduce import Reduce
from tinyml.ops.where import Where
from tinyml.reading import Builder, OnnxNode, onnx_op


@onnx_op("LpNormalization")
def read_onnx(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    x, p = node.input(0), int(node.attr("p", 2))
    if p not in (1, 2):
        raise UnsupportedError(f"LpNormalization with p = {p}", "1 or 2")
    norm = build.add1(Reduce(f"l{p}", (onnx_axis(node, len(x.shape), -1),)), [x])
    zero, one = (build.constant(np.asarray(value, x.dtype.numpy)) for value in (0, 1))
    divisor = build.add1(Where(), [build.add1(Binary("equal"), [norm, zero]), one, norm])
    return [build.add1(Binary("div"), [x, divisor])]
