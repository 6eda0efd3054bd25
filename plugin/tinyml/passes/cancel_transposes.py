# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Move transposes towards the outputs and cancel pairs that meet (NCHW models become NHWC)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tinyml.ir import Graph, Node, Tensor, TensorType
from tinyml.ops.reshape import Reshape
from tinyml.ops.transpose import Transpose
from tinyml.passes._reshape_axes import carried
from tinyml.passes.editor import Editor, sweep_until_stable

CHEAP = 8  # an operand this many times smaller than the result may be transposed so that the rest need not


def cancel_transposes(graph: Graph) -> Graph:
    """Repeat local rules until none applies: merge, drop, carry past an operator or a reshape."""
    edit = Editor(graph)
    sweep_until_stable(edit, _step)
    return edit.graph()


def _step(edit: Editor, node: Node) -> bool:
    if isinstance(node.op, Transpose):
        return _drop_identity(edit, node) or _merge(edit, node)
    if isinstance(node.op, Reshape):
        return _carry_past_reshape(edit, node)
    return _carry(edit, node)


def _drop_identity(edit: Editor, node: Node) -> bool:
    assert isinstance(node.op, Transpose)
    return node.op.perm == tuple(range(len(node.op.perm))) and edit.bypass(node)


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


def _carry_past_reshape(edit: Editor, node: Node) -> bool:
    """reshape(transpose(x)) becomes transpose(reshape(x)), where no axis is torn apart."""
    before = edit.producer(node.inputs[0])
    if before is None or not isinstance(before.op, Transpose):
        return False
    x, y = edit.tensors[before.inputs[0]], edit.tensors[node.outputs[0]]
    if any(t.quant is not None and t.quant.per_channel for t in (x, y)):
        return False
    found = carried(x.shape, before.op.perm, y.shape)
    if found is None:
        return False
    shape, perm = found
    inner = edit.tensor(f"{y.name}/nhwc", TensorType(shape, y.dtype, y.quant))
    edit.replace(
        node,
        [
            Node(node.name, Reshape(shape), (x.name,), (inner.name,)),
            Node(node.name, Transpose(perm), (inner.name,), node.outputs),
        ],
    )
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
    inverse = tuple(int(i) for i in np.argsort(perm))
    op = node.op.permuted(layer, inverse)
    if op is None:
        return False
    turned: list[Node] = []
    moved = [_unpermuted(edit, tensor, perm, layer.output, turned) for tensor in layer.inputs]
    if any(name and tensor is None for name, tensor in zip(node.inputs, moved, strict=True)):
        return False
    if turned and _work(edit, turned) >= _work(edit, [s for s in sources if s is not None]):
        return False  # no gain, and the next sweep would undo it
    y = layer.output
    quant = None if y.quant is None else Transpose(inverse).infer([y])[0].quant
    shape = tuple(y.shape[p] for p in inverse)
    inner = edit.tensor(f"{y.name}/nhwc", TensorType(shape, y.dtype, quant))
    names = tuple(tensor.name if tensor is not None else "" for tensor in moved)
    edit.replace(
        node,
        [
            *turned,
            Node(node.name, op, names, (inner.name,)),
            Node(node.name, Transpose(perm), (inner.name,), node.outputs),
        ],
    )
    for source in sources:
        if source is not None and isinstance(source.op, Transpose) and edit.has(source):
            edit.remove_unread(source)
    return True


def _work(edit: Editor, nodes: Sequence[Node]) -> int:
    """How many elements the transposes among some nodes move."""
    shapes = [(n.op, edit.tensors[n.inputs[0]].shape) for n in nodes if isinstance(n.op, Transpose)]
    return sum(math.prod(shape) for op, shape in shapes if not op.moves_nothing(shape))


def _unpermuted(
    edit: Editor, tensor: Tensor | None, perm: Sequence[int], y: Tensor, turned: list[Node]
) -> Tensor | None:
    """The operand before its transpose. Constants are transposed back immediately, small operands at
    run time (the nodes for that are added to ``turned``)."""
    if tensor is None:
        return None
    source = edit.producer(tensor.name)
    if source is not None and isinstance(source.op, Transpose) and source.op.perm == tuple(perm):
        return edit.tensors[source.inputs[0]]
    if tensor.elements == 1 and tensor.quant is None and tensor.is_constant:
        return tensor
    if tensor.quant is not None and tensor.quant.axis is not None:
        return None
    inverse = tuple(int(i) for i in np.argsort(perm))
    if tensor.is_constant:
        padded = tensor.value.reshape((1,) * (len(perm) - len(tensor.shape)) + tensor.shape)
        return edit.constant(f"{tensor.name}/nhwc", np.transpose(padded, inverse), tensor.quant)
    if len(tensor.shape) != len(perm):
        return None
    back = Transpose(inverse)
    if not back.moves_nothing(tensor.shape) and tensor.elements * CHEAP > y.elements:
        return None
    node, result = edit.make(f"{tensor.name}/nhwc", back, [tensor])
    turned.append(node)
    return result
