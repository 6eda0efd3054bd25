"""Carry transposes towards the outputs and cancel the pairs that meet (NCHW models become NHWC)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.ir import Graph, Node, Tensor, TensorType
from tinyml.ops.transpose import Transpose
from tinyml.passes.editor import Editor, sweep_until_stable


def cancel_transposes(graph: Graph) -> Graph:
    """Repeat three local rules until none applies: merge, drop, carry past an operator."""
    edit = Editor(graph)
    sweep_until_stable(edit, _step)
    return edit.graph()


def _step(edit: Editor, node: Node) -> bool:
    if isinstance(node.op, Transpose):
        return _drop_identity(edit, node) or _merge(edit, node)
    return _carry(edit, node)


def _drop_identity(edit: Editor, node: Node) -> bool:
    assert isinstance(node.op, Transpose)
    if node.op.perm != tuple(range(len(node.op.perm))) or edit.is_kept(node.outputs[0]):
        return False
    edit.replace(node, [])
    edit.substitute(node.outputs[0], node.inputs[0])
    return True


def _merge(edit: Editor, node: Node) -> bool:
    """transpose(transpose(x)) is one transpose of x."""
    assert isinstance(node.op, Transpose)
    before = edit.producer(node.inputs[0])
    if before is None or not isinstance(before.op, Transpose):
        return False
    perm = tuple(before.op.perm[p] for p in node.op.perm)
    edit.replace(node, [Node(node.name, Transpose(perm), before.inputs, node.outputs)])
    edit.remove_unread(before)
    return True


def _carry(edit: Editor, node: Node) -> bool:
    """op(transpose(a), transpose(b)) becomes transpose(op'(a, b)), if the operator allows it."""
    if len(node.outputs) != 1:
        return False
    sources = [edit.producer(name) for name in node.inputs if name]
    perms = {s.op.perm for s in sources if s is not None and isinstance(s.op, Transpose)}
    if len(perms) != 1:
        return False
    perm = perms.pop()
    layer = edit.layer(node)
    moved = [_unpermuted(edit, tensor, perm) for tensor in layer.inputs]
    if any(name and tensor is None for name, tensor in zip(node.inputs, moved, strict=True)):
        return False
    inverse = tuple(int(i) for i in np.argsort(perm))
    op = node.op.permuted(layer, inverse)
    if op is None:
        return False
    y = layer.output
    quant = None if y.quant is None else Transpose(inverse).infer([y])[0].quant
    shape = tuple(y.shape[p] for p in inverse)
    inner = edit.tensor(f"{y.name}/nhwc", TensorType(shape, y.dtype, quant))
    names = tuple(tensor.name if tensor is not None else "" for tensor in moved)
    edit.replace(
        node,
        [
            Node(node.name, op, names, (inner.name,)),
            Node(node.name, Transpose(perm), (inner.name,), node.outputs),
        ],
    )
    for source in sources:
        if source is not None and isinstance(source.op, Transpose):
            edit.remove_unread(source)
    return True


def _unpermuted(edit: Editor, tensor: Tensor | None, perm: Sequence[int]) -> Tensor | None:
    """The operand before its transpose; constants are transposed back here and now."""
    if tensor is None:
        return None
    source = edit.producer(tensor.name)
    if source is not None and isinstance(source.op, Transpose) and source.op.perm == tuple(perm):
        return edit.tensors[source.inputs[0]]
    if not tensor.is_constant:
        return None
    if tensor.elements == 1 and tensor.quant is None:
        return tensor
    inverse = tuple(int(i) for i in np.argsort(perm))
    padded = tensor.value.reshape((1,) * (len(perm) - len(tensor.shape)) + tensor.shape)
    quant = tensor.quant
    if quant is not None and quant.axis is not None:
        return None
    return edit.constant(f"{tensor.name}/nhwc", np.transpose(padded, inverse), quant)
