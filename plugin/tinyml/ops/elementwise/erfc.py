# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's Erfc, which tf2onnx leaves in the file under that name: ``tf.nn.gelu`` computes it.

ONNX has no such operator. It is read as 1 - erf(x), as other exporters write GELU.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.ir import Tensor
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.elementwise.unary import Unary
from tinyml.ops.framework.reading import Builder, OnnxNode, onnx_op


@onnx_op("Erfc")
def read_erfc(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    x = node.input(0)
    erf = build.add1(Unary("erf"), [x])
    return [build.add1(Binary("sub"), [build.constant(np.ones((), x.dtype.numpy)), erf])]
