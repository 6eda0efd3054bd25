# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Runs node cases through the compiler and, many at once, as C on the host under sanitizers."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from tests.conformance.cases import ROUNDED, NodeCase, baked, difference
from tests.support.batch import Item, Outcome, run_batch
from tinyml import pipeline
from tinyml.c import identifier
from tinyml.emit.model import Provenance
from tinyml.errors import TinymlError
from tinyml.importers import onnx_graph
from tinyml.ir import Array

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


def run_cases(cases: Iterable[NodeCase], tell: Callable[[str], None] = lambda _: None) -> list[Verdict]:
    """A verdict for each case; a refused case is tried again with operands as constants."""
    verdicts: list[Verdict] = []
    attempts: list[_Attempt] = []
    for case in cases:
        attempt = _attempt(case)
        if isinstance(attempt, _Attempt):
            attempts.append(attempt)
        else:
            verdicts.append(attempt)
    tell(f"{len(attempts)} cases compile to C; compiling and running that")
    outcomes = run_batch([attempt.item for attempt in attempts], timeout_seconds=1800)
    verdicts += [_judge(attempt, outcomes[attempt.item.name]) for attempt in attempts]
    return sorted(verdicts, key=lambda verdict: verdict.case.name)


def _attempt(case: NodeCase) -> _Attempt | Verdict:
    try:
        return _compile(case, case, baked=False)
    except TinymlError as error:
        first = Verdict(case, REFUSED, _reason(error))
    except Exception:
        return Verdict(case, FAILED, traceback.format_exc(limit=-3))
    for variant in baked(case):
        try:
            return _compile(variant, case, baked=True)
        except TinymlError:
            continue
        except Exception:
            return Verdict(case, FAILED, traceback.format_exc(limit=-3), baked=True)
    return first


def _compile(case: NodeCase, original: NodeCase, baked: bool) -> _Attempt:
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
    origin = Provenance(f"{case.name}.onnx", "0" * 64, "")
    compiled = pipeline.compile_graph(graph, name, origin, pipeline.Options(target="host"))
    return _Attempt(case, original, Item(name, compiled.files, [arrays]), baked)


def _known(array: Array) -> Array:
    """float16 inputs are given as float32, which the compiler computes in."""
    return array.astype(np.float32) if array.dtype == np.float16 else array


def _judge(attempt: _Attempt, outcome: Outcome) -> Verdict:
    case = attempt.original
    if outcome.failure:
        return Verdict(case, FAILED, outcome.failure, attempt.baked)
    found = list(outcome.outputs[0].values())
    if len(found) != len(case.outputs):
        return Verdict(case, FAILED, f"{len(found)} outputs instead of {len(case.outputs)}", attempt.baked)
    for index, (array, wanted) in enumerate(zip(found, case.outputs, strict=True)):
        complaint = difference(array, np.asarray(wanted), 1e-4 if case.name in ROUNDED else 2e-5)
        if complaint:
            return Verdict(case, FAILED, f"output {index}: {complaint}", attempt.baked)
    return Verdict(case, PASSED, "", attempt.baked)


def _reason(error: TinymlError) -> str:
    """The operator's own message, without the lines around it."""
    lines = [line.strip() for line in error.message.splitlines()]
    told = lines[1:] if len(lines) > 1 and lines[0].endswith(":") else lines
    return "; ".join(told)
