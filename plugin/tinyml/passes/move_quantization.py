# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Move quantisation and dequantisation next to the operators that compute.

Operators that only move elements (reshape, transpose, slice, …) do the same on integers, so a Dequantize
before one moves after it, and a Quantize after one moves before it.
"""

from __future__ import annotations

from dataclasses import replace

from tinyml.ir import Graph, Node, Quant, Tensor, TensorType
from tinyml.ops.quantization.quantize import Dequantize, Quantize
from tinyml.passes.editor import Editor, sweep_until_stable


def move_quantization(graph: Graph) -> Graph:
    """Repeat the two swaps until none applies."""
    edit = Editor(graph)
    sweep_until_stable(edit, lambda e, node: _sink_dequantize(e, node) or _raise_quantize(e, node))
    return edit.graph()


def _sink_dequantize(edit: Editor, node: Node) -> bool:
    """movement(dequantize(q)) becomes dequantize(movement(q))."""
    source = edit.producer(node.inputs[0]) if node.op.movement else None
    if source is None or not isinstance(source.op, Dequantize) or len(node.outputs) != 1:
        return False
    stored = edit.tensors[source.inputs[0]]
    others = [edit.tensors[name] if name else None for name in node.inputs[1:]]
    type_ = node.op.infer([stored, *others])[0]
    if type_.quant is None:
        return False
    moved = edit.tensor(f"{node.outputs[0]}/q", TensorType(type_.shape, stored.dtype, type_.quant))
    edit.replace(
        node,
        [
            replace(node, inputs=(stored.name, *node.inputs[1:]), outputs=(moved.name,)),
            Node(node.name, Dequantize(), (moved.name,), node.outputs),
        ],
    )
    return True


def _raise_quantize(edit: Editor, node: Node) -> bool:
    """quantize(movement(x)) becomes movement(quantize(x)), where the border is the only reader."""
    if not isinstance(node.op, Quantize) or node.op.quant.per_channel:
        return False
    source = edit.producer(node.inputs[0])
    if source is None or not source.op.movement or edit.only_reader(node.inputs[0]) is not node:
        return False
    if len(source.outputs) != 1:
        return False
    before = edit.tensors[source.inputs[0]]
    if before.is_constant:
        return False
    stored = edit.tensor(f"{before.name}/q", _stored(before, node.op.quant, edit.tensors[node.outputs[0]]))
    edit.replace(
        [source, node],
        [
            Node(node.name, node.op, (before.name,), (stored.name,)),
            replace(source, inputs=(stored.name, *source.inputs[1:]), outputs=node.outputs),
        ],
    )
    return True


def _stored(before: Tensor, quant: Quant, after: Tensor) -> TensorType:
    return TensorType(before.shape, after.dtype, quant)
