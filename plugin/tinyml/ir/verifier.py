# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The rules every graph must keep, as a table. Runs after import and after each pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tinyml.base import limits
from tinyml.base.errors import ModelError
from tinyml.ir import Graph
from tinyml.ir.constraints import operand_problem, quantisation_problem

Rule = Callable[[Graph], Iterator[str]]


def tensors_exist(graph: Graph) -> Iterator[str]:
    """Every name that a node or the graph uses is a tensor."""
    for node in graph.nodes:
        for name in (*node.inputs, *node.outputs):
            if name and name not in graph.tensors:
                yield f"node {node.name!r} uses {name!r}, which does not exist"
    for name in (*graph.inputs, *graph.outputs):
        if name not in graph.tensors:
            yield f"{name!r} is an input or output but does not exist"


def computed_once(graph: Graph) -> Iterator[str]:
    """A tensor has one source: a node, an input, a state, or constant data."""
    seen = {*graph.inputs, *(state.tensor for state in graph.states)}
    for node in graph.nodes:
        for name in node.outputs:
            if name in seen or (name in graph.tensors and graph.tensors[name].is_constant):
                yield f"{name!r} has more than one source"
            seen.add(name)


def computed_before_use(graph: Graph) -> Iterator[str]:
    """Nodes are in an order in which they can run."""
    known = {*graph.inputs, *(state.tensor for state in graph.states)}
    known |= {name for name, tensor in graph.tensors.items() if tensor.is_constant}
    for node in graph.nodes:
        for name in node.inputs:
            if name and name not in known:
                yield f"node {node.name!r} reads {name!r} before it is computed"
        known.update(node.outputs)
    for name in graph.kept():
        if name not in known:
            yield f"nothing computes {name!r}"


def operands_fit(graph: Graph) -> Iterator[str]:
    """The operands of every operator are what it requires."""
    for layer in graph.layers():
        limits.check_time()
        problem = operand_problem(layer.op, layer.inputs)
        if problem is not None:
            yield f"{layer.op.kind} {layer.name!r}: {problem}"


def shapes_agree(graph: Graph) -> Iterator[str]:
    """Tensors have the shapes that shape inference gives."""
    for layer in graph.layers():
        for tensor, inferred in zip(layer.outputs, layer.op.infer(layer.inputs), strict=True):
            if tensor.shape != inferred.shape:
                yield f"{tensor.name!r} has shape {tensor.shape}; {layer.op.kind} gives {inferred.shape}"


def data_fits(graph: Graph) -> Iterator[str]:
    """Constants hold data of their shape and type."""
    for name, tensor in graph.tensors.items():
        if tensor.data is not None and (
            tensor.data.shape != tensor.shape or tensor.data.dtype != tensor.dtype.numpy
        ):
            yield f"constant {name!r} has data of {tensor.data.shape} {tensor.data.dtype}"


def quantisation_fits(graph: Graph) -> Iterator[str]:
    """Scales are positive and finite, zero points in range, one per slice of the axis."""
    for name, tensor in graph.tensors.items():
        problem = quantisation_problem(tensor.type)
        if problem is not None:
            yield f"{name!r} {problem}"


def bodies_fit(graph: Graph) -> Iterator[str]:
    """The graphs inside operators keep these rules too."""
    for node in graph.nodes:
        if node.op.inner_graph is not None and (problem := first_problem(node.op.inner_graph)) is not None:
            yield f"inside {node.op.kind} {node.name!r}: {problem}"


RULES: tuple[Rule, ...] = (
    tensors_exist,
    computed_once,
    computed_before_use,
    operands_fit,
    shapes_agree,
    data_fits,
    quantisation_fits,
    bodies_fit,
)


def first_problem(graph: Graph) -> str | None:
    """The first rule that the graph breaks, in words."""
    for rule in RULES:
        problem = next(rule(graph), None)
        if problem is not None:
            return f"{rule.__doc__} But {problem}."
    return None


def verify(graph: Graph, after: str) -> None:
    """Raise an AssertionError that names the stage at fault: a broken rule is a compiler bug."""
    problem = first_problem(graph)
    if problem is not None:
        raise AssertionError(f"after {after}: {problem}")


def check(graph: Graph) -> None:
    """Raise a ModelError if a graph that a person wrote breaks a rule."""
    try:
        problem = first_problem(graph)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        problem = f"The attributes of an operator do not fit its operands: {error}"
    if problem is not None:
        raise ModelError(f"this graph is not valid: {problem}")
