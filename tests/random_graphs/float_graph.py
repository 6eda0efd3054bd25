# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A random ONNX graph of real numbers: every step adds one operator that fits some tensor before it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.random_graphs.recipe import Recipe
from tinyml.ir import Array, Shape

Rng = np.random.Generator


@dataclass(frozen=True)
class Step:
    """A node. ``weights`` are the positions of operands that a quantiser treats as weights and bias."""

    op_type: str
    inputs: tuple[str, ...]
    output: str
    attributes: dict[str, Any] = field(default_factory=dict)
    weights: tuple[int, ...] = ()


@dataclass
class FloatGraph:
    """Nodes, constants and shapes; NCHW."""

    inputs: list[str] = field(default_factory=list)
    shapes: dict[str, Shape] = field(default_factory=dict)  # of tensors that are not constants
    constants: dict[str, Array] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)

    def constant(self, values: Any, dtype: str = "float32") -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(values, dtype)
        return name

    def add(
        self, op_type: str, inputs: tuple[str, ...], shape: Shape, weights: tuple[int, ...] = (), **attrs: Any
    ) -> str:
        name = f"t{len(self.steps)}"
        self.shapes[name] = tuple(int(extent) for extent in shape)
        self.steps.append(Step(op_type, inputs, name, attrs, weights))
        return name

    def outputs(self) -> list[str]:
        """Tensors that nobody reads."""
        read = {name for step in self.steps for name in step.inputs}
        return [step.output for step in self.steps if step.output not in read]


def float_graph(recipe: Recipe) -> FloatGraph:
    graph = FloatGraph(["x"], {"x": (1, recipe.channels, recipe.height, recipe.width)})
    for seed in recipe.steps:
        rng = np.random.default_rng(seed)
        names = list(graph.shapes)
        recent = names[-1] if rng.random() < 0.7 else names[int(rng.integers(len(names)))]
        candidates = SPATIAL if len(graph.shapes[recent]) == 4 else FLAT
        candidates[int(rng.integers(len(candidates)))](graph, rng, recent)
    if not graph.steps:
        graph.add("Relu", ("x",), graph.shapes["x"])
    return graph


def _pick(rng: Rng, *choices: Any) -> Any:
    return choices[int(rng.integers(len(choices)))]


