# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Random layers whose kernels are loops in the model's own C: all types, ranks and broadcast patterns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tests.random_layers.plain import KINDS, Sampler
from tinyml.base.errors import TinymlError
from tinyml.cores.targets import TARGETS
from tinyml.ir import DType, Graph, Node, Op, Quant, Shape, Tensor
from tinyml.memory.select import select
from tinyml.ops.concat import Concat
from tinyml.ops.dense.matmul import MatMul
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.elementwise.cast import Cast
from tinyml.ops.elementwise.clamp import Clamp
from tinyml.ops.elementwise.lookup import Lookup
from tinyml.ops.elementwise.unary import Unary
from tinyml.ops.elementwise.where import Where
from tinyml.ops.expand import Tile
from tinyml.ops.framework.kernel import Library
from tinyml.ops.indexing.gather import Gather
from tinyml.ops.normalization.normalization import Normalize
from tinyml.ops.pad import Pad
from tinyml.ops.quantization.quantize import Dequantize, Quantize
from tinyml.ops.quantization.requantize import Requantize
from tinyml.ops.reduce.arg_reduce import ArgReduce
from tinyml.ops.reduce.cumulative import Cumulative
from tinyml.ops.reduce.reduce import Reduce
from tinyml.ops.slice import Slice
from tinyml.ops.softmax.log_softmax import LogSoftmax
from tinyml.ops.softmax.softmax import Softmax
from tinyml.ops.transpose import Transpose
from tinyml.ops.trilu import Trilu

SMALLEST, LARGEST = 8, 3000
"""Elements of a tensor, about: a hundred layers have to fit into the memory of an emulated machine."""

QUANTIZED = (DType.INT8, DType.INT8, DType.UINT8, DType.INT16)
INTEGERS = (DType.INT8, DType.UINT8, DType.INT16, DType.INT32, DType.INT64)
FLOAT = DType.FLOAT32
COMPARISONS = ("equal", "less", "less_equal", "greater")
FLOAT_PAIRS = ("add", "add", "sub", "mul", "mul", "div", "min", "max", "squared_difference", "prelu")
WHOLE_PAIRS = ("add", "sub", "mul", "min", "max", "div", "mod", "bitwise_and", "bitwise_or")
FLOAT_SINGLE = (
    *("abs", "neg", "sign", "ceil", "floor", "round", "sqrt", "rsqrt", "square", "reciprocal", "exp", "log"),
    *("sin", "cos", "tanh", "erf", "sigmoid", "softplus", "softsign", "gelu", "swish", "hard_sigmoid"),
    *("hard_swish", "elu", "selu"),
)


