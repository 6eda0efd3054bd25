# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Replace a transpose that only moves axes of extent 1 by a reshape."""

from __future__ import annotations

from dataclasses import replace

from tinyml.ir import Graph
from tinyml.ops.reshape import Reshape
from tinyml.ops.transpose import Transpose
from tinyml.passes.editor import Editor


def reshape_still_transposes(graph: Graph) -> Graph:
    """Comes after the layout pass, which needs to see them as transposes."""
    edit = Editor(graph)
    for node in edit.sweep():
        if isinstance(node.op, Transpose):
            x, y = edit.tensors[node.inputs[0]], edit.tensors[node.outputs[0]]
            plain = x.quant is None or not x.quant.per_channel
            if plain and node.op.moves_nothing(x.shape):
                edit.replace(node, [replace(node, op=Reshape(y.shape))])
    return edit.graph()
