# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Merge nodes that compute the same result, and constants that are equal."""

from __future__ import annotations

import hashlib

from tinyml.ir import Graph, Tensor
from tinyml.passes.editor import Editor


def merge_common(graph: Graph) -> Graph:
    """In order of execution, so that nodes that read equal results are found equal too."""
    edit = Editor(graph)
    constants: dict[tuple[object, ...], str] = {}
    for tensor in list(edit.tensors.values()):
        if tensor.is_constant:
            first = constants.setdefault(_key(tensor), tensor.name)
            if first != tensor.name and not edit.is_kept(tensor.name):
                edit.substitute(tensor.name, first)
    seen: dict[tuple[object, ...], tuple[str, ...]] = {}
    for node in edit.sweep():
        types = tuple(edit.tensors[name].type for name in node.outputs)
        key = (node.op, node.inputs, types)
        first_outputs = seen.setdefault(key, node.outputs)
        if first_outputs is node.outputs or any(edit.is_kept(name) for name in node.outputs):
            continue
        edit.remove(node)
        for old, new in zip(node.outputs, first_outputs, strict=True):
            edit.substitute(old, new)
    return edit.graph()


def _key(tensor: Tensor) -> tuple[object, ...]:
    digest = hashlib.sha256(tensor.value.tobytes()).digest()
    return tensor.shape, tensor.dtype, tensor.quant, digest
