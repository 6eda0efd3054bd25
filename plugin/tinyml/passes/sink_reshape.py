# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Move reshapes after element-wise operators, so that these can be fused with the layer before.

A reshape costs nothing, but it separates a one-dimensional convolution (which is computed as a
two-dimensional one) from its activation or scale.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tinyml.ir import Graph, Node, Tensor, TensorType
from tinyml.ops.reshape import Reshape
from tinyml.passes.editor import Editor, sweep_until_stable


def sink_reshape(graph: Graph) -> Graph:
    """op(reshape(x)) becomes reshape(op(x))."""
    edit = Editor(graph)
    sweep_until_stable(edit, _sink)
    return edit.graph()


def _sink(edit: Editor, node: Node) -> bool:
    if not node.op.elementwise or len(node.outputs) != 1:
        return False
    y = edit.tensors[node.outputs[0]]
    operands = [edit.tensors[name] for name in node.inputs]
    if any(t.quant is not None and t.quant.per_channel for t in (*operands, y)):
        return False
    reshapes = [edit.producer(name) for name in node.inputs]
    sources = {
        edit.tensors[r.inputs[0]].shape for r in reshapes if r is not None and isinstance(r.op, Reshape)
    }
    if len(sources) != 1:
        return False
    shape = sources.pop()
    if int(np.prod(shape)) != y.elements:  # what was reshaped is also repeated
        return False
    inner = [_inner(edit, t, r, shape, y) for t, r in zip(operands, reshapes, strict=True)]
    if any(t is None for t in inner):
        return False
    result = edit.tensor(f"{y.name}/inner", TensorType(shape, y.dtype, y.quant))
    names = tuple(t.name for t in inner if t is not None)
    edit.replace(
        node,
        [
            replace(node, inputs=names, outputs=(result.name,)),
            Node(f"{node.name}/shape", Reshape(y.shape), (result.name,), node.outputs),
        ],
    )
    for before in reshapes:
        if before is not None and isinstance(before.op, Reshape) and edit.has(before):
            edit.remove_unread(before)
    return True


def _inner(
    edit: Editor, tensor: Tensor, source: Node | None, shape: tuple[int, ...], y: Tensor
) -> Tensor | None:
    """The operand as it has to be in front of the reshape, or None where that is not possible."""
    if source is not None and isinstance(source.op, Reshape) and tensor.shape == y.shape:
        x = edit.tensors[source.inputs[0]]
        return x if x.quant == tensor.quant else None
    if not tensor.is_constant:
        return None
    if tensor.elements == 1:
        return edit.constant(f"{tensor.name}/inner", tensor.value.reshape(()), tensor.quant)
    if tensor.shape == y.shape:
        return edit.constant(f"{tensor.name}/inner", tensor.value.reshape(shape), tensor.quant)
    per_channel = tensor.elements == tensor.shape[-1] == y.shape[-1] == shape[-1]
    if not per_channel or int(np.prod(shape)) == 0:
        return None
    return edit.constant(f"{tensor.name}/inner", tensor.value.reshape(-1), tensor.quant)
