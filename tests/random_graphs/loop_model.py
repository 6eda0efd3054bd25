# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Random ONNX models with one Loop or Scan, whose body is a random graph of floats.

``channels`` of the recipe is the last extent of all tensors, ``height`` and ``width`` give the number of
turns, and all three the frame: states, sequences, outputs, directions. Each step adds one operator to the
body.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.random_graphs.loop_quantizer import quantized
from tests.random_graphs.recipe import Model, Recipe
from tinyml.ir import Array, Shape

SAMPLES = 3
WIDEST = 5
MOST_ELEMENTS = 120
BRANCHES = 0.2
"""How many operators stand in a branch of an If."""
Rng = np.random.Generator


@dataclass
class Body:
    """Nodes of one turn; ``shapes`` has every float that a node may read."""

    width: int
    shapes: dict[str, Shape] = field(default_factory=dict)
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: dict[str, Array] = field(default_factory=dict)
    prefix: str = "t"

    def constant(self, values: Any, dtype: str = "float32") -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(values, dtype)
        return name

    def add(self, op_type: str, inputs: list[str], shape: Shape | None = None, **attributes: Any) -> str:
        """A node; with ``shape`` later ones may read its output."""
        name = f"{self.prefix}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, inputs, [name], **attributes))
        if shape is not None:
            self.shapes[name] = shape
        return name

    def alike(self, rng: Rng, shape: Shape) -> str:
        return str(rng.choice([name for name, other in self.shapes.items() if other == shape]))


def two_operands(body: Body, rng: Rng, x: str) -> None:
    """Functions of two tensors, limited so that many turns do not overflow."""
    y = str(rng.choice(list(body.shapes)))
    try:
        shape = np.broadcast_shapes(body.shapes[x], body.shapes[y])
    except ValueError:
        y, shape = x, body.shapes[x]
    if np.prod(shape) <= MOST_ELEMENTS:
        both = body.add(str(rng.choice(["Add", "Sub", "Mul", "Max", "Min"])), [x, y])
        body.add(str(rng.choice(["Tanh", "Softsign", "Sigmoid"])), [both], shape)


def one_operand(body: Body, rng: Rng, x: str) -> None:
    body.add(str(rng.choice(["Abs", "Neg", "Relu", "Identity", "Softsign"])), [x], body.shapes[x])


def product(body: Body, rng: Rng, x: str) -> None:
    if len(body.shapes[x]) > 1 and body.shapes[x][-1] == body.width:
        weights = body.constant(rng.normal(0, 0.5, (body.width, body.width)))
        body.add("MatMul", [x, weights], body.shapes[x])


def transpose(body: Body, rng: Rng, x: str) -> None:
    perm = [int(axis) for axis in rng.permutation(len(body.shapes[x]))]
    if perm:
        body.add("Transpose", [x], tuple(body.shapes[x][axis] for axis in perm), perm=perm)


def concat(body: Body, rng: Rng, x: str) -> None:
    shape = body.shapes[x]
    if shape and 2 * np.prod(shape) <= MOST_ELEMENTS:
        axis = int(rng.integers(len(shape)))
        joined = (*shape[:axis], 2 * shape[axis], *shape[axis + 1 :])
        body.add("Concat", [x, body.alike(rng, shape)], joined, axis=axis)


def part(body: Body, rng: Rng, x: str) -> None:
    shape = body.shapes[x]
    if shape:
        axis = int(rng.integers(len(shape)))
        first = int(rng.integers(shape[axis]))
        limits = [body.constant([number], "int64") for number in (first, shape[axis], axis)]
        body.add("Slice", [x, *limits], (*shape[:axis], shape[axis] - first, *shape[axis + 1 :]))


def choice(body: Body, rng: Rng, x: str) -> None:
    shape = body.shapes[x]
    below = body.add("Less", [x, body.constant(0.1)])
    body.add("Where", [below, body.alike(rng, shape), body.alike(rng, shape)], shape)


def mean(body: Body, rng: Rng, x: str) -> None:
    shape = body.shapes[x]
    if shape:
        axis = int(rng.integers(len(shape)))
        body.add("ReduceMean", [x], (*shape[:axis], 1, *shape[axis + 1 :]), axes=[axis], keepdims=1)


def reshape(body: Body, rng: Rng, x: str) -> None:
    shape = tuple(int(extent) for extent in rng.permutation(body.shapes[x]))
    if shape:
        body.add("Reshape", [x, body.constant(shape, "int64")], shape)


def softmax(body: Body, rng: Rng, x: str) -> None:
    if body.shapes[x]:
        body.add("Softmax", [x], body.shapes[x], axis=-1)


OPERATORS: tuple[Callable[[Body, Rng, str], None], ...] = (
    *(two_operands, two_operands, two_operands, one_operand),
    *(product, transpose, concat, part, choice, mean, reshape, softmax),
)


