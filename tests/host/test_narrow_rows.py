# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Layers that compute only the rows that something reads: random networks, with all kinds of slices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.depth import is_deep
from tests.support.batch import Item, run_batch
from tests.support.sequences import Sequence
from tests.support.sketch import Sketch
from tinyml.ir import Array, DType, Graph
from tinyml.ir.interpreter import interpret
from tinyml.ir.verifier import verify
from tinyml.ops.conv.conv import Conv
from tinyml.ops.slice import Slice
from tinyml.ops.transpose import Transpose
from tinyml.passes.narrow_rows import narrow_rows
from tinyml.passes.remove_dead_code import remove_dead_code
from tinyml.pipeline import Options, compile_built

TYPES = {"float": DType.FLOAT32, "int8": DType.INT8}


def drawn(seed: int, dtype: DType) -> tuple[Graph, list[dict[str, Array]]]:
    made = Sequence(seed, dtype)
    graph = remove_dead_code(made.graph())
    return graph, [made.sketch.sample() for _ in range(2)]


def work(graph: Graph) -> int:
    return sum(layer.op.macs(layer) for layer in graph.layers())


def expect_same(found: Array, wanted: Array, name: str) -> None:
    """Exactly; floats but for the order in which numpy multiplies matrices of other shapes."""
    assert found.shape == wanted.shape, name
    if found.dtype.kind == "f":
        size = float(np.abs(wanted).max(initial=1e-3))
        np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-5 * size, err_msg=name)
    else:
        np.testing.assert_array_equal(found, wanted, name)


@pytest.mark.parametrize("kind", TYPES)
def test_the_pass_alone(kind: str) -> None:
    """Once, and again on what it made; most of these networks have less to compute, and none has more."""
    narrowed = 0
    for seed in range(600 if is_deep() else 150):
        graph, samples = drawn(seed, TYPES[kind])
        after = narrow_rows(graph)
        verify(after, "narrow_rows")
        again = narrow_rows(after)
        verify(again, "narrow_rows")
        assert work(again) <= work(after) <= work(graph)
        narrowed += work(after) < work(graph)
        for wanted, found, twice in zip(*(interpret(g, samples) for g in (graph, after, again)), strict=True):
            for name in graph.outputs:
                expect_same(found[name], wanted[name], f"{kind} {seed} {name}")
                expect_same(twice[name], wanted[name], f"{kind} {seed} {name} twice")
    assert narrowed > 60


@pytest.mark.parametrize("kind", TYPES)
def test_compiled(kind: str) -> None:
    """The C of whole compilations, under sanitizers."""
    items, wanted = [], {}
    for seed in range(1000, 1240 if is_deep() else 1030):
        graph, samples = drawn(seed, TYPES[kind])
        name = f"{kind}{seed}"
        compiled = compile_built(replace(graph, name=name), Options(target="host"))
        items.append(Item(name, compiled.files, samples))
        wanted[name] = [[values[y] for y in graph.outputs] for values in interpret(graph, samples)]
    for name, outcome in run_batch(items).items():
        assert not outcome.failure, outcome.failure
        for found, expected in zip(outcome.outputs, wanted[name], strict=True):
            for values, reference in zip(found.values(), expected, strict=True):
                expect_same(values, reference, name)


def test_tensors_without_elements() -> None:
    """They have no first row; other layers are computed whole then."""
    sketch = Sketch()
    x = sketch.input((1, 8, 1, 4), DType.FLOAT32)
    y = sketch.add(Conv(), x, sketch.real(4, 3, 1, 4))
    last = sketch.add(Slice((0, 5, 0, 0), (1, 1, 1, 4), (1, 1, 1, 1)), y)
    nothing = sketch.add(Slice((0, 6, 0, 0), (1, 0, 1, 4), (1, 1, 1, 1)), y)
    graph = sketch.graph(last, nothing)
    assert narrow_rows(graph) == graph
    only = remove_dead_code(sketch.graph(last))
    assert work(narrow_rows(only)) < work(only)


@pytest.mark.parametrize("shape", [(1, 0, 3, 2), (2, 0, 4, 5)])
def test_a_transpose_of_nothing(shape: tuple[int, ...]) -> None:
    """It compiles to loops that never turn."""
    sketch = Sketch()
    x = sketch.input(shape, DType.FLOAT32)
    compile_built(sketch.graph(sketch.add(Transpose((0, 2, 3, 1)), x)), Options(target="host"))
