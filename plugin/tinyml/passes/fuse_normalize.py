# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The steps of a normalisation become one operator: x / sqrt(mean of squares + epsilon), centred or not."""

from __future__ import annotations

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import DType, Graph, Node
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.elementwise.unary import Unary
from tinyml.ops.normalization.normalization import Normalize
from tinyml.ops.reduce.reduce import Reduce
from tinyml.ops.shared.quant import NO_CLAMP
from tinyml.passes.editor import Editor
from tinyml.passes.remove_dead_code import remove_dead_code


def fuse_normalize(graph: Graph) -> Graph:
    """PyTorch writes RMS normalisation in six layers, of which a quantiser would make bytes."""
    edit = Editor(graph)
    found = False
    for node in edit.sweep():
        fused = _fused(edit, node)
        if fused is not None:
            edit.replace(node, [fused])
            found = True
    return remove_dead_code(edit.graph()) if found else graph


@dataclass(frozen=True)
class _Divisor:
    """sqrt(mean of the squares of ``x`` over ``axes`` + ``epsilon``)"""

    x: str
    axes: tuple[int, ...]
    epsilon: float


def _fused(edit: Editor, node: Node) -> Node | None:
    if not isinstance(node.op, Binary) or node.op.function not in ("mul", "div"):
        return None
    if node.op.clamp != NO_CLAMP or not _real(edit, *node.inputs):
        return None
    pairs = [tuple(node.inputs)] if node.op.function == "div" else [node.inputs[:2], node.inputs[1::-1]]
    for x, other in pairs:
        root = other if node.op.function == "div" else _inverted(edit, other)
        divisor = _root(edit, root) if root else None
        if divisor is None or divisor.x != x:
            continue
        whole = _centred(edit, x, divisor.axes)
        op = Normalize(divisor.axes, divisor.epsilon, centred=whole is not None)
        return Node(node.name, op, (whole or x,), node.outputs)
    return None


def _real(edit: Editor, *names: str) -> bool:
    return all(edit.tensors[n].dtype is DType.FLOAT32 and edit.tensors[n].quant is None for n in names)


def _step(edit: Editor, name: str, kind: type, function: str) -> Node | None:
    """The layer that gives a tensor for one reader, if it computes this function."""
    node = edit.producer(name)
    if node is None or not isinstance(node.op, kind) or edit.only_reader(name) is None:
        return None
    limited = isinstance(node.op, Binary) and node.op.clamp != NO_CLAMP
    return node if getattr(node.op, "function", "") == function and not limited else None


def _inverted(edit: Editor, name: str) -> str | None:
    """The root that a tensor is the reciprocal of; of ``rsqrt``, the tensor itself."""
    node = _step(edit, name, Unary, "reciprocal")
    if node is not None:
        return node.inputs[0]
    node = _step(edit, name, Binary, "div")
    if node is not None:
        return node.inputs[1] if _number(edit, node.inputs[0]) == 1.0 else None
    return name if _step(edit, name, Unary, "rsqrt") else None


def _root(edit: Editor, name: str) -> _Divisor | None:
    root = _step(edit, name, Unary, "sqrt") or _step(edit, name, Unary, "rsqrt")
    total = _step(edit, root.inputs[0], Binary, "add") if root else None
    if total is None:
        return None
    for mean, constant in (total.inputs, total.inputs[::-1]):
        epsilon = _number(edit, constant)
        reduced = _step(edit, mean, Reduce, "mean")
        if epsilon is None or epsilon < 0 or reduced is None:
            continue
        square = _step(edit, reduced.inputs[0], Binary, "mul")
        if square is not None and square.inputs[0] == square.inputs[1]:
            return _Divisor(square.inputs[0], reduced.op.axes, epsilon)  # type: ignore[attr-defined]
    return None


def _centred(edit: Editor, name: str, axes: tuple[int, ...]) -> str | None:
    """What a tensor is without its mean; None if it has its mean."""
    node = edit.producer(name)
    if node is None or not isinstance(node.op, Binary) or node.op.function != "sub":
        return None
    whole, mean = node.inputs
    reduced = edit.producer(mean)
    if reduced is None or not isinstance(reduced.op, Reduce) or node.op.clamp != NO_CLAMP:
        return None
    same = reduced.op.function == "mean" and reduced.op.axes == axes and reduced.inputs[0] == whole
    return whole if same and _real(edit, whole) else None


def _number(edit: Editor, name: str) -> float | None:
    data = edit.tensors[name].data
    return float(data.reshape(-1)[0]) if data is not None and data.size == 1 else None
