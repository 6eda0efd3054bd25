# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Layers with weights on other types, and what their tests share: inputs and equality."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from unittest import mock

import numpy as np

from tinyml.ir import Array, DType, Graph, Node, Quant, Tensor
from tinyml.ops.shared.quant import quant_of
from tinyml.ops.weighted.weighted import Weighted

KINDS = (
    "int8",
    "four_bits",
    "int16",
    "computed_int8",
    "into_float",
    "float32",
    "float16",
    "sparse",
    "computed",
)
REAL = ("float32", "float16", "sparse", "computed")


def as_kind(graph: Graph, kind: str) -> Graph:
    """The same layers on other types, or with weights that are inputs of the model."""
    tensors = dict(graph.tensors)
    nodes = graph.nodes
    if kind == "into_float":
        nodes = tuple(_into_float(node, tensors) for node in nodes)
    for number, node in enumerate(nodes):
        x, w, *bias = (tensors[name] for name in node.inputs)
        y = tensors[node.outputs[0]]
        if kind == "int16":
            tensors[x.name], tensors[y.name] = _words(x), _words(y)
            w_zeros = replace(w.quant, zero_points=(0,) * len(w.quant.zero_points)) if w.quant else None
            tensors[w.name] = Tensor.constant(w.name, w.value, w_zeros)
            for b in bias:
                wide = b.value.astype(np.int64)
                extreme = np.abs(wide) > 1 << 20
                tensors[b.name] = Tensor.constant(
                    b.name, np.where(extreme, np.sign(wide) * np.iinfo(np.int64).max, wide)
                )
        elif kind == "four_bits":
            values = (w.value & 15).astype(np.int16) - 8 + quant_of(w).zero_points[0]
            tensors[w.name] = Tensor.constant(w.name, np.clip(values, -128, 127).astype(np.int8), w.quant)
        elif kind == "computed_int8":
            for tensor in (w, *bias):
                tensors[tensor.name] = Tensor(tensor.name, tensor.shape, tensor.dtype, tensor.quant)
        elif kind in REAL:
            for tensor in (x, y):
                tensors[tensor.name] = Tensor(tensor.name, tensor.shape, DType.FLOAT32)
            for tensor in (w, *bias):
                values = (tensor.value / 64).astype(np.float32)
                place = np.arange(values.size).reshape(values.shape)
                if kind == "float16" and tensor is w:  # ten bits, so that no scale makes bytes of them
                    values = (w.value * (4.0 + place % 5) / 256).astype(np.float32)
                if kind == "sparse":
                    values = np.where(place % 7 == 0 if number % 2 else place % 32 < 8, values, 0)
                tensors[tensor.name] = Tensor.constant(tensor.name, values)
                if kind == "computed":
                    tensors[tensor.name] = Tensor(tensor.name, tensor.shape, DType.FLOAT32)
    inputs = [n for node in nodes for n in node.inputs if not tensors[n].is_constant]
    return replace(graph, tensors=tensors, nodes=nodes, inputs=tuple(inputs))


def _into_float(node: Node, tensors: dict[str, Tensor]) -> Node:
    """Sums of integers that become real numbers, if the operator has such a form."""
    x, w, *bias = (tensors[name] for name in node.inputs)
    form = node.op.integer_sums(x, w) if isinstance(node.op, Weighted) else None
    if form is None:
        return node
    y = tensors[node.outputs[0]]
    tensors[y.name] = Tensor(y.name, y.shape, DType.FLOAT32)
    scales = quant_of(x).scale * np.asarray(quant_of(w).scales)
    for b in bias:
        tensors[b.name] = Tensor.constant(b.name, (b.value.reshape(-1) * scales).astype(np.float32))
    return replace(node, op=form)


def _words(tensor: Tensor) -> Tensor:
    assert tensor.quant is not None
    return Tensor(tensor.name, tensor.shape, DType.INT16, Quant.per_tensor(tensor.quant.scale / 256, 0))


@contextmanager
def always_four_bits(least: int = 0) -> Iterator[None]:
    """Weights that fit into four bits are stored in them, whatever that costs in code and instructions.

    Depthwise layers with at least so many weights unpack all of them at once on cores with vectors.
    """
    with (
        mock.patch("tinyml.memory.four_bits.saved_bytes", return_value=1 << 20),
        mock.patch("tinyml.memory.select.fast_enough", return_value=True),
        mock.patch("tinyml.memory.select.large_enough", return_value=True),
        mock.patch("tinyml.memory.four_bits.LEAST_GAIN", 1 << 30),
        mock.patch("tinyml.ops.conv.depthwise_vectors.LEAST_WEIGHTS", least),
    ):
        yield


def random_values(rng: np.random.Generator, tensor: Tensor) -> Array:
    if tensor.dtype.is_float:
        return rng.normal(0, 1, tensor.shape).astype(tensor.dtype.numpy)
    if tensor.dtype is DType.BOOL:
        return rng.integers(0, 2, tensor.shape).astype(np.bool_)
    low, high = tensor.dtype.limits if tensor.dtype is not DType.INT32 else (-3000, 3000)
    return rng.integers(low, high + 1, tensor.shape).astype(tensor.dtype.numpy)


def same(found: Array, wanted: Array) -> bool:
    if wanted.dtype.kind == "f":
        scale = float(np.abs(wanted).max(initial=1e-3))
        return bool(np.allclose(found, wanted, rtol=1e-5, atol=1e-5 * scale))
    return bool(np.array_equal(found, wanted))
