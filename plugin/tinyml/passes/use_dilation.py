# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Turn a convolution between space-to-batch and batch-to-space into a dilated convolution.

TensorFlow writes dilated convolutions that way, which would cost two copies of the image. The reshapes and
transposes are recognised by what they do to the positions of elements, not by how they are written.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, Graph, Node, Shape, Tensor, TensorType
from tinyml.ops.conv.convolution import Convolution
from tinyml.ops.reshape import Reshape
from tinyml.ops.transpose import Transpose
from tinyml.passes.editor import Editor


@dataclass(frozen=True, eq=False)
class Chain:
    """Nodes that only move elements, the tensor at their far end, and where each element goes."""

    nodes: list[Node]
    end: Tensor
    positions: Array


def use_dilation(graph: Graph) -> Graph:
    """batch_to_space(conv(space_to_batch(x))) for an image on its own (batch 1)."""
    edit = Editor(graph)
    for node in edit.sweep():
        if isinstance(node.op, Convolution) and edit.tensors[node.inputs[0]].shape[0] > 1:
            _rewrite(edit, node, node.op)
    return edit.graph()


def _rewrite(edit: Editor, conv: Node, op: Convolution) -> None:
    if op.strides != (1, 1):
        return
    x, y = edit.tensors[conv.inputs[0]], edit.tensors[conv.outputs[0]]
    before, after = _before(edit, x), _after(edit, y)
    for block_h in range(1, x.shape[0] + 1):
        block_w = x.shape[0] // block_h
        if block_h * block_w != x.shape[0]:
            continue
        split = _space_to_batch(x.shape, block_h, block_w)
        joined = np.argsort(_space_to_batch(y.shape, block_h, block_w).reshape(-1))
        if np.array_equal(before.positions, split) and np.array_equal(after.positions.reshape(-1), joined):
            _replace(edit, conv, op, before, after, (block_h, block_w))
            return


def _replace(
    edit: Editor, conv: Node, op: Convolution, before: Chain, after: Chain, block: tuple[int, int]
) -> None:
    x, y = edit.tensors[conv.inputs[0]], edit.tensors[conv.outputs[0]]
    source = edit.tensor(f"{x.name}/image", _image(x, block))
    result = edit.tensor(f"{y.name}/image", _image(y, block))
    top, left, bottom, right = op.pads
    wider = replace(
        op,
        dilations=(op.dilations[0] * block[0], op.dilations[1] * block[1]),
        pads=(top * block[0], left * block[1], bottom * block[0], right * block[1]),
    )
    edit.replace(
        [conv, *after.nodes],
        [
            Node(conv.name, Reshape(source.shape), (before.end.name,), (source.name,)),
            Node(conv.name, wider, (source.name, *conv.inputs[1:]), (result.name,)),
            Node(conv.name, Reshape(after.end.shape), (result.name,), (after.end.name,)),
        ],
    )
    for node in before.nodes:
        edit.remove_unread(node)


def _image(tensor: Tensor, block: tuple[int, int]) -> TensorType:
    _, height, width, channels = tensor.shape
    return TensorType((1, height * block[0], width * block[1], channels), tensor.dtype, tensor.quant)


def _space_to_batch(shape: Shape, block_h: int, block_w: int) -> Array:
    """For each element of the batches, its position in the image."""
    _, height, width, channels = shape
    image = np.arange(int(np.prod(shape))).reshape(height, block_h, width, block_w, channels)
    return np.transpose(image, (1, 3, 0, 2, 4)).reshape(shape)


def _before(edit: Editor, x: Tensor) -> Chain:
    """Movements that lead to x; where each of its elements comes from."""
    nodes: list[Node] = []
    end = x
    while (node := edit.producer(end.name)) is not None and isinstance(node.op, Reshape | Transpose):
        nodes.append(node)
        end = edit.tensors[node.inputs[0]]
    return Chain(nodes, end, _moved(edit, end, nodes[::-1]))


def _after(edit: Editor, y: Tensor) -> Chain:
    """Movements that follow y, as long as each is the only reader."""
    nodes: list[Node] = []
    end = y
    while (node := edit.only_reader(end.name)) is not None and isinstance(node.op, Reshape | Transpose):
        nodes.append(node)
        end = edit.tensors[node.outputs[0]]
    return Chain(nodes, end, _moved(edit, y, nodes))


def _moved(edit: Editor, start: Tensor, nodes: list[Node]) -> Array:
    positions: Array = np.arange(start.elements).reshape(start.shape)
    for node in nodes:
        positions = node.op.evaluate(edit.layer(node), [positions])[0]
    return positions
