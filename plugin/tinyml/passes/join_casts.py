# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Replace two casts by one where the type between them holds every value of the first type."""

from __future__ import annotations

from dataclasses import replace

from tinyml.ir import DType, Graph, Node
from tinyml.ops.elementwise.cast import Cast
from tinyml.passes.editor import Editor


def join_casts(graph: Graph) -> Graph:
    """Exporters turn masks from bool to int64 to float32; the array of int64 would be the largest."""
    edit = Editor(graph)
    for node in edit.sweep():
        _join(edit, node)
    return edit.graph()


def _join(edit: Editor, node: Node) -> None:
    """cast(cast(x)); the casts before ``node`` are joined already."""
    before = edit.producer(node.inputs[0]) if isinstance(node.op, Cast) else None
    if before is None or not isinstance(before.op, Cast):
        return
    x, between = edit.tensors[before.inputs[0]], edit.tensors[node.inputs[0]]
    if x.quant is None and between.quant is None and _holds(between.dtype, x.dtype):
        edit.replace(node, [replace(node, inputs=before.inputs)])
        edit.remove_unread(before)


def _holds(wide: DType, narrow: DType) -> bool:
    """Whether a cast to ``wide`` keeps every value, and casting it on has the result of casting ``narrow``.

    Integers wrap and real numbers saturate, so an integer does not become a real number on its way.
    """
    if narrow is DType.BOOL:
        return True
    if narrow.is_float or wide.is_float:
        return narrow.is_float and wide.is_float and wide.bytes >= narrow.bytes
    if wide is DType.BOOL:
        return False
    (low, high), (lowest, highest) = narrow.limits, wide.limits
    return lowest <= low and high <= highest