@dataclass
class Drawing:
    """One layer that is drawn."""

    rng: np.random.Generator
    name: str

    def whole(self, *choices: int) -> int:
        return int(self.rng.choice(choices))

    def dtype(self, *choices: DType) -> DType:
        return choices[int(self.rng.integers(len(choices)))]

    def text(self, *choices: str) -> str:
        return choices[int(self.rng.integers(len(choices)))]

    def scale(self, *choices: int) -> float:
        """About one of these thousandths, as training finds it."""
        return float(self.whole(*choices) * self.rng.uniform(0.9, 1.1) / 1000)

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def shape(self, lowest: int = 1, highest: int = 4) -> Shape:
        """Of any rank; the number of elements is spread evenly over its orders of magnitude."""
        rank, room = (
            int(self.rng.integers(lowest, highest + 1)),
            SMALLEST * (LARGEST / SMALLEST) ** self.rng.random(),
        )
        shape = []
        for _ in range(rank - 1):
            shape.append(int(min(room, self.whole(1, 2, 3, 4, 5, 7, 8, 10, 16, 25))))
            room /= shape[-1]
        shape.append(max(1, int(room)))
        return tuple(int(n) for n in self.rng.permutation(shape))

    def axes(self, rank: int) -> tuple[int, ...]:
        return tuple(
            sorted(int(a) for a in self.rng.choice(rank, self.whole(*range(1, rank + 1)), replace=False))
        )

    def tensor(self, place: str, shape: Shape, dtype: DType, scale: float = 0.05, zero: int = 0) -> Tensor:
        quant = None
        if dtype in QUANTIZED and scale:
            wide = dtype is DType.INT16
            quant = Quant.per_tensor(scale / 256 if wide else scale, 0 if wide else zero)
        return Tensor(f"{self.name}_{place}", shape, dtype, quant)

    def plain(self, place: str, shape: Shape, dtype: DType) -> Tensor:
        return self.tensor(place, shape, dtype, 0.0)

    def made(self, op: Op, *inputs: Tensor, output: Tensor | None = None) -> Graph:
        """``output``: where its type does not follow from the inputs alone."""
        if output is None:
            (found,) = op.infer(list(inputs))
            output = Tensor(f"{self.name}_y", found.shape, found.dtype, found.quant)
        node = Node(self.name, op, tuple(t.name for t in inputs), (output.name,))
        tensors = {tensor.name: tensor for tensor in (*inputs, output)}
        given = tuple(dict.fromkeys(t.name for t in inputs if not t.is_constant))
        return Graph("layers", tensors, (node,), given, (output.name,))

    def other_shape(self, shape: Shape) -> Shape:
        """One that broadcasts to it."""
        kind = self.whole(0, 0, 0, 1, 2, 3)
        if kind == 0:
            return shape
        if kind == 1:
            return (1,)
        if kind == 2:
            return shape[self.whole(*range(len(shape))) :]
        return tuple(1 if self.chance(0.5) else n for n in shape)

    def operand(self, place: str, shape: Shape, dtype: DType) -> Tensor:
        """An input, or a constant."""
        if not self.chance(0.3):
            return self.plain(place, shape, dtype)
        values = self.rng.integers(1, 100, shape)
        array = (values / 16 if dtype.is_float else values).astype(dtype.numpy)
        return Tensor.constant(f"{self.name}_{place}", array)


def pair(draw: Drawing) -> Graph:
    shape = draw.shape()
    dtype = draw.dtype(FLOAT, FLOAT, FLOAT, *INTEGERS[3:])
    names = FLOAT_PAIRS if dtype is FLOAT else WHOLE_PAIRS
    clamp = (-np.inf, np.inf)
    if dtype is FLOAT and draw.chance(0.25):
        clamp = (0.0, (6.0, np.inf)[draw.whole(0, 1)])
    op = Binary(draw.text(*names), clamp=clamp)
    operands = [draw.plain("a", shape, dtype), draw.operand("b", draw.other_shape(shape), dtype)]
    return draw.made(op, *(operands if draw.chance(0.7) else operands[::-1]))


def fixed_pair(draw: Drawing) -> Graph:
    shape, dtype = draw.shape(), draw.dtype(*QUANTIZED)
    function = draw.text("add", "add", "sub", "mul", "mul", "squared_difference", "prelu", "max", "min")
    low = 0 if dtype is DType.UINT8 else -128
    zeros = [draw.whole(low, 0, 3, 17) for _ in range(3)]
    scales = [draw.scale(5, 21, 50), draw.scale(2, 5, 21, 50), draw.scale(6, 21, 60)]
    if function in ("max", "min"):
        zeros, scales = [zeros[0]] * 3, [scales[0]] * 3
    clamp = (0.0, np.inf) if draw.chance(0.3) else (-np.inf, np.inf)
    once = draw.chance(0.5) and function != "squared_difference"
    a = draw.tensor("a", shape, dtype, scales[0], zeros[0])
    b = draw.tensor("b", draw.other_shape(shape), dtype, scales[1], zeros[1])
    y = draw.tensor("y", shape, dtype, scales[2], zeros[2])
    operands = [a, b] if draw.chance(0.7) or function == "prelu" else [b, a]
    return draw.made(Binary(function, clamp=clamp, round_once=once), *operands, output=y)


