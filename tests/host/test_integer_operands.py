# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Integers that arrive at run time may have any value: lengths, indices, positions, summands.

Every case of ``tests/ops`` with such an operand runs again with the ends of the type in it, under
sanitizers, and must give what ``evaluate`` gives. Kernels make an int32_t of an int64 with methods of
the Sheet, which limit it, and not with a cast.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from tests.host.test_ops import FILES, compiled_and_optimized
from tests.support.batch import Item, run_batch
from tests.support.cases import Case, Report
from tinyml.base.errors import ModelError
from tinyml.emit.model import Provenance
from tinyml.ir import Array, Graph, Op
from tinyml.ir.interpreter import interpret
from tinyml.ops.framework.kernel import kernel_table
from tinyml.ops.shared.operands import integers
from tinyml.pipeline import optimize

INT64 = np.iinfo(np.int64)
PARTS = 4  # of the files, for tests that can run at the same time
CAST = re.compile(r"\(int(?:8|16|32)_t\)")
LOWER_HALF = {"Cast", "Power"}  # operators whose result may be the lower bits of an operand


def values(dtype: np.dtype[Any], sizes: set[int]) -> list[int]:
    """The ends of int64 and of the type, -1, and the sizes of the case, as far as the type has them.

    And numbers whose lower half, as an int32, is another one that would be in range, or far outside it.
    """
    own = np.iinfo(dtype)
    ends = {INT64.min, INT64.min + 5, -1, INT64.max, own.min, own.min + 5, own.max}
    halves = {1 - 2**32, 100000 - 2**32, 2**32 + 1}
    return sorted(value for value in ends | halves | sizes if own.min <= value <= own.max)


def operands(case: Case, graph: Graph) -> dict[str, Array]:
    """The inputs of a case that are plain integers."""
    return {
        name: data
        for name, data in case.inputs.items()
        if name in graph.inputs and graph.tensors[name].dtype.is_integer and graph.tensors[name].quant is None
    }


def samples(case: Case, graph: Graph) -> Iterator[dict[str, Array]]:
    """Each value in all elements of an operand, and in its first element only."""
    sizes = {extent for data in case.inputs.values() for extent in data.shape}
    for name, data in operands(case, graph).items():
        for value in values(data.dtype, sizes):
            yield {**case.inputs, name: np.full_like(data, value)}
            if data.size > 1:
                first = data.copy()
                first.flat[0] = value
                yield {**case.inputs, name: first}


def within_bounds(graph: Graph, sample: Mapping[str, Array]) -> bool:
    """Whether no layer has more results than its bound, which ends a run: see test_result_bounds.py."""
    try:
        return bool(list(interpret(graph, [sample])))
    except ModelError:
        return False


@cache
def cases(part: int) -> Mapping[str, Case]:
    """The cases with an integer operand in some of the files, by the prefix of their C."""
    listed = [case for file in FILES[part::PARTS] for case in import_module(f"tests.ops.{file}").CASES]
    found = [case for case in listed if any(data.dtype.kind in "iu" for data in case.inputs.values())]
    return {f"case{number}": case for number, case in enumerate(found) if operands(case, case.graph())}


@pytest.mark.parametrize("part", range(PARTS))
def test_any_integer_gives_what_evaluate_gives(part: int) -> None:
    report, items, inputs, optimized = Report(), [], {}, {}
    for prefix, case in cases(part).items():
        graph = case.graph()
        inputs[prefix] = [sample for sample in samples(case, graph) if within_bounds(graph, sample)]
        origin = Provenance(case.name, "0" * 64, "")
        compiled, optimized[prefix] = compiled_and_optimized(graph, prefix, origin)
        wide = any(data.dtype.itemsize == 8 for data in operands(case, graph).values())
        if wide and not {node.op.kind for node in optimized[prefix].nodes} & LOWER_HALF:
            casts = CAST.findall(compiled.files[f"{prefix}.c"])
            report.problems += [f"{case.name}: {cast} of an int64: limit it with the Sheet" for cast in casts]
        items.append(Item(prefix, compiled.files, inputs[prefix]))
    assert items
    for prefix, outcome in run_batch(items).items():
        case = cases(part)[prefix]
        if outcome.failure:
            report.problems.append(f"{case.name}: C: {outcome.failure}")
            continue
        graph = optimized[prefix]
        runs = interpret(graph, inputs[prefix])
        for sample, outputs, run in zip(inputs[prefix], outcome.outputs, runs, strict=True):
            given = {name: sample[name].reshape(-1)[:5].tolist() for name in operands(case, graph)}
            report.compare(case, str(given), list(outputs.values()), [run[name] for name in graph.outputs])
    assert not report.problems, "\n".join(report.problems)


def declared(op: type[Op]) -> Iterator[int]:
    """The inputs of an operator that its declaration says hold integers."""
    rules = {rule.__doc__ for rule in op.operands}
    yield from (index for index in range(5) if integers(index).__doc__ in rules)


def test_every_operator_with_integers_has_a_case() -> None:
    """All inputs that an operator declares to be integers arrive at run time in some case."""
    arriving = {
        (node.op.kind, index)
        for part in range(PARTS)
        for case in cases(part).values()
        for graph in (optimize(case.graph()),)
        for node in graph.nodes
        for index, name in enumerate(node.inputs)
        if name and graph.tensors[name].data is None and graph.tensors[name].quant is None
    }
    expected = {(op.__name__, index) for op in kernel_table() for index in declared(op)}
    assert len(expected) > 8
    assert expected - arriving == {("Requantize", 0)}, "only Requantize, whose integers are quantised values"