def operator(body: Body, seed: int, depth: int = 0) -> None:
    """One operator, or an If with it in one of its branches."""
    rng, of_branches = np.random.default_rng(seed), np.random.default_rng([seed, depth])
    if depth < 3 and of_branches.random() < BRANCHES:
        branches(body, of_branches, seed, depth)
        return
    chosen = OPERATORS[int(rng.integers(len(OPERATORS)))]
    chosen(body, rng, str(rng.choice(list(body.shapes))))


def branches(body: Body, rng: Rng, seed: int, depth: int) -> None:
    """An If whose branches read what is around them, or only pass it on."""
    inner = Body(body.width, dict(body.shapes), [], body.constants, f"{body.prefix}{len(body.nodes)}_")
    operator(inner, seed, depth + 1)
    made = [name for name in inner.shapes if name not in body.shapes]
    if not made:
        return
    shapes = [inner.shapes[name] for name in made[-int(rng.integers(1, 3)) :]]
    taken = [(name, inner.shapes[name]) for name in made[-len(shapes) :]]
    others = [_other(body, rng, shape) for shape in shapes]
    one = helper.make_graph(inner.nodes, "one", [], _values(dict(taken)))
    # each of its results is a tensor of its own
    names = [f"{inner.prefix}other{i}" for i in range(len(shapes))]
    copies = [
        helper.make_node(str(rng.choice(["Identity", "Neg", "Softsign"])), [source], [name])
        for source, name in zip(others, names, strict=True)
    ]
    two = helper.make_graph(copies, "two", [], _values(dict(zip(names, shapes, strict=True))))
    largest = body.add("ReduceMax", [str(rng.choice(list(body.shapes)))], keepdims=0)
    condition = body.add("Less", [largest, body.constant(rng.uniform(-0.5, 1.5))])
    both = (one, two) if rng.random() < 0.5 else (two, one)
    results = [f"{inner.prefix}result{i}" for i in range(len(shapes))]
    body.nodes.append(helper.make_node("If", [condition], results, then_branch=both[0], else_branch=both[1]))
    body.shapes.update(zip(results, shapes, strict=True))


def _other(body: Body, rng: Rng, shape: Shape) -> str:
    """Anything of this shape."""
    alike = shape in body.shapes.values()
    return body.alike(rng, shape) if alike else body.constant(rng.normal(size=shape))


def loop_model(recipe: Recipe) -> Model:
    rng = np.random.default_rng([recipe.channels, recipe.height, recipe.width])
    width, turns = min(recipe.channels, WIDEST), 8 * recipe.height + recipe.width
    made = (_scan if rng.random() < 0.5 else _loop)(rng, Body(width), turns, recipe.steps)
    values = np.random.default_rng(zlib.crc32(repr(recipe).encode()))
    if recipe.kind == "loop_qdq":
        made = quantized(made, rng)
    shapes = [[d.dim_value for d in x.type.tensor_type.shape.dim] for x in made.graph.input]
    samples = [[values.normal(size=shape).astype(np.float32) for shape in shapes] for _ in range(SAMPLES)]
    return Model(recipe, made.SerializeToString(), samples)


def _shape(rng: Rng, width: int) -> Shape:
    shapes: tuple[Shape, ...] = ((width,), (1, width), (2, width), (1, 2, width))
    return shapes[int(rng.integers(len(shapes)))]


def _inserted(shape: Shape, axis: int, extent: int) -> Shape:
    return (*shape[:axis], extent, *shape[axis:])


def _scan(rng: Rng, body: Body, turns: int, steps: tuple[int, ...]) -> onnx.ModelProto:
    """One or two sequences along any axis, in both directions."""
    states = {f"s{i}": _shape(rng, body.width) for i in range(int(rng.integers(0, 4)))}
    parts = {f"p{i}": _shape(rng, body.width) for i in range(int(rng.integers(1, 3)))}
    axes = [int(rng.integers(len(shape) + 1)) for shape in parts.values()]
    sequences = {
        f"all_{name}": _inserted(shape, axis, turns)
        for (name, shape), axis in zip(parts.items(), axes, strict=True)
    }
    body.shapes.update({**states, **parts})
    captured = _captured(rng, body)
    ends, rows = _filled(rng, body, states, steps)
    row_axes = [int(rng.integers(len(shape) + 1)) for shape in rows.values()]
    graph = helper.make_graph(
        body.nodes,
        "body",
        _values({**states, **parts}),
        _values({**dict(zip(ends, states.values(), strict=True)), **rows}),
    )
    attributes: dict[str, Any] = {
        "body": graph,
        "num_scan_inputs": len(parts),
        "scan_input_axes": axes,
        "scan_input_directions": [int(rng.integers(2)) for _ in parts],
    }
    if rows:
        attributes["scan_output_axes"] = row_axes
        attributes["scan_output_directions"] = [int(rng.integers(2)) for _ in rows]
    shapes = [_inserted(shape, axis, turns) for shape, axis in zip(rows.values(), row_axes, strict=True)]
    given = {**captured, **sequences}
    return _model(rng, body, "Scan", [], states, list(sequences), given, shapes, attributes)


