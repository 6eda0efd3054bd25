# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Dropout: the identity in a trained model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.base.errors import UnsupportedError
from tinyml.ir import Tensor
from tinyml.ops.framework.reading import Builder, OnnxNode, onnx_op


@onnx_op("Dropout")
def read_onnx(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    x, training = node.input(0), node.optional(2)
    if training is not None and bool(node.const(2).reshape(())):
        ratio = 0.5 if node.optional(1) is None else float(node.const(1).reshape(()))
        if ratio != 0.0:
            raise UnsupportedError(
                f"Dropout node {node.name!r} is in training mode",
                "export the model for inference: model.eval()",
            )
    if not node.wants(1):
        return [x]
    kind = x.dtype.numpy if node.opset < 10 else np.dtype(np.bool_)
    return [x, build.constant(np.ones(x.shape, kind))]
