# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Finds where a difference originates: in a layer's C, in a pass, or in an imported node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from tinyml.base.errors import BudgetError
from tinyml.base.limits import MOST_PORTS
from tinyml.base.naming import short
from tinyml.compare.difference import Difference, Tolerance, compare
from tinyml.compare.reference import Answer
from tinyml.compare.stored_values import as_stored, fitting
from tinyml.harness import Runner
from tinyml.ir import Array, Graph, Node
from tinyml.ir.interpreter import evaluate, interpret
from tinyml.ops.weighted.float16_sums import TOLERANCE
from tinyml.pipeline import Compiled, ModelFile, Options, compile_model, has_float16_sums

Samples = Sequence[Mapping[str, Array]]

EXACT = Tolerance(0, 1e-5)
IN_FLOAT16 = Tolerance(0, TOLERANCE)

ENLARGED = (
    "\n  on the reference's own input it computes the same: it enlarges what earlier layers rounded "
    "differently; --tolerance sets how much is allowed"
)


def first_wrong_layer(
    file: ModelFile,
    options: Options,
    compiled: Compiled,
    place: Runner,
    samples: Sequence[Mapping[str, Array]],
) -> str | None:
    """The first layer whose C differs from its operator in numpy on the same inputs.

    Layers that run together in bands are checked one by one first.
    """
    plain = compile_model(file, replace(options, bands=False))
    found = _first_wrong(file, replace(options, bands=False), plain, place, samples)
    together = len(plain.selected) != len(compiled.selected)
    return _first_wrong(file, options, compiled, place, samples) if found is None and together else found


def _first_wrong(
    file: ModelFile,
    options: Options,
    compiled: Compiled,
    place: Runner,
    samples: Sequence[Mapping[str, Array]],
) -> str | None:
    runs = _all_tensors(file, options, compiled, place, samples)
    for number, (values, sample) in enumerate(zip(runs, samples, strict=True)):
        known: dict[str, Array] = {**sample, **values}
        if compiled.graph.states and number:
            break  # the state at the start of this run is not among its tensors
        for state in compiled.graph.states:
            known.setdefault(state.tensor, interpret(compiled.graph, [sample])[0][state.tensor])
        for step, chosen in enumerate(compiled.selected):
            layer = chosen.layer
            for tensor, wanted in zip(layer.outputs, evaluate(layer, known), strict=True):
                allowed = IN_FLOAT16 if has_float16_sums([chosen]) else EXACT
                difference = compare(known[tensor.name], wanted, None, allowed)
                if not difference.fine:
                    return (
                        f"layer {step}, {layer.op.kind} {short(layer.name)!r} "
                        f"computed by {chosen.kernel.name}, "
                        f"is the first that differs from numpy on the same inputs (sample {number}): "
                        f"{difference}"
                    )
    return None


def _all_tensors(
    file: ModelFile,
    options: Options,
    compiled: Compiled,
    place: Runner,
    samples: Sequence[Mapping[str, Array]],
) -> list[dict[str, Array]]:
    """The C's value of every tensor: the model is rebuilt with all of them as outputs.

    Outputs are kept until the end of a run. If memory is too small, half of them at a time.
    """
    known = compiled.graph.outputs
    inner = [t.name for chosen in compiled.selected for t in chosen.layer.outputs if t.name not in known]
    at_once = max(1, MOST_PORTS - len(known))
    groups = [tuple(inner[i : i + at_once]) for i in range(0, len(inner), at_once)] or [()]
    runs: list[dict[str, Array]] = [{} for _ in samples]
    while groups:
        names = groups.pop()
        exposed = compile_model(file, replace(options, expose=names))
        try:
            result = place.run(exposed.files, samples)
        except BudgetError:
            if len(names) <= 1:
                raise
            half = len(names) // 2
            groups += [names[:half], names[half:]]
            continue
        for values, outputs in zip(runs, result.outputs, strict=True):
            values.update(outputs)
    return runs


def first_wrong_stage(
    stages: Sequence[tuple[str, Graph]],
    samples: Sequence[Mapping[str, Array]],
    answers: Sequence[Answer],
    steps: Sequence[float | None],
    tolerance: Tolerance,
) -> str | None:
    """The first stage after which the graph, in numpy, no longer agrees with the reference."""
    final = stages[-1][1]
    for name, graph in stages:
        runs = interpret(graph, fitting(graph, final, samples))
        for number, (values, answer) in enumerate(zip(runs, answers, strict=True)):
            for output, wanted, step in zip(graph.outputs, answer.outputs, steps, strict=True):
                found = as_stored(values[output], final.tensors[output])
                difference = compare(found, wanted, step, tolerance)
                if not difference.fine:
                    what = "as it was imported" if name == "import" else f"after the pass {name}"
                    return f"the graph {what} differs in output {output!r}, sample {number}: {difference}"
    return None


def first_wrong_node(
    graph: Graph, samples: Sequence[Mapping[str, Array]], answers: Sequence[Answer], tolerance: Tolerance
) -> str | None:
    """The first node of the file whose value differs from the reference."""
    last = _last_nodes(graph)
    for number, (values, answer) in enumerate(zip(interpret(graph, samples), answers, strict=True)):
        for name, node in last.items():
            wanted = answer.inner.get(name)
            if wanted is None:
                continue
            found = values[node.outputs[0]]
            if found.shape != wanted.shape or found.dtype != wanted.dtype:
                continue  # imported in another form, for example in another layout
            difference: Difference = compare(found, wanted, None, tolerance)
            if not difference.fine and not np.isnan(difference.distance):
                alone = _on_their_inputs(graph, node, {**samples[number]}, answer)
                agrees = alone is not None and compare(alone, wanted, None, tolerance).fine
                return (
                    f"{node.op.kind} {name!r} is the first node that differs (sample {number}): {difference}"
                ) + (ENLARGED if agrees else "")
    return None


def _last_nodes(graph: Graph) -> dict[str, Node]:
    """What computes the output of a node of the file, which may become several of ours.

    Nodes with several outputs are left out: references tell one value for each.
    """
    read = {(node.name, name) for node in graph.nodes for name in node.inputs}
    ends: dict[str, list[Node]] = {}
    for node in graph.nodes:
        if not any((node.name, name) in read for name in node.outputs):
            ends.setdefault(node.name, []).append(node)
    return {name: nodes[0] for name, nodes in ends.items() if len(nodes) == 1}


def _on_their_inputs(graph: Graph, node: Node, theirs: dict[str, Array], answer: Answer) -> Array | None:
    """What our operator makes of the reference's values, or None if not all of them are known."""
    made_by = {node.outputs[0]: name for name, node in _last_nodes(graph).items()}
    for tensor in graph.layer(node).inputs:
        if tensor is None or tensor.is_constant or tensor.name in theirs:
            continue
        value = answer.inner.get(made_by.get(tensor.name, ""))
        if value is None or value.shape != tensor.shape or value.dtype != tensor.dtype.numpy:
            return None
        theirs[tensor.name] = value
    return evaluate(graph.layer(node), theirs)[0]
