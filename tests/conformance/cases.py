# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The node cases that the ``onnx`` package defines in Python, and variants of them with known operands."""

from __future__ import annotations

import hashlib
import pickle
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnx
from onnx import numpy_helper

from tinyml.base.whole_files import write_whole
from tinyml.ir import Array, Graph
from tools import workspace

LISTS = Path(__file__).parent / "lists"
GROUPS = {
    "applicable": "what a compiler with static shapes for microcontrollers can plainly support",
    "shapes_constant": "a shape or axes operand arrives as an input, which real models have as a constant",
    "expanded": "function bodies of plain operators",
}
"""The sorted cases, by the name of their list. All others are of the group "other"."""

ROUNDED = (
    "test_averagepool_2d_ceil_last_window_starts_on_pad",
    "test_gridsample_bicubic",
    "test_roialign_aligned_false",
    "test_roialign_aligned_true",
)
"""Cases whose expected values have four decimal places."""


@dataclass(frozen=True, eq=False)
class NodeCase:
    """One model, its inputs and its expected outputs."""

    name: str
    group: str
    op_type: str  # the operator under test; of an expanded case, the one that was expanded
    model: onnx.ModelProto
    inputs: Sequence[Any]
    outputs: Sequence[Any]
    graph: Callable[[], Graph] | None = None  # instead of the model


Computed: TypeAlias = tuple[str, str, onnx.ModelProto, list[Any], list[Any]]
"""Name, operator, model, inputs and outputs of a case."""


def names(group: str) -> list[str]:
    """The names in one of the lists."""
    return (LISTS / f"{group}.txt").read_text(encoding="utf-8").split()


def collect() -> list[NodeCase]:
    """All node cases of the installed ``onnx``, in the order of their names."""
    group_of = {name: group for group in GROUPS for name in names(group)}
    return [
        NodeCase(name, group_of.get(name, "other"), op_type, model, inputs, outputs)
        for name, op_type, model, inputs, outputs in _kept()
    ]


def _kept() -> list[Computed]:
    """onnx computes its cases in ten seconds, so they are kept until a package or this file is another."""
    made_by = (onnx.__version__, np.__version__, sys.version, Path(__file__).read_text(encoding="utf-8"))
    key = hashlib.sha256("\n".join(made_by).encode()).hexdigest()[:16]
    place = workspace.cache_folder() / "node-cases" / f"{key}.pickle"
    if not place.exists():
        write_whole(place, pickle.dumps(_computed()))
    found: list[Computed] = pickle.loads(place.read_bytes())
    return found


def _computed() -> list[Computed]:
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        found = collect_testcases(None)
    whole = [(case, case.model, case.data_sets) for case in found if case.model and case.data_sets]
    op_of = {case.name: str(model.graph.node[-1].op_type) for case, model, _ in whole}
    cases = []
    for case, model, data in whole:
        op_type = op_of.get(case.name.split("_expanded")[0], op_of[case.name])
        inputs, outputs = data[0]
        given, wanted = ([_array(value) for value in side] for side in (inputs, outputs))
        cases.append((case.name, op_type, model, given, wanted))
    return sorted(cases, key=lambda case: case[0])


def _array(value: Any) -> Any:
    """A few cases give their data as protocol buffers."""
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


def baked(case: NodeCase) -> Iterator[NodeCase]:
    """The case with operands turned into constants: all but the first, then all."""
    for kept in (1, 0):
        model = onnx.ModelProto()
        model.CopyFrom(case.model)
        inputs = list(model.graph.input)
        if len(inputs) <= kept or not all(isinstance(a, np.ndarray | np.generic) for a in case.inputs):
            continue
        for value, array in list(zip(inputs, case.inputs, strict=True))[kept:]:
            model.graph.initializer.append(numpy_helper.from_array(np.asarray(array), value.name))
        del model.graph.input[kept:]
        yield replace(case, model=model, inputs=case.inputs[:kept])


def difference(found: Array, wanted: Array, absolute: float = 2e-5) -> str:
    """How an output differs from the expected one; empty if it does not.

    Integers must be equal. Floats may be off by ``absolute``, or by 1e-5 of their value where that is more.
    Where the model computes in float16, we compute in float32: then one step of float16 is allowed.
    """
    if found.shape != wanted.shape:
        return f"shape {found.shape} instead of {wanted.shape}"
    half = wanted.dtype == np.float16
    if found.dtype != (np.float32 if half else wanted.dtype):
        return f"type {found.dtype} instead of {wanted.dtype}"
    if found.dtype.kind != "f":
        equal = found == wanted
    else:
        exact = wanted.astype(np.float64)
        allowed = np.maximum(absolute, np.abs(exact) * (1e-3 if half else 1e-5))
        with np.errstate(invalid="ignore", over="ignore"):
            rounded = found.astype(np.float16) if half else found
            near = np.abs(rounded.astype(np.float64) - exact) <= allowed
            equal = near | (rounded == wanted) | (np.isnan(rounded) & np.isnan(wanted))
    if np.all(equal):
        return ""
    place = tuple(int(i) for i in np.argwhere(~equal)[0])
    wrong = f"{int(np.sum(~equal))} of {equal.size} differ"
    return f"{wrong}, first at {place}: {found[place]!r} instead of {wanted[place]!r}"