def comparison(draw: Drawing) -> Graph:
    shape, dtype = draw.shape(), draw.dtype(FLOAT, FLOAT, DType.INT32, DType.INT64, DType.INT8)
    operands = draw.plain("a", shape, dtype), draw.operand("b", draw.other_shape(shape), dtype)
    return draw.made(Binary(function=draw.text(*COMPARISONS)), *operands)


def single(draw: Drawing) -> Graph:
    dtype = FLOAT if draw.chance(0.85) else draw.dtype(DType.INT32, DType.INT64)
    function = draw.text(*FLOAT_SINGLE) if dtype is FLOAT else draw.text("abs", "neg", "sign", "square")
    parameters = {"elu": (1.0,), "swish": (1.0,), "hard_sigmoid": (0.2, 0.5), "selu": (1.67326, 1.0507)}
    shape = draw.shape()
    return draw.made(Unary(function, parameters.get(function, ())), draw.plain("x", shape, dtype))


def cast(draw: Drawing) -> Graph:
    types = (FLOAT, *INTEGERS, DType.BOOL)
    source, target = draw.dtype(*types), draw.dtype(*types)
    if source is target:
        target = FLOAT if source is not FLOAT else DType.INT32
    return draw.made(Cast(target), draw.plain("x", draw.shape(), source))


def clamp(draw: Drawing) -> Graph:
    x = draw.plain("x", draw.shape(), draw.dtype(FLOAT, FLOAT, DType.INT32, DType.INT8))
    limits = ((0.0, 6.0), (-1.0, 1.0), (0.0, np.inf), (-np.inf, 3.0))
    return draw.made(Clamp(*limits[draw.whole(0, 1, 2, 3)]), x)


def quantize(draw: Drawing) -> Graph:
    dtype = draw.dtype(*QUANTIZED)
    quant = draw.tensor("q", (1,), dtype, 0.02, draw.whole(0, 3)).quant
    assert quant is not None
    return draw.made(Quantize(dtype, quant, draw.chance(0.5)), draw.plain("x", draw.shape(), FLOAT))


def dequantize(draw: Drawing) -> Graph:
    x = draw.tensor("x", draw.shape(), draw.dtype(*QUANTIZED), 0.02, draw.whole(0, 3))
    return draw.made(Dequantize(), x)


def round_scale(draw: Drawing) -> Graph:
    """Between floats and integers by a power of two, mostly 1: compilers multiply, or leave it out."""
    dtype, shape = draw.dtype(*QUANTIZED), draw.shape()
    scale = 2.0 ** draw.whole(0, 0, 0, -1, -7, -8, 3)
    quant = Quant.per_tensor(scale, 0 if dtype is DType.INT16 else draw.whole(0, 3))
    if draw.chance(0.6):
        return draw.made(Quantize(dtype, quant, draw.chance(0.5)), draw.plain("x", shape, FLOAT))
    return draw.made(Dequantize(), replace(draw.plain("x", shape, dtype), quant=quant))


def requantize(draw: Drawing) -> Graph:
    shape, dtype = draw.shape(), draw.dtype(*QUANTIZED)
    other = dtype if draw.chance(0.6) else draw.dtype(*QUANTIZED)
    x = draw.tensor("x", shape, dtype, draw.scale(5, 21, 50), draw.whole(0, 3, 17))
    y = draw.tensor("y", shape, other, draw.scale(6, 21, 60), draw.whole(0, 3, 17))
    return draw.made(Requantize(round_once=draw.chance(0.5)), x, output=y)


def any_tensor(draw: Drawing, place: str, shape: Shape) -> Tensor:
    return draw.plain(
        place, shape, draw.dtype(FLOAT, FLOAT, DType.INT8, DType.INT8, DType.INT16, DType.INT64)
    )


