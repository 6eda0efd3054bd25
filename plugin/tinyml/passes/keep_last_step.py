# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers of which only the last step is used do not keep the others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tinyml.ir import Array, Graph, Node
from tinyml.ir.hook_types import Steps
from tinyml.ops.reshape import Reshape
from tinyml.passes.editor import Editor

MOST_ELEMENTS = 1 << 22
"""Of an output that is traced element by element."""


def keep_last_step(graph: Graph) -> Graph:
    """Exporters take the last of all steps, although the last state is an output of its own."""
    edit = Editor(graph)
    for node in edit.sweep():
        layer = edit.layer(node)
        steps = node.op.steps_of(layer)
        if steps is None or layer.outputs[steps.all].elements > MOST_ELEMENTS:
            continue
        _read_the_state(edit, node, steps)
        unread = node.outputs[steps.all]
        if not edit.readers(unread) and not edit.is_kept(unread):
            outputs = tuple(name for i, name in enumerate(node.outputs) if i != steps.all)
            edit.replace(node, [replace(node, op=node.op.without_steps(), outputs=outputs)])
    return edit.graph()


def _read_the_state(edit: Editor, node: Node, steps: Steps) -> None:
    """Replace what takes the last step out of all steps by the last state in another shape."""
    every, state = (edit.tensors[node.outputs[i]] for i in (steps.all, steps.last))
    last = np.arange(steps.offset, steps.offset + state.elements)
    numbers = np.arange(every.elements).reshape(every.shape)
    for path, taken in list(_moved(edit, every.name, numbers, ())):
        if np.array_equal(taken.reshape(-1), last):
            reader = path[-1]
            shape = edit.tensors[reader.outputs[0]].shape
            edit.replace(reader, [Node(reader.name, Reshape(shape), (state.name,), reader.outputs)])
            for before in reversed(path[:-1]):
                edit.remove_unread(before)


def _moved(
    edit: Editor, name: str, numbers: Array, path: tuple[Node, ...]
) -> Iterator[tuple[tuple[Node, ...], Array]]:
    """Nodes that only move elements, one after the other, and the numbers of the elements in the result."""
    for reader in edit.readers(name):
        others = [edit.tensors[other].data for other in reader.inputs[1:] if other]
        single = reader.inputs[0] == name and len(reader.outputs) == 1
        if not (reader.op.movement and single and all(data is not None for data in others)):
            continue
        (taken,) = reader.op.evaluate(edit.layer(reader), [numbers, *others])
        yield (*path, reader), taken
        yield from _moved(edit, reader.outputs[0], taken, (*path, reader))
