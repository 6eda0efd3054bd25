# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Weights that are not numbers: training diverged, or a conversion overflowed. Every output would be NaN."""

from __future__ import annotations

import numpy as np

from tinyml.base.errors import ModelError
from tinyml.ir import Array, Graph, Layer, Tensor
from tinyml.ops.elementwise.binary import Binary

ARITHMETIC = ("add", "sub", "mul", "div")


def check(graph: Graph) -> None:
    """Refuse weights that are NaN or infinite, and sums and products with NaN.

    Infinite constants of other operators have their uses, as limits and as masks of attention.
    """
    needed = set(graph.kept())
    for node in reversed(graph.nodes):
        if needed.isdisjoint(node.outputs):
            continue  # of a part that nothing uses
        needed.update(node.inputs)
        layer = graph.layer(node)
        weighted = _multiplies(layer)
        if not weighted and not (isinstance(layer.op, Binary) and layer.op.function in ARITHMETIC):
            continue
        for tensor in layer.inputs:
            if tensor is None or tensor.data is None or not tensor.dtype.is_float:
                continue
            bad = ~np.isfinite(tensor.data) if weighted else np.isnan(tensor.data)
            if bad.any():
                raise ModelError(
                    f"{layer.op.kind} {layer.name!r}: its constant {_in_file(graph, tensor)!r} has "
                    f"{_what(tensor.data)} among its {tensor.elements} values",
                    "train or export the model again: training may have diverged, or float16 overflowed",
                )


def _multiplies(layer: Layer) -> bool:
    return any(t is not None and t.is_constant for t in layer.inputs[1:]) and layer.op.macs(layer) > 0


def _in_file(graph: Graph, tensor: Tensor) -> str:
    """The file's name of a constant, which may have been transposed since: the first with such values."""
    alike = (t for t in graph.tensors.values() if t.data is not None and t.elements == tensor.elements)
    floats = ((t.name, t.value) for t in alike if t.dtype.is_float)
    return next((name for name, data in floats if _what(data) == _what(tensor.value)), tensor.name)


def _what(data: Array) -> str:
    counts = {"NaN": int(np.isnan(data).sum()), "infinite": int(np.isinf(data).sum())}
    return " and ".join(f"{count} {name}" for name, count in counts.items() if count)
