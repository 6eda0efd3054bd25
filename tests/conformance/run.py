# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Runs node cases through the compiler and, many at once, as C on the host under sanitizers."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from tests.conformance.cases import ROUNDED, NodeCase, baked, difference
from tests.support.batch import Item, Outcome, run_batch
from tests.support.interpret import interpret
from tinyml import pipeline
from tinyml.base.c import identifier
from tinyml.base.errors import TinymlError
from tinyml.emit.model import Provenance
from tinyml.importers import onnx_graph
from tinyml.ir import Array, Graph
from tinyml.ops.framework.narrow import NARROW

PASSED, REFUSED, FAILED = "passed", "refused", "failed"


@dataclass(frozen=True)
class Verdict:
    """The result of a case. ``reason`` says why it was refused or how it failed."""

    case: NodeCase
    status: str
    reason: str = ""
    baked: bool = False  # some operands were constants


@dataclass(frozen=True, eq=False)
class _Attempt:
    """A variant of a case that compiles."""

    case: NodeCase
    original: NodeCase
    item: Item
    baked: bool
    graph: Graph


def run_cases(
    cases: Iterable[NodeCase],
    tell: Callable[[str], None] = lambda _: None,
    in_c: Callable[[NodeCase], bool] = lambda _: True,
) -> list[Verdict]:
    """A verdict for each case; a refused case is tried again with operands as constants.

    Cases that ``in_c`` leaves out are computed in numpy, after all passes, instead of C.
    """
    verdicts: list[Verdict] = []
    attempts: list[_Attempt] = []
    for case in cases:
        attempt = _attempt(case, in_c(case))
        if isinstance(attempt, _Attempt):
            attempts.append(attempt)
        else:
            verdicts.append(attempt)
    tell(f"{len(attempts)} cases compile to C; compiling and running that")
    as_c = [attempt.item for attempt in attempts if attempt.item.files]
    outcomes = run_batch(as_c, timeout_seconds=1800)
    for attempt in attempts:
        name = attempt.item.name
        verdicts.append(_judge(attempt, outcomes[name] if name in outcomes else _in_numpy(attempt)))
    return sorted(verdicts, key=lambda verdict: verdict.case.name)


def _attempt(case: NodeCase, in_c: bool) -> _Attempt | Verdict:
    try:
        return _compile(case, case, False, in_c)
    except TinymlError as error:
        first = Verdict(case, REFUSED, _reason(error))
    except Exception:
        return Verdict(case, FAILED, traceback.format_exc(limit=-3))
    for variant in baked(case):
        try:
            return _compile(variant, case, True, in_c)
        except TinymlError:
            continue
        except Exception:
            return Verdict(case, FAILED, traceback.format_exc(limit=-3), baked=True)
    return first


def _compile(case: NodeCase, original: NodeCase, baked: bool, in_c: bool) -> _Attempt:
    arrays = {
        value.name: _known(np.asarray(array))
        for value, array in zip(case.model.graph.input, case.inputs, strict=False)
        if isinstance(array, np.ndarray | np.generic)  # neither absent nor a sequence
    }
    name = identifier(case.name)
    if case.graph is not None:
        graph = case.graph()
        arrays = dict(zip(graph.inputs, case.inputs, strict=True))
    else:
        shapes = {key: tuple(array.shape) for key, array in arrays.items()}
        graph = onnx_graph.read(case.model, name, shapes)
    files: Mapping[str, str] = {}
    if in_c:
        origin = Provenance(f"{case.name}.onnx", "0" * 64, "")
        files = pipeline.compile_graph(graph, name, origin, pipeline.Options(target="host")).files
    else:
        graph = pipeline.optimize(graph)
    return _Attempt(case, original, Item(name, files, [arrays]), baked, graph)


def _in_numpy(attempt: _Attempt) -> Outcome:
    try:
        return Outcome([interpret(attempt.graph, attempt.item.samples[0])])
    except Exception:
        return Outcome(failure=traceback.format_exc(limit=-3))


def _known(array: Array) -> Array:
    """float16 inputs are given as float32, which the compiler computes in; narrow integers as bytes."""
    return array.astype(np.float32) if array.dtype == np.float16 else _stored(array)


def _stored(array: Array) -> Array:
    """Narrow integers take a byte each."""
    kind = NARROW.get(array.dtype.name)
    return array if kind is None else array.astype(kind.holder.numpy)


def _judge(attempt: _Attempt, outcome: Outcome) -> Verdict:
    case = attempt.original
    if outcome.failure:
        return Verdict(case, FAILED, outcome.failure, attempt.baked)
    found = list(outcome.outputs[0].values())
    expected = attempt.graph.padded([np.asarray(array) for array in case.outputs])
    if len(found) != len(expected):
        return Verdict(case, FAILED, f"{len(found)} outputs instead of {len(expected)}", attempt.baked)
    for index, (array, wanted) in enumerate(zip(found, expected, strict=True)):
        complaint = difference(array, _stored(np.asarray(wanted)), 1e-4 if case.name in ROUNDED else 2e-5)
        if complaint:
            return Verdict(case, FAILED, f"output {index}: {complaint}", attempt.baked)
    return Verdict(case, PASSED, "", attempt.baked)


def _reason(error: TinymlError) -> str:
    """The operator's own message, without the lines around it."""
    lines = [line.strip() for line in error.message.splitlines()]
    told = lines[1:] if len(lines) > 1 and lines[0].endswith(":") else lines
    return "; ".join(told)