def _window(rng: Rng, extent: int, dilate: bool = True) -> tuple[int, int, int, int, int, int] | None:
    """Kernel, stride, dilation, padding before and after, output extent along one axis."""
    kernel, stride = int(_pick(rng, 1, 2, 3, 3, 4, 5)), int(_pick(rng, 1, 1, 2, 3))
    dilation = int(_pick(rng, 1, 1, 1, 2, 3)) if dilate else 1
    before, after = (int(rng.integers(0, kernel)) for _ in range(2))
    room = extent + before + after - (kernel - 1) * dilation - 1
    return None if room < 0 else (kernel, stride, dilation, before, after, room // stride + 1)


def _both(graph: FloatGraph, rng: Rng, x: str, dilate: bool = True) -> list[tuple[int, ...]] | None:
    windows = [_window(rng, extent, dilate) for extent in graph.shapes[x][2:]]
    return None if None in windows else [w for w in windows if w is not None]


def _window_attributes(windows: list[tuple[int, ...]], dilations: bool = True) -> dict[str, Any]:
    attributes = {
        "kernel_shape": [w[0] for w in windows],
        "strides": [w[1] for w in windows],
        "pads": [w[3] for w in windows] + [w[4] for w in windows],
    }
    return {**attributes, "dilations": [w[2] for w in windows]} if dilations else attributes


def conv(graph: FloatGraph, rng: Rng, x: str) -> None:
    windows = _both(graph, rng, x)
    if windows is None:
        return
    channels = graph.shapes[x][1]
    groups = int(_pick(rng, 1, 1, channels, *(g for g in (2, 3, 4) if channels % g == 0)))
    outputs = groups * int(_pick(rng, 1, 1, 2, 3)) if groups > 1 else int(_pick(rng, 1, 2, 3, 4, 5, 8, 9))
    kernel = [w[0] for w in windows]
    weights = rng.normal(0, 0.4, (outputs, channels // groups, *kernel))
    operands = [x, graph.constant(weights)]
    if rng.random() < 0.7:
        operands.append(graph.constant(rng.normal(0, 0.5, outputs)))
    shape = (1, outputs, *(w[5] for w in windows))
    graph.add("Conv", tuple(operands), shape, (1, 2), group=groups, **_window_attributes(windows))


def conv_transpose(graph: FloatGraph, rng: Rng, x: str) -> None:
    _, channels, *extents = graph.shapes[x]
    kernel = [int(_pick(rng, 1, 2, 3, 4)) for _ in extents]
    strides = [int(_pick(rng, 1, 2, 3)) for _ in extents]
    pads = [int(rng.integers(0, (k + 1) // 2)) for k in kernel]
    sizes = [(e - 1) * s + k - 2 * p for e, s, k, p in zip(extents, strides, kernel, pads, strict=True)]
    if min(sizes) < 1:
        return
    outputs = int(_pick(rng, 1, 2, 3, 5))
    w = graph.constant(rng.normal(0, 0.4, (channels, outputs, *kernel)))
    b = graph.constant(rng.normal(0, 0.5, outputs))
    graph.add(
        "ConvTranspose", (x, w, b), (1, outputs, *sizes), (1, 2), strides=strides, pads=pads * 2,
        kernel_shape=kernel,
    )  # fmt: skip


def pool(graph: FloatGraph, rng: Rng, x: str) -> None:
    windows = _both(graph, rng, x, dilate=False)
    if windows is None or any(max(w[3], w[4]) * 2 > w[0] for w in windows):
        return
    op_type = _pick(rng, "MaxPool", "AveragePool")
    extra: dict[str, Any] = {"count_include_pad": int(rng.integers(0, 2))} if op_type == "AveragePool" else {}
    shape = (1, graph.shapes[x][1], *(w[5] for w in windows))
    graph.add(op_type, (x,), shape, **_window_attributes(windows, dilations=False), **extra)


def global_pool(graph: FloatGraph, rng: Rng, x: str) -> None:
    graph.add(_pick(rng, "GlobalAveragePool", "GlobalMaxPool"), (x,), (1, graph.shapes[x][1], 1, 1))


def unary(graph: FloatGraph, rng: Rng, x: str) -> None:
    op_type, attributes = _pick(
        rng,
        ("Relu", {}),
        ("Sigmoid", {}),
        ("Tanh", {}),
        ("LeakyRelu", {"alpha": 0.1}),
        ("HardSigmoid", {}),
        ("HardSwish", {}),
        ("Elu", {}),
        ("Abs", {}),
        ("Neg", {}),
        ("Softplus", {}),
        ("Exp", {}),
    )
    if op_type == "Exp":  # of something that cannot overflow
        x = graph.add("Tanh", (x,), graph.shapes[x])
    graph.add(op_type, (x,), graph.shapes[x], **attributes)


def clip(graph: FloatGraph, rng: Rng, x: str) -> None:
    low, high = sorted(rng.normal(0, 1, 2))
    graph.add("Clip", (x, graph.constant(low), graph.constant(high)), graph.shapes[x])


def binary_constant(graph: FloatGraph, rng: Rng, x: str) -> None:
    shape = graph.shapes[x]
    kept = rng.integers(0, 2, len(shape)).astype(bool)
    operand = tuple(extent if keep else 1 for extent, keep in zip(shape, kept, strict=True))
    op_type = _pick(rng, "Add", "Sub", "Mul", "Div", "Max", "Min")
    values = rng.normal(0, 1, operand)
    if op_type == "Div":
        values = np.where(values < 0, -1, 1) * (np.abs(values) + 0.5)
    pair = (x, graph.constant(values))
    if rng.random() < 0.3 and op_type != "Div":
        pair = (pair[1], pair[0])
    graph.add(op_type, pair, shape)


def binary(graph: FloatGraph, rng: Rng, x: str) -> None:
    equal = [name for name, shape in graph.shapes.items() if shape == graph.shapes[x]]
    other = equal[int(rng.integers(len(equal)))]
    graph.add(_pick(rng, "Add", "Sub", "Mul", "Max", "Min"), (x, other), graph.shapes[x])


def concat(graph: FloatGraph, rng: Rng, x: str) -> None:
    shape = graph.shapes[x]
    axis = int(rng.integers(1, len(shape)))
    fitting = [
        name
        for name, other in graph.shapes.items()
        if len(other) == len(shape)
        and all(a == b for i, (a, b) in enumerate(zip(shape, other, strict=True)) if i != axis)
    ]
    chosen = [x, *(fitting[int(i)] for i in rng.integers(0, len(fitting), int(rng.integers(1, 3))))]
    total = sum(graph.shapes[name][axis] for name in chosen)
    graph.add("Concat", tuple(chosen), (*shape[:axis], total, *shape[axis + 1 :]), axis=axis)


def slice_(graph: FloatGraph, rng: Rng, x: str) -> None:
    shape = graph.shapes[x]
    axis = int(rng.integers(1, len(shape)))
    start = int(rng.integers(0, shape[axis]))
    end = int(rng.integers(start + 1, shape[axis] + 1))
    step = int(_pick(rng, 1, 1, 2))
    numbers = [graph.constant([value], "int64") for value in (start, end, axis, step)]
    extent = -(-(end - start) // step)
    graph.add("Slice", (x, *numbers), (*shape[:axis], extent, *shape[axis + 1 :]))


def pad(graph: FloatGraph, rng: Rng, x: str) -> None:
    shape = graph.shapes[x]
    before, after = (np.where(np.arange(len(shape)) > 0, rng.integers(0, 3, len(shape)), 0) for _ in range(2))
    mode = _pick(rng, "constant", "constant", "edge")
    pads = graph.constant([*before, *after], "int64")
    total = tuple(np.asarray(shape) + before + after)
    graph.add("Pad", (x, pads), total, mode=mode)


def transpose(graph: FloatGraph, rng: Rng, x: str) -> None:
    shape = graph.shapes[x]
    perm = [0, *(int(i) + 1 for i in rng.permutation(len(shape) - 1))]
    graph.add("Transpose", (x,), tuple(shape[i] for i in perm), perm=perm)


def reshape(graph: FloatGraph, rng: Rng, x: str) -> None:
    shape = graph.shapes[x]
    size = int(np.prod(shape))
    factors = [f for f in range(1, size + 1) if size % f == 0]
    first = int(_pick(rng, *factors))
    rest = size // first
    second = int(_pick(rng, *(f for f in range(1, rest + 1) if rest % f == 0)))
    new = _pick(rng, (1, first, second, rest // second), (1, size), (1, shape[1], size // shape[1]))
    graph.add("Reshape", (x, graph.constant(new, "int64")), new)


def dense(graph: FloatGraph, rng: Rng, x: str) -> None:
    shape = graph.shapes[x]
    outputs = int(_pick(rng, 1, 2, 3, 4, 5, 8, 11))
    if len(shape) == 2 and rng.random() < 0.6:
        transposed = int(rng.integers(0, 2))
        form = (outputs, shape[1]) if transposed else (shape[1], outputs)
        w = graph.constant(rng.normal(0, 0.4, form))
        b = graph.constant(rng.normal(0, 0.5, outputs))
        graph.add("Gemm", (x, w, b), (shape[0], outputs), (1, 2), transB=transposed)
        return
    w = graph.constant(rng.normal(0, 0.4, (shape[-1], outputs)))
    graph.add("MatMul", (x, w), (*shape[:-1], outputs), (1,))


def softmax(graph: FloatGraph, rng: Rng, x: str) -> None:
    axis = int(rng.integers(1, len(graph.shapes[x])))
    graph.add("Softmax", (x,), graph.shapes[x], axis=axis)


def reduce(graph: FloatGraph, rng: Rng, x: str) -> None:
    shape = graph.shapes[x]
    axes = sorted({int(i) for i in rng.integers(1, len(shape), 2)})
    new = tuple(1 if i in axes else extent for i, extent in enumerate(shape))
    op_type = _pick(rng, "ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin")
    graph.add(op_type, (x, graph.constant(axes, "int64")), new, keepdims=1)


def normalise(graph: FloatGraph, rng: Rng, x: str) -> None:
    channels = graph.shapes[x][1]
    values = [rng.normal(0, 1, channels) for _ in range(3)] + [rng.uniform(0.5, 2, channels)]
    graph.add("BatchNormalization", (x, *(graph.constant(v) for v in values)), graph.shapes[x])


SPATIAL: tuple[Callable[[FloatGraph, Rng, str], None], ...] = (
    *(conv, conv, conv, conv, conv_transpose, pool, pool, global_pool, unary, unary, clip, binary_constant),
    *(binary, binary, concat, slice_, pad, transpose, reshape, reduce, normalise, softmax, dense),
)
FLAT = (
    *(dense, dense, dense, unary, unary, clip, binary_constant, binary, concat, slice_, transpose, reshape),
    *(reduce, softmax),
)
