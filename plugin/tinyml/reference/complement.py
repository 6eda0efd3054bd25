# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's Erfc, which tf2onnx leaves in files and onnxruntime does not know, as 1 - erf(x)."""

from __future__ import annotations

import numpy as np
import onnx

from tinyml.reference.rewriting import Rewriting


def rewrite(node: onnx.NodeProto, graph: Rewriting) -> bool:
    if node.op_type != "Erfc" or node.domain not in ("", "ai.onnx"):
        return False
    graph.add("Sub", [graph.constant(np.float32(1)), graph.add("Erf", node.input)], node.output[0])
    return True
