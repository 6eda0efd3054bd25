# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""MaxUnpool: values put back where a MaxPool found them, zeros elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.base.errors import ModelError
from tinyml.ir import Tensor
from tinyml.ops.framework.reading import Builder, OnnxNode, onnx_op
from tinyml.ops.indexing.gather import known_indices
from tinyml.ops.indexing.scatter import ScatterElements
from tinyml.ops.pad import pad
from tinyml.ops.reshape import Reshape


@onnx_op("MaxUnpool")
def read_onnx(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    """A scatter into zeros; a larger ``output_shape`` adds zeros at the end."""
    x, indices = node.input(0), node.input(1)
    rank = len(x.shape) - 2
    kernel, strides = node.ints("kernel_shape"), node.ints("strides", (1,) * rank)
    pads = node.ints("pads", (0,) * (2 * rank))
    sizes = [
        (extent - 1) * strides[a] - pads[a] - pads[rank + a] + kernel[a]
        for a, extent in enumerate(x.shape[2:])
    ]
    shape = (*x.shape[:2], *sizes)
    zeros = build.constant(np.zeros(int(np.prod(shape)), x.dtype.numpy))
    indices = known_indices(build, indices, zeros.elements)
    flat = [build.add1(Reshape((x.elements,)), [t]) for t in (indices, x)]
    y = build.add1(Reshape(shape), [build.add1(ScatterElements(), [zeros, *flat])])
    if node.optional(2) is None:
        return [y]
    wanted = [int(d) for d in node.const(2)]
    if len(wanted) != len(shape):
        raise ModelError(f"MaxUnpool node {node.name!r}: output shape {wanted} for {shape}")
    ends = [w - have for w, have in zip(wanted, shape, strict=True)]
    return [pad(build, y, [0] * len(shape), ends, "constant")]
