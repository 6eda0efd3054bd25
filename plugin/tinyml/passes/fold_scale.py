# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Fold a factor or an offset per channel (batch normalisation, scaling) into the adjacent layer.

conv(x) * a + b is a convolution with other weights and another bias; so is conv(x * a + b), except that an
offset must not meet padding, which is zero. Float layers only: integers are rescaled by their multipliers.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tinyml.ir import Array, DType, Graph, Layer, Node
from tinyml.ops.shared.quant import NO_CLAMP
from tinyml.ops.weighted.block_form import block_form
from tinyml.ops.weighted.weighted import Weighted
from tinyml.passes.editor import Editor, sweep_until_stable


def fold_scale(graph: Graph) -> Graph:
    """Both sides, until nothing is left to fold."""
    edit = Editor(graph)
    sweep_until_stable(edit, lambda e, node: _fold_after(e, node) or _fold_before(e, node))
    return edit.graph()


def _fold_after(edit: Editor, node: Node) -> bool:
    """binary(linear(x), constant)"""
    found = node.op.affine(edit.layer(node))
    if found is None:
        return False
    before = edit.producer(node.inputs[found.operand])
    if before is None or edit.only_reader(before.outputs[0]) is not node:
        return False
    layer = edit.layer(before)
    terms = _terms(layer)
    op = before.op.limited(*node.op.limits)
    if terms is None or op is None or before.op.limits != NO_CLAMP:
        return False
    weights, bias, axis = terms
    shape = [1] * weights.ndim
    shape[axis] = -1
    with np.errstate(all="ignore"):
        scaled = weights * found.factor.reshape(shape), bias * found.factor + found.offset
    return _rewrite(edit, [before, node], replace(before, op=op, outputs=node.outputs), *scaled)


def _fold_before(edit: Editor, node: Node) -> bool:
    """linear(binary(x, constant))"""
    op = node.op
    if not isinstance(op, Weighted) or not op.sums_all_inputs:
        return False
    before = edit.producer(node.inputs[0])
    if before is None or edit.only_reader(node.inputs[0]) is not node:
        return False
    found = before.op.affine(edit.layer(before))
    layer = edit.layer(node)
    terms = _terms(layer)
    if found is None or terms is None or before.op.limits != NO_CLAMP:
        return False
    if op.reads_padding and np.any(found.offset):
        return False
    weights, bias, axis = terms
    factor, offset = found.factor, found.offset
    if np.any(factor != factor.flat[0]) and _packed(layer.input(1).value):
        return False
    if not op.mixes_channels:
        times = weights.shape[-1] // factor.size
        factor, offset = np.repeat(factor, times), np.repeat(offset, times)
    with np.errstate(all="ignore"):
        share = (weights * offset).sum(axis=tuple(a for a in range(weights.ndim) if a != axis))
        scaled = weights * factor, bias + share
    source = before.inputs[found.operand]
    return _rewrite(edit, [before, node], replace(node, inputs=(source, *node.inputs[1:])), *scaled)


def _packed(weights: Array) -> bool:
    """Whether weights are a few bits in blocks along the inputs: with other factors they would be floats."""
    return any(block_form(weights, bits) is not None for bits in (4, 8))


def _terms(layer: Layer) -> tuple[Array, Array, int] | None:
    """Constant weights and bias of a float layer, and the axis of the weights that counts output channels.

    Weights that are all whole numbers are left alone: such models do integer arithmetic in floats, and the
    sums would no longer be exact.
    """
    if not isinstance(layer.op, Weighted) or layer.input(0).dtype is not DType.FLOAT32:
        return None
    w = layer.input(1)
    bias = layer.input(2) if layer.has_input(2) else None
    if not w.is_constant or w.dtype is not DType.FLOAT32 or (bias is not None and not bias.is_constant):
        return None
    if np.all(w.value == np.rint(w.value)):
        return None
    axis = layer.op.channel_axis
    outputs = w.shape[axis]
    values = np.zeros(outputs) if bias is None else bias.value.reshape(-1).astype(np.float64)
    return (w.value.astype(np.float64), values, axis) if values.size == outputs else None


def _rewrite(edit: Editor, old: list[Node], new: Node, weights: Array, bias: Array) -> bool:
    """Put ``new`` in place of ``old``, with these weights and this bias, unless float32 cannot hold them.

    A product with an infinite weight is infinite or not a number, where that of the sums may be neither.
    """
    with np.errstate(over="ignore"):
        weights, bias = weights.astype(np.float32), bias.astype(np.float32)
    if not (np.all(np.isfinite(weights)) and np.all(np.isfinite(bias))):
        return False
    name = new.inputs[1]
    names = [new.inputs[0], edit.constant(f"{name}/scaled", weights).name]
    if np.any(bias) or len(new.inputs) > 2:
        names.append(edit.constant(f"{name}/offset", bias).name)
    edit.replace(old, [replace(new, inputs=tuple(names))])
    return True