def concat(draw: Drawing) -> Graph:
    first = any_tensor(draw, "x0", draw.shape(1, 4))
    axis = draw.whole(*range(len(first.shape)))
    more = [
        draw.plain(
            f"x{i}", (*first.shape[:axis], draw.whole(1, 2, 3, 8), *first.shape[axis + 1 :]), first.dtype
        )
        for i in range(1, draw.whole(2, 2, 3))
    ]
    return draw.made(Concat(axis), first, *more)


def cut(draw: Drawing) -> Graph:
    x = any_tensor(draw, "x", draw.shape())
    steps = [1 if draw.chance(0.8) else draw.whole(1, 2, 3) for _ in x.shape]
    starts = [int(draw.rng.integers(n)) if draw.chance(0.6) else 0 for n in x.shape]
    extents = [
        int(draw.rng.integers(1, (n - s - 1) // step + 2))
        for n, s, step in zip(x.shape, starts, steps, strict=True)
    ]
    return draw.made(Slice(tuple(starts), tuple(extents), tuple(steps)), x)


def transpose(draw: Drawing) -> Graph:
    x = any_tensor(draw, "x", draw.shape(2, 4))
    return draw.made(Transpose(tuple(int(a) for a in draw.rng.permutation(len(x.shape)))), x)


def border(draw: Drawing) -> Graph:
    x = any_tensor(draw, "x", draw.shape(1, 4))
    widths = [[draw.whole(0, 0, 1, 2) for _ in x.shape] for _ in range(2)]
    return draw.made(Pad(tuple(widths[0]), tuple(widths[1]), float(draw.whole(0, 0, 1))), x)


def tile(draw: Drawing) -> Graph:
    x = any_tensor(draw, "x", draw.shape(1, 3))
    return draw.made(Tile(tuple(draw.whole(1, 1, 2, 3) for _ in x.shape)), x)


def gather(draw: Drawing) -> Graph:
    x = any_tensor(draw, "x", draw.shape(1, 3))
    axis = draw.whole(*range(len(x.shape)))
    indices = draw.plain("i", (draw.whole(1, 2, 5, 9),), draw.dtype(DType.INT32, DType.INT64))
    return draw.made(Gather(axis), x, indices)


def table(draw: Drawing) -> Graph:
    x = draw.tensor("x", draw.shape(), draw.dtype(DType.INT8, DType.UINT8), 0.05)
    values = tuple(int(v) for v in draw.rng.integers(0, 100, 256))
    return draw.made(Lookup(values), x, output=draw.tensor("y", x.shape, x.dtype, 0.05))


def where(draw: Drawing) -> Graph:
    shape = draw.shape()
    dtype = draw.dtype(FLOAT, FLOAT, DType.INT8, DType.INT32, DType.INT64)
    condition = draw.plain("c", draw.other_shape(shape), DType.BOOL)
    return draw.made(
        Where(), condition, draw.plain("a", shape, dtype), draw.operand("b", draw.other_shape(shape), dtype)
    )


def reduction(draw: Drawing) -> Graph:
    shape = draw.shape(1, 4)
    dtype = draw.dtype(FLOAT, FLOAT, FLOAT, DType.INT8, DType.INT8, DType.INT16, DType.INT32, DType.INT64)
    function = draw.text("mean", "mean", "sum", "max", "min")
    op = Reduce(function, draw.axes(len(shape)), round_once=draw.chance(0.5))
    if dtype not in QUANTIZED:
        return draw.made(op, draw.plain("x", shape, dtype))
    x = draw.tensor("x", shape, dtype, 0.02, draw.whole(0, 3))
    same = function in ("max", "min")
    (found,) = op.infer([x])
    scale = 0.02 if same else draw.scale({"mean": 20, "sum": 500}[function])
    zero = x.quant.zero_points[0] if same and x.quant else -7
    return draw.made(op, x, output=draw.tensor("y", found.shape, dtype, scale, zero))


def arg_reduction(draw: Drawing) -> Graph:
    x = draw.plain("x", draw.shape(1, 3), draw.dtype(FLOAT, DType.INT8, DType.INT32))
    return draw.made(ArgReduce(draw.whole(*range(len(x.shape))), draw.chance(0.7)), x)


def cumulative(draw: Drawing) -> Graph:
    x = draw.plain("x", draw.shape(1, 3), draw.dtype(FLOAT, DType.INT32))
    return draw.made(
        Cumulative(draw.whole(*range(len(x.shape))), False, draw.chance(0.3), draw.chance(0.3)), x
    )


def soft(draw: Drawing) -> Graph:
    x = draw.plain("x", draw.shape(1, 3), FLOAT)
    axis = draw.whole(*range(len(x.shape)))
    return draw.made(Softmax(axis) if draw.chance(0.7) else LogSoftmax(axis), x)


def normalization(draw: Drawing) -> Graph:
    x = draw.plain("x", draw.shape(2, 3), FLOAT)
    axes = draw.axes(len(x.shape))
    return draw.made(Normalize(axes, centred=draw.chance(0.6)), x)


def triangle(draw: Drawing) -> Graph:
    x = any_tensor(draw, "x", draw.shape(2, 3))
    return draw.made(Trilu(draw.chance(0.5), draw.whole(-1, 0, 1, 2)), x)


def product(draw: Drawing) -> Graph:
    rows, inner, columns = (draw.whole(1, 2, 3, 4, 5, 8, 13, 16, 20) for _ in range(3))
    stack = (draw.whole(1, 2, 4),) if draw.chance(0.4) else ()
    a, b = (*stack, rows, inner), (*stack, inner, columns)
    if draw.chance(0.6):
        return draw.made(MatMul(), draw.plain("a", a, FLOAT), draw.plain("b", b, FLOAT))
    quants = [draw.whole(0, 3, -7) for _ in range(3)]
    x, w = draw.tensor("a", a, DType.INT8, 0.02, quants[0]), draw.tensor("b", b, DType.INT8, 0.03, quants[1])
    y = draw.tensor("y", (*stack, rows, columns), DType.INT8, draw.scale(50), quants[2])
    return draw.made(MatMul(round_once=draw.chance(0.5)), x, w, output=y)


def plain(draw: Drawing) -> Graph:
    """Pools, reductions, softmax and sums with the shapes of other campaigns."""
    made = None
    while made is None:
        made = KINDS[int(draw.rng.integers(len(KINDS)))](Sampler(draw.rng, draw.name))
    node, tensors = made
    return Graph("layers", {t.name: t for t in tensors}, (node,), node.inputs, node.outputs)


DRAWN: tuple[Callable[[Drawing], Graph], ...] = (
    *(pair, pair, pair, fixed_pair, fixed_pair, fixed_pair, comparison, single, single, single),
    *(cast, clamp, quantize, dequantize, requantize, requantize, concat, cut, cut, transpose, transpose),
    *(border, border, tile, gather, table, where, reduction, reduction, reduction, arg_reduction),
    *(cumulative, soft, soft, normalization, triangle, product, product, *(plain,) * 8),
)


def loops_layer(rng: np.random.Generator, name: str) -> Graph:
    """A layer of any of these kinds."""
    while True:
        try:
            graph = DRAWN[int(rng.integers(len(DRAWN)))](Drawing(rng, name))
            select(graph, TARGETS["generic"], frozenset(Library))
        except TinymlError:  # an operator that has no such form
            continue
        if all(0 < tensor.elements <= 2 * LARGEST for tensor in graph.tensors.values()):
            return graph


def round_scale_layer(rng: np.random.Generator, name: str) -> Graph:
    return round_scale(Drawing(rng, name))