def _loop(rng: Rng, body: Body, turns: int, steps: tuple[int, ...]) -> onnx.ModelProto:
    """A fixed number of turns; the body may compute with the number of the turn."""
    states = {f"s{i}": _shape(rng, body.width) for i in range(int(rng.integers(1, 4)))}
    body.shapes.update(states)
    captured = _captured(rng, body)
    if rng.random() < 0.6:
        shape = _shape(rng, body.width)
        captured["table"] = (turns, *shape)
        body.add("Gather", ["table", "turn"], shape, axis=0)
    if rng.random() < 0.4:
        body.add("Cast", ["turn"], (), to=TensorProto.FLOAT)
    ends, rows = _filled(rng, body, states, steps)
    body.nodes.append(helper.make_node("Identity", ["goes_on"], ["again"]))
    count = helper.make_tensor_value_info("turn", TensorProto.INT64, [])
    before, after = (helper.make_tensor_value_info(n, TensorProto.BOOL, []) for n in ("goes_on", "again"))
    graph = helper.make_graph(
        body.nodes,
        "body",
        [count, before, *_values(states)],
        [after, *_values({**dict(zip(ends, states.values(), strict=True)), **rows})],
    )
    body.constants["turns"] = np.asarray(turns, np.int64)
    body.constants["true"] = np.asarray(True)
    control = ["turns", "true" if rng.random() < 0.5 else ""]
    shapes = [(turns, *shape) for shape in rows.values()]
    return _model(rng, body, "Loop", control, states, [], captured, shapes, {"body": graph})


def _captured(rng: Rng, body: Body) -> dict[str, Shape]:
    """Inputs of the model that the body reads."""
    captured = {f"x{i}": _shape(rng, body.width) for i in range(int(rng.integers(0, 3)))}
    body.shapes.update(captured)
    return captured


def _filled(
    rng: Rng, body: Body, states: dict[str, Shape], steps: tuple[int, ...]
) -> tuple[list[str], dict[str, Shape]]:
    """Adds the operators; returns the new values of the states, and the rows with their shapes."""
    for seed in steps:
        operator(body, seed)
    ends = []
    for shape in states.values():  # a state may become another one, or stay as it is
        end = body.alike(rng, shape)
        ends.append(body.add("Softsign" if rng.random() < 0.8 else "Identity", [end], shape))
    rows = {}
    for _ in range(int(rng.integers(0 if states else 1, 4))):
        source = str(rng.choice(list(body.shapes)))
        shape = body.shapes[source]
        rows[body.add("Identity" if rng.random() < 0.5 else "Neg", [source])] = shape
    return ends, rows


def _model(
    rng: Rng,
    body: Body,
    op_type: str,
    control: list[str],
    states: dict[str, Shape],
    sequences: list[str],
    given: dict[str, Shape],
    rows: list[Shape],
    attributes: dict[str, Any],
) -> onnx.ModelProto:
    """The loop alone, or with layers before and behind it that use its first state too."""
    inputs, nodes, firsts = dict(given), [], []
    for name, shape in states.items():
        first = f"first_{name}"
        if rng.random() < 0.4:
            body.constants[first] = (rng.normal(size=shape) * (rng.random() < 0.5)).astype(np.float32)
        elif rng.random() < 0.3 and shape in given.values():
            first = next(other for other, wanted in given.items() if wanted == shape)
        else:
            inputs[first] = shape
        firsts.append(first)
    if inputs and rng.random() < 0.4:  # the loop reads a tensor in the arena
        (name, *_), (shape, *_) = inputs, inputs.values()
        del inputs[name]
        inputs[f"raw_{name}"] = shape
        nodes.append(helper.make_node("Neg", [f"raw_{name}"], [name]))
    ends = {f"end_{name}": shape for name, shape in states.items()}
    outputs = {**ends, **{f"rows{i}": shape for i, shape in enumerate(rows)}}
    nodes.append(helper.make_node(op_type, [*control, *firsts, *sequences], list(outputs), **attributes))
    if states and rng.random() < 0.4:
        nodes.append(helper.make_node("Add", [firsts[0], "end_s0"], ["late"]))
        outputs["late"] = states["s0"]
    stored = [numpy_helper.from_array(array, name) for name, array in body.constants.items()]
    graph = helper.make_graph(nodes, "loop", _values(inputs), _values(outputs), stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _values(shapes: dict[str, Shape]) -> list[onnx.ValueInfoProto]:
    return [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n, shape in shapes.items()]
