# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Fold a factor or an offset per channel (batch normalisation, scaling) into the adjacent layer.

conv(x) * a + b is a convolution with other weights and another bias; so is conv(x * a + b), except that an
offset must not meet padding, which is zero. Float layers only: integers are rescaled by their multipliers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tinyml.ir import Array, DType, Graph, Layer, Node
from tinyml.ops.conv.conv import Conv
from tinyml.ops.conv.depthwise import DepthwiseConv
from tinyml.ops.conv.transpose import ConvTranspose
from tinyml.ops.dense.dense import Dense
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.shared.quant import NO_CLAMP
from tinyml.passes.editor import Editor, sweep_until_stable

LINEAR = (Conv, DepthwiseConv, Dense, ConvTranspose)


@dataclass(frozen=True, eq=False)
class Affine:
    """y = x * factor + offset, one number of each per channel."""

    operand: int  # which input of the node x is
    factor: Array
    offset: Array


def fold_scale(graph: Graph) -> Graph:
    """Both sides, until nothing is left to fold."""
    edit = Editor(graph)
    sweep_until_stable(edit, lambda e, node: _fold_after(e, node) or _fold_before(e, node))
    return edit.graph()


def affine(layer: Layer) -> Affine | None:
    """A Binary with one constant that has one value per channel, or one value at all."""
    op = layer.op
    if not isinstance(op, Binary) or op.function not in ("add", "sub", "mul", "div"):
        return None
    if any(t is None or t.dtype is not DType.FLOAT32 or t.quant is not None for t in layer.inputs):
        return None
    constants = [i for i in (0, 1) if layer.input(i).is_constant]
    if len(constants) != 1 or not layer.output.shape:
        return None
    (index,) = constants
    x, c = layer.input(1 - index), layer.input(index)
    channels = layer.output.shape[-1]
    if x.shape != layer.output.shape or c.elements not in (1, c.shape[-1] if c.shape else 1):
        return None
    values = np.broadcast_to(c.value.reshape(-1).astype(np.float64), (channels,))
    one, zero = np.ones(channels), np.zeros(channels)
    if op.function == "mul":
        return Affine(1 - index, values, zero)
    if op.function == "add":
        return Affine(1 - index, one, values)
    if op.function == "sub":
        return Affine(0, one, -values) if index == 1 else Affine(1, -one, values)
    return Affine(0, 1 / values, zero) if index == 1 and np.all(values) else None


def _fold_after(edit: Editor, node: Node) -> bool:
    """binary(linear(x), constant)"""
    found = affine(edit.layer(node))
    if found is None:
        return False
    before = edit.producer(node.inputs[found.operand])
    if before is None or edit.only_reader(before.outputs[0]) is not node:
        return False
    layer = edit.layer(before)
    terms = _terms(layer)
    if terms is None or before.op.clamp != NO_CLAMP:  # type: ignore[attr-defined]
        return False
    weights, bias = terms
    shape = [1] * weights.ndim
    shape[_output_axis(layer)] = -1
    _rewrite(
        edit,
        [before, node],
        replace(before, op=replace(before.op, clamp=node.op.clamp), outputs=node.outputs),  # type: ignore
        weights * found.factor.reshape(shape),
        bias * found.factor + found.offset,
    )
    return True


def _fold_before(edit: Editor, node: Node) -> bool:
    """linear(binary(x, constant))"""
    if not isinstance(node.op, Conv | DepthwiseConv | Dense):
        return False
    before = edit.producer(node.inputs[0])
    if before is None or edit.only_reader(node.inputs[0]) is not node:
        return False
    found = affine(edit.layer(before))
    layer = edit.layer(node)
    terms = _terms(layer)
    if found is None or terms is None or before.op.clamp != NO_CLAMP:  # type: ignore[attr-defined]
        return False
    padded = not isinstance(node.op, Dense) and any(node.op.pads)
    grouped = isinstance(node.op, Conv) and node.op.groups != 1
    if grouped or (padded and np.any(found.offset)):
        return False
    weights, bias = terms
    factor, offset = found.factor, found.offset
    if isinstance(node.op, DepthwiseConv):
        times = weights.shape[3] // factor.size
        factor, offset = np.repeat(factor, times), np.repeat(offset, times)
        share = (weights * offset).sum(axis=(0, 1, 2))
    else:
        share = (weights * offset).sum(axis=tuple(range(1, weights.ndim)))
    source = before.inputs[found.operand]
    new = replace(node, inputs=(source, *node.inputs[1:]))
    _rewrite(edit, [before, node], new, weights * factor, bias + share)
    return True


def _terms(layer: Layer) -> tuple[Array, Array] | None:
    """Constant weights and bias of a float layer.

    Weights that are all whole numbers are left alone: such models do integer arithmetic in floats, and the
    sums would no longer be exact.
    """
    if not isinstance(layer.op, LINEAR) or layer.input(0).dtype is not DType.FLOAT32:
        return None
    w = layer.input(1)
    bias = layer.input(2) if layer.has_input(2) else None
    if not w.is_constant or w.dtype is not DType.FLOAT32 or (bias is not None and not bias.is_constant):
        return None
    if np.all(w.value == np.rint(w.value)):
        return None
    outputs = w.shape[_output_axis(layer)]
    values = np.zeros(outputs) if bias is None else bias.value.reshape(-1).astype(np.float64)
    return (w.value.astype(np.float64), values) if values.size == outputs else None


def _output_axis(layer: Layer) -> int:
    return 3 if isinstance(layer.op, DepthwiseConv) else 0


def _rewrite(edit: Editor, old: list[Node], new: Node, weights: Array, bias: Array) -> None:
    """Put ``new`` in place of ``old``, with these weights and this bias."""
    name = new.inputs[1]
    w = edit.constant(f"{name}/scaled", weights.astype(np.float32))
    names = [new.inputs[0], w.name]
    if np.any(bias) or len(new.inputs) > 2:
        names.append(edit.constant(f"{name}/offset", bias.astype(np.float32)).name)
    edit.replace(old, [replace(new, inputs=tuple(names))])
