# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Loops that stay loops: what a turn computes is quantised as a model that keeps state, then put back.

The states of that model are what the loop carries, each turn is a run, and each time the loop begins a
sequence begins. All turns share the ranges of their tensors, so there is one body in integers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tinyml.base.errors import NothingToQuantizeError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.datasets.reader import Samples
from tinyml.importers.states import Remembered, with_states
from tinyml.ir import Array
from tinyml.quantize.prepare import LOOPS, Prepared
from tinyml.quantize.report import Report
from tinyml.quantize.sequences import runs
from tinyml.quantize.subgraphs import bodies, drop_unread, graphs_inside, outside_names, renamed
from tinyml.reference.session import Session
from tinyml.settings.quantize_request import Request

MOST_TURNS = 4096
"""Turns on which a body is calibrated, of evenly spread samples."""


@dataclass(frozen=True)
class Made:
    """The body of a loop in integers, as a model."""

    model: onnx.ModelProto
    report: Report
    states: Sequence[Remembered]  # with the names that they have in it


@dataclass(frozen=True)
class _Loop:
    """A loop of a model, as ``export_loops`` writes it."""

    node: onnx.NodeProto
    captured: tuple[str, ...]  # what the body reads from outside, constants too

    @property
    def counts(self) -> bool:
        """A Loop; it has a number and a condition before its states."""
        return self.node.op_type == "Loop"

    @property
    def body(self) -> onnx.GraphProto:
        return next(a.g for a in self.node.attribute if a.name == "body")

    @property
    def sequences(self) -> int:
        return next((a.i for a in self.node.attribute if a.name == "num_scan_inputs"), 0)

    @property
    def directions(self) -> Sequence[int]:
        """Whether the first turn gets the last part of a sequence."""
        found = [a.ints for a in self.node.attribute if a.name == "scan_input_directions"]
        return list(found[0]) if found else [0] * self.sequences

    @property
    def states(self) -> int:
        return len(self.body.input) - 2 if self.counts else len(self.body.input) - self.sequences

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The states and their next values."""
        first_in, first_out = (2, 1) if self.counts else (0, 0)
        names = [value.name for value in self.body.input[first_in : first_in + self.states]]
        return list(
            zip(names, [value.name for value in self.body.output[first_out:]][: self.states], strict=True)
        )

    @property
    def parts(self) -> list[str]:
        return [value.name for value in self.body.input[self.states :]] if self.sequences else []

    @property
    def passing(self) -> onnx.NodeProto | None:
        """The node that passes the condition on, if the number of turns is fixed."""
        made = {name: node for node in self.body.node for name in node.output}
        node = made.get(self.body.output[0].name) if self.counts else None
        return node if node is not None and self.body.input[1].name in node.input else None

    def turns(self, operands: Mapping[str, Array]) -> int:
        """At most."""
        if not self.counts:
            return len(operands[self.node.input[-1]])
        condition = self.node.input[1]
        begins = not condition or bool(operands[condition].all())
        return int(operands[self.node.input[0]].reshape(())) if begins else 0


def inside(request: Request, names: Collection[str]) -> Request:
    """For a body that has layers with these names: goals, labels and the interface are those of the model."""
    return replace(
        request,
        **_named(request, lambda name: name in names),
        io="float",
        auto=None,
        labels=None,
        test=None,
        weights="float16" if request.weights == "float16" else "int8",
        max_loss=None,
        frontend=None,
    )


def outside(request: Request, prepared: Prepared) -> Request:
    """Without the names of loops and of layers in them."""
    names = {node.name for node in prepared.model.graph.node if node.op_type in LOOPS}
    for loop in _loops(prepared.in_float or prepared.model):
        if loop.name in request.keep_float:  # what is inside it stays float with it
            names.update(node.name for inner in bodies(loop) for g in graphs_inside(inner) for node in g.node)
    names.update(layer.name for report in prepared.loops.values() for layer in report.layers)
    return replace(request, **_named(request, lambda name: name not in names))


def _loops(model: onnx.ModelProto) -> list[onnx.NodeProto]:
    """Those in loops too."""
    return [node for graph in graphs_inside(model.graph) for node in graph.node if node.op_type in LOOPS]


def with_float_loops(model: onnx.ModelProto, in_float: onnx.ModelProto) -> onnx.ModelProto:
    """The model with the loops of another one, which has the same names."""
    result = onnx.ModelProto()
    result.CopyFrom(model)
    loops = {node.name: node for node in in_float.graph.node if node.op_type in LOOPS}
    for node in result.graph.node:
        if node.name in loops:
            node.CopyFrom(loops[node.name])
    known = {tensor.name for tensor in result.graph.initializer}
    result.graph.initializer.extend(t for t in in_float.graph.initializer if t.name not in known)
    drop_unread(result.graph)
    return result


def _named(request: Request, wanted: Callable[[str], bool]) -> dict[str, Any]:
    return {
        "keep_float": tuple(filter(wanted, request.keep_float)),
        "int16": tuple(filter(wanted, request.int16)),
    }


def with_integer_loops(
    prepared: Prepared,
    samples: Samples,
    request: Request,
    make: Callable[[str, onnx.ModelProto, Samples], Made],
) -> Prepared:
    """The model with bodies in integers where they have layers that can be."""
    if not prepared.written or not any(node.op_type in LOOPS for node in prepared.model.graph.node):
        return prepared
    model = onnx.ModelProto()
    model.CopyFrom(prepared.model)
    reports: dict[str, Report] = {}
    loops = [_Loop(node, outside_names(node)) for node in model.graph.node if node.op_type in LOOPS]
    loops = [loop for loop in loops if loop.node.name not in request.keep_float]
    operands = _operands(prepared, samples, loops)
    for loop in loops:
        body = _as_model(model, loop, operands[0])
        turns = _turns(body, loop, operands)
        if not turns.inputs:
            continue
        try:
            made = make(loop.node.name, body, turns)
        except NothingToQuantizeError:
            continue
        if _put_back(model, loop, made):
            reports[loop.node.name] = made.report
    if not reports:
        return prepared
    drop_unread(model.graph)
    return replace(prepared, model=model, in_float=prepared.model, loops=reports)


def _operands(prepared: Prepared, samples: Samples, loops: Sequence[_Loop]) -> list[Mapping[str, Array]]:
    """For each sample all that the loops read, also from inside."""
    graph = prepared.model.graph
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    names = {name for loop in loops for name in (*loop.node.input, *loop.captured) if name}
    computed = {name for node in graph.node for name in node.output}
    session = Session(prepared.model, sorted(names & computed))
    return [
        {name: {**constants, **inputs, **found}[name] for name in names}
        for inputs, found in runs(session, samples, prepared.states)
    ]


def _as_model(model: onnx.ModelProto, loop: _Loop, operands: Mapping[str, Array]) -> onnx.ModelProto:
    """A turn: a model with the states of the loop, and what it captures as inputs or constants."""
    graph = deepcopy(loop.body)
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    if loop.counts:
        del graph.input[:2]
        if (passing := loop.passing) is not None:
            graph.node.remove(passing)
            del graph.output[0]
    for name in loop.captured:
        if name in constants:
            graph.initializer.append(constants[name])
        else:
            kind = helper.np_dtype_to_tensor_dtype(operands[name].dtype)
            graph.input.append(helper.make_tensor_value_info(name, kind, operands[name].shape))
    del graph.value_info[:]
    result = helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)
    with_states(result, [Remembered(*pair) for pair in loop.pairs])
    return result


def _turns(body: onnx.ModelProto, loop: _Loop, operands: Sequence[Mapping[str, Array]]) -> Samples:
    """What the body gets in each turn of each sample, in float."""
    session = Session(body)
    longest = max(loop.turns(found) for found in operands)
    few = max(MOST_TURNS // max(longest, 1), 1)
    chosen = [operands[i] for i in np.unique(np.linspace(0, len(operands) - 1, few).round().astype(int))]
    inputs: list[Mapping[str, Array]] = []
    starts = set()
    for found in chosen:
        starts.add(len(inputs))
        inputs += _sequence(session, loop, found)
    return Samples(tuple(inputs), starts=frozenset(starts - {len(inputs)}))


def _sequence(session: Session, loop: _Loop, operands: Mapping[str, Array]) -> Iterator[Mapping[str, Array]]:
    given = [operands[name] for name in loop.node.input[2 if loop.counts else 0 :]]
    states = {name: array for (name, _), array in zip(loop.pairs, given, strict=False)}
    captured = {name: operands[name] for name in loop.captured}
    sequences = [
        array[::-1] if last_first else array
        for array, last_first in zip(given[loop.states :], loop.directions, strict=True)
    ]
    known = {value.name for value in session.session.get_inputs()}
    goes_on = loop.body.output[0].name if loop.counts else ""
    for turn in range(min(loop.turns(operands), MOST_TURNS)):
        parts = {name: array[turn] for name, array in zip(loop.parts, sequences, strict=True)}
        inputs = {name: x for name, x in {**states, **parts, **captured}.items() if name in known}
        yield inputs
        found = session.run(inputs)
        states = {name: found[update] for name, update in loop.pairs}
        if goes_on in found and not found[goes_on].all():
            return


def _put_back(model: onnx.ModelProto, loop: _Loop, made: Made) -> bool:
    """The quantised body in place of the other one; False if it does not fit there."""
    sets = {entry.domain: entry.version for entry in model.opset_import}
    if any(sets.get(entry.domain, entry.version) != entry.version for entry in made.model.opset_import):
        return False
    updates = {state.input: state.output for state in made.states}
    if any(name not in updates for name, _ in loop.pairs):
        return False
    prefix = _unused(loop.node.name, model.graph)

    def new(name: str) -> str:
        return name if name in loop.captured else f"{prefix}/{name}"

    graph, body, passing = renamed(made.model.graph, new), loop.body, loop.passing
    values = {value.name: value for value in (*graph.input, *graph.output)}
    inputs = [values.get(new(value.name), value) for value in body.input]
    ends = {update: values[new(updates[name])] for name, update in loop.pairs}
    kept = list(body.output[:1]) if passing is not None else []
    others = (values[new(v.name)] for v in made.model.graph.output if v.name not in updates.values())
    outputs = [ends[v.name] if v.name in ends else next(others) for v in body.output[len(kept) :]]
    nodes = [*graph.node, *([passing] if passing is not None else [])]
    body.CopyFrom(helper.make_graph(nodes, body.name, inputs, [*kept, *outputs], list(graph.initializer)))
    model.opset_import.extend(entry for entry in made.model.opset_import if entry.domain not in sets)
    model.ir_version = max(model.ir_version, made.model.ir_version)
    return True


def _unused(prefix: str, graph: onnx.GraphProto) -> str:
    taken = {name for inner in graphs_inside(graph) for node in inner.node for name in node.output}
    while any(name.startswith(f"{prefix}/") for name in taken):
        prefix += "_"
    return prefix
