# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Every case of ``tests/ops`` in three ways: numpy, generated C under sanitizers, a reference runtime."""

from __future__ import annotations

import hashlib
import re
from importlib import import_module
from pathlib import Path

import pytest

from tests.support.batch import Item, run_batch
from tests.support.cases import Case, Report
from tests.support.interpret import interpret
from tests.support.precedence import marked_expressions, torn
from tinyml.emit.model import Provenance
from tinyml.ir import Graph
from tinyml.passes import PASSES
from tinyml.pipeline import Compiled, Options, compile_graph, optimize

FILES = sorted(p.stem for p in (Path(__file__).parents[1] / "ops").glob("*.py") if p.stem != "__init__")


@pytest.mark.parametrize("file", FILES)
def test_operator(file: str) -> None:
    cases: list[Case] = import_module(f"tests.ops.{file}").CASES
    names = [case.name for case in cases]
    assert len(set(names)) == len(names), "two cases have the same name"
    problems = check(cases)
    assert not problems, "\n".join(problems)


def check(cases: list[Case]) -> list[str]:
    """The differences between numpy, C and the oracle, in words."""
    report = Report()
    items = []
    computed = {}
    for number, case in enumerate(cases):
        prefix = f"case{number}"
        graph = case.graph()
        origin = Provenance(case.name, hashlib.sha256(case.name.encode()).hexdigest(), "")
        with marked_expressions():
            compiled, optimized = compiled_and_optimized(graph, prefix, origin)
        found = list(interpret(optimized, case.inputs).values())
        wanted = found if case.expected is None else graph.padded(list(case.expected()))
        report.compare(case, "numpy", found, wanted)
        computed[prefix] = (case, wanted)
        torn_lines = torn(compiled.files[f"{prefix}.c"])
        report.problems += [f"{case.name}: C: parentheses are missing in {line}" for line in torn_lines]
        if includes_math(compiled) != uses_math(compiled):
            report.problems.append(f"{case.name}: C: <math.h> is included for nothing, or missing")
        bare = re.findall(r"^/\* [\dx]+ \*/\n.*?(\w+)\[", compiled.files[f"{prefix}_weights.h"], re.MULTILINE)
        report.problems += [f"{case.name}: C: no comment says what {table} holds" for table in bare]
        items.append(Item(prefix, compiled.files, [case.inputs]))
    for prefix, outcome in run_batch(items).items():
        case, wanted = computed[prefix]
        if outcome.failure:
            report.problems.append(f"{case.name}: C: {outcome.failure}")
        else:
            report.compare(case, "C", list(outcome.outputs[0].values()), wanted)
    return report.problems


def compiled_and_optimized(graph: Graph, prefix: str, origin: Provenance) -> tuple[Compiled, Graph]:
    """The C for the host, and the graph that it computes, as it is after the passes."""
    stages: dict[str, Graph] = {}
    compiled = compile_graph(graph, prefix, origin, Options(target="host"), stages.__setitem__)
    return compiled, stages[PASSES[-1].__name__]


def includes_math(compiled: Compiled) -> bool:
    return "#include <math.h>" in compiled.files[f"{compiled.name}.c"]


def uses_math(compiled: Compiled) -> bool:
    """Whether the C has infinities, or functions of double that are not ours."""
    text = "".join(text for name, text in compiled.files.items() if name.endswith((".c", ".h")))
    code = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    return bool(compiled.summary["libm"] or re.search(r"\b(?:INFINITY|NAN|sqrt)\b", code))


def test_softmax_of_one_element_is_not_computed() -> None:
    """Nor what leads to it: attention over a single token is a constant."""
    case = next(case for case in import_module("tests.ops.softmax").CASES if case.name == "alone")
    assert {node.op.kind for node in optimize(case.graph()).nodes} <= {"Reshape"}
