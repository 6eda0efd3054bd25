# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The copy of a model with the same results in onnxruntime on every CPU; the package explains why."""

from __future__ import annotations

import onnx

from tinyml.reference import complement, fourier, integers, unsigned
from tinyml.reference.rewriting import Rewriting

REWRITES = (integers.rewrite, unsigned.rewrite, fourier.rewrite, complement.rewrite)
"""Each adds what a node becomes to the graph; or returns False, and the node stays as it is."""


def exact(model: onnx.ModelProto) -> onnx.ModelProto:
    """Tensors of the model keep their names, types and meaning; more are added."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    graph = Rewriting(copy)
    for node in [onnx.NodeProto.FromString(node.SerializeToString()) for node in copy.graph.node]:
        if not any(rewrite(node, graph) for rewrite in REWRITES):
            graph.nodes.append(node)
    graph.finish()
    return copy
