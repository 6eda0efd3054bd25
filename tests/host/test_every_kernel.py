# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Convolutions and dense layers of many geometries by every kernel that accepts them, not only the first.

``test_layers_by_others.py`` compares the same layers with somebody else's runtimes.

The cores' own kernels (DSP, Helium, CMSIS-NN) run other layers, in tests/standalone/test_kernels.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.support.batch import Item, run_batch
from tests.support.weighted_layers import Layers, sampled
from tinyml import kernel
from tinyml.emit.model import Provenance
from tinyml.ir import Array, DType, Graph, Op, Quant, Tensor
from tinyml.kernel import Kernel, Library, kernels_of
from tinyml.ops.conv.conv import Conv
from tinyml.ops.conv.depthwise import DepthwiseConv
from tinyml.ops.conv.transpose import ConvTranspose
from tinyml.ops.dense.dense import Dense
from tinyml.pipeline import Options, compile_graph
from tinyml.targets import find_target

COUNT = 50
HOST = find_target("host")
KINDS = ("int8", "int16", "computed_int8", "float32", "sparse", "computed")
REAL = ("float32", "sparse", "computed")


def as_kind(graph: Graph, kind: str) -> Graph:
    """The same layers on other types, or with weights that are inputs of the model."""
    tensors = dict(graph.tensors)
    for node in graph.nodes:
        x, w, *bias = (tensors[name] for name in node.inputs)
        y = tensors[node.outputs[0]]
        if kind == "int16":
            tensors[x.name], tensors[y.name] = _words(x), _words(y)
            w_zeros = replace(w.quant, zero_points=(0,) * len(w.quant.zero_points)) if w.quant else None
            tensors[w.name] = Tensor.constant(w.name, w.value, w_zeros)
            for b in bias:
                tensors[b.name] = Tensor.constant(b.name, b.value.astype(np.int64))
        elif kind == "computed_int8":
            for tensor in (w, *bias):
                tensors[tensor.name] = Tensor(tensor.name, tensor.shape, tensor.dtype, tensor.quant)
        elif kind in REAL:
            for tensor in (x, y):
                tensors[tensor.name] = Tensor(tensor.name, tensor.shape, DType.FLOAT32)
            for tensor in (w, *bias):
                values = (tensor.value / 64).astype(np.float32)
                if kind == "sparse":
                    values = np.where(np.arange(values.size).reshape(values.shape) % 7 == 0, values, 0)
                tensors[tensor.name] = Tensor.constant(tensor.name, values)
                if kind == "computed":
                    tensors[tensor.name] = Tensor(tensor.name, tensor.shape, DType.FLOAT32)
    inputs = [n for node in graph.nodes for n in node.inputs if not tensors[n].is_constant]
    return replace(graph, tensors=tensors, inputs=tuple(inputs))


def _words(tensor: Tensor) -> Tensor:
    assert tensor.quant is not None
    return Tensor(tensor.name, tensor.shape, DType.INT16, Quant.per_tensor(tensor.quant.scale / 256, 0))


def accepted(graph: Graph, candidate: Kernel[Any], op: type[Op]) -> Graph:
    nodes = [n for n in graph.nodes if type(n.op) is op and candidate.refusal(graph.layer(n)) is None]
    names = {name for node in nodes for name in (*node.inputs, *node.outputs)}
    return replace(
        graph,
        nodes=tuple(nodes),
        tensors={name: t for name, t in graph.tensors.items() if name in names},
        inputs=tuple(name for name in graph.inputs if name in names),
        outputs=tuple(node.outputs[0] for node in nodes),
    )


def pairs() -> Iterator[tuple[type[Op], Kernel[Any]]]:
    for op in (Conv, DepthwiseConv, Dense, ConvTranspose):
        for candidate in kernels_of(op):
            if candidate.library is not Library.CMSIS_NN and candidate.runs_on(HOST):
                yield op, candidate


@pytest.mark.parametrize(
    "op,candidate", pairs(), ids=lambda value: getattr(value, "name", None) or value.__name__
)
def test_kernel(op: type[Op], candidate: Kernel[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(kernel._KERNELS, op, (candidate,))
    rng = np.random.default_rng(1)
    items, expected = [], {}
    for once in (False, True):
        layers = Layers()
        for name, case in sampled(COUNT).items():
            layers.weighted(name, case, once)
        for kind in KINDS:
            graph = accepted(as_kind(layers.graph(), kind), candidate, op)
            if not graph.nodes or (once and kind in REAL):
                continue
            for part, first in enumerate(range(0, len(graph.nodes), 60)):
                chosen = replace(graph, nodes=graph.nodes[first : first + 60])
                chosen = accepted(chosen, candidate, op)
                feed = {name: _values(rng, graph.tensors[name]) for name in chosen.inputs}
                name = f"{kind}_{int(once)}_{part}"
                origin = Provenance("layers", "0" * 64, "")
                options = Options(target="host", kernels="portable", bands=False)
                compiled = compile_graph(chosen, name, origin, options)
                items.append(Item(name, compiled.files, [feed]))
                expected[name] = (chosen, feed)
    assert items, f"{candidate.name} accepts none of the layers"
    problems = []
    for name, outcome in run_batch(items, group=1).items():
        graph, feed = expected[name]
        if outcome.failure:
            problems.append(f"{name}: {outcome.failure}")
            continue
        for node in graph.nodes:
            values = [feed.get(n, graph.tensors[n].data) for n in node.inputs]
            (wanted,) = node.op.evaluate(graph.layer(node), values)
            if not _equal(outcome.outputs[0][node.outputs[0]], wanted):
                problems.append(f"{name}: {node.name}: {node.op}")
    assert not problems, "\n".join(problems)


def _values(rng: np.random.Generator, tensor: Tensor) -> Array:
    if tensor.dtype.is_float:
        return rng.normal(0, 1, tensor.shape).astype(np.float32)
    low, high = tensor.dtype.limits if tensor.dtype is not DType.INT32 else (-3000, 3000)
    return rng.integers(low, high + 1, tensor.shape).astype(tensor.dtype.numpy)


def _equal(found: Array, wanted: Array) -> bool:
    if wanted.dtype.kind == "f":
        scale = float(np.abs(wanted).max(initial=1e-3))
        return bool(np.allclose(found, wanted, rtol=1e-5, atol=1e-5 * scale))
    return bool(np.array_equal(found, wanted))
