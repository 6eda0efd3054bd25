# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Small layers that random layers and the cases of operators do not have, for the player's tests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from tinyml.ir import Array, DType, Graph, Node, Op, Quant, Tensor, TensorType
from tinyml.ops.conv.conv import Conv
from tinyml.ops.conv.depthwise import DepthwiseConv
from tinyml.ops.conv.transposed import ConvTranspose
from tinyml.ops.dense.dense import Dense
from tinyml.ops.dense.matmul import MatMul
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.elementwise.clamp import Clamp
from tinyml.ops.indexing.dynamic_update import DynamicUpdate
from tinyml.ops.indexing.gather import GatherElements
from tinyml.ops.indexing.scatter import ScatterElements, ScatterND
from tinyml.ops.pool.average import AveragePool
from tinyml.ops.pool.max import MaxPool
from tinyml.ops.quantization.quantize import Quantize
from tinyml.ops.recurrent.cells import GATES
from tinyml.ops.recurrent.lstm_float import LstmFloat
from tinyml.ops.recurrent.lstm_int8 import LstmInt8
from tinyml.ops.recurrent.recurrent_int8 import RecurrentInt8
from tinyml.ops.reduce.reduce import Reduce
from tinyml.ops.resize.axis import Axis, Sampling
from tinyml.ops.resize.bilinear import ResizeBilinear
from tinyml.ops.resize.resize import ResizeWeighted
from tinyml.ops.resize.tflite import Grid
from tinyml.ops.softmax.softmax import Softmax
from tinyml.ops.top_k import TopK

INPUTS, CELLS, STEPS, BATCHES = 3, 4, 2, 2
SMALL = Quant.per_tensor(0.02, 3)
HALF_PIXELS = Grid(half_pixel_centers=True)


def graphs() -> Iterator[Graph]:
    rng = np.random.default_rng(34)
    yield _layer("lstm_int8", LstmInt8(), _lstm_int8(rng))
    yield _layer("lstm_int8_last", LstmInt8(sequence=False, time_major=True, cell_clip=3.0), _lstm_int8(rng))
    yield _layer("lstm_float", LstmFloat(), _lstm_float(rng, whole=True))
    yield _layer("lstm_coupled", LstmFloat(cell_clip=0.5, projection_clip=0.4), _lstm_float(rng, whole=False))
    weights = rng.integers(-127, 128, (8, 3, 3, 2)).astype(np.float32) / np.float32(64)
    yield _layer("conv_bytes", Conv(pads=(1, 1, 1, 1)), [_real("x", 1, 4, 4, 2), _known("w", weights)])
    weights = rng.normal(size=(4, 3, 3, 2)).astype(np.float32)
    yield _layer("conv_float", Conv(pads=(1, 1, 1, 1)), [_real("x", 1, 4, 4, 2), _known("w", weights)])
    weights = rng.integers(-127, 128, (8, 9)).astype(np.float32) / np.float32(64)
    bias = _known("b", rng.normal(size=8).astype(np.float32))
    yield _layer("dense_bytes", Dense(), [_real("x", 2, 9), _known("w", weights), bias])
    yield from _float16(rng)

    yield from _binaries()
    words = Tensor("x", (2, 7), DType.INT16, Quant.per_tensor(0.001, 0))
    unit = TensorType((2, 7), DType.INT16, Quant.per_tensor(2.0**-15, 0))
    yield _layer("softmax_int16", Softmax(), [words], unit)

    for name, group in _groups():
        yield _together(name, group)


def _float16(rng: np.random.Generator) -> Iterator[Graph]:
    """Layers large enough to store their weights so. Groups and channels are odd: what follows is aligned."""

    def known(*shape: int) -> Tensor:
        return _known("w", rng.normal(size=shape).astype(np.float16).astype(np.float32))

    same = (1, 1, 1, 1)
    grouped = Conv(pads=same, groups=3)
    yield _layer("conv_float16", grouped, [_real("x", 1, 4, 4, 9), known(39, 3, 3, 3)])
    yield _layer("depthwise_float16", DepthwiseConv(pads=same), [_real("x", 1, 4, 4, 33), known(1, 3, 3, 33)])
    yield _layer("dense_float16", Dense(), [_real("x", 3, 31), known(13, 31)])


def small_graphs() -> Iterator[Graph]:
    """The same, with a graph for each layer."""
    together = {name for name, _ in _groups()}
    yield from (graph for graph in graphs() if graph.name not in together)
    for _, group in _groups():
        yield from group


def _groups() -> Iterator[tuple[str, Iterator[Graph]]]:
    yield "stored_weights", _stored(np.random.default_rng(35))
    yield "quantized_floats", _quantized_floats()
    yield "words", _words()
    yield "choices", _choices(np.random.default_rng(36))
    yield "integer_reductions", _reductions()
    yield "scattered_updates", _scattered(np.random.default_rng(39))
    yield "resized", _resized()
    yield "transposed", _transposed(np.random.default_rng(38))
    yield "recurrent_bytes", _recurrent(np.random.default_rng(37))


def _stored(rng: np.random.Generator) -> Iterator[Graph]:
    """Dense layers whose weights are mostly zero, or small integers times the scales of blocks."""
    bias = _known("b", rng.normal(size=8).astype(np.float32))
    runs = np.zeros((8, 40), np.float32)
    for output in range(7):  # the last output has none
        runs[output, 4 * output : 4 * output + 6] = rng.normal(size=6)
    yield _layer("runs", Dense(), [_real("x", 2, 40), _known("w", runs), bias])
    whole = (np.sign(runs) * rng.integers(1, 127, runs.shape) / 64).astype(np.float32)
    yield _layer("byte_runs", Dense(), [_real("x", 1, 40), _known("w", whole), bias])
    scattered = (rng.normal(size=(8, 40)) * (rng.random((8, 40)) < 0.2)).astype(np.float32)
    yield _layer("scattered", Dense(), [_real("x", 2, 40), _known("w", scattered), bias])


def _quantized_floats() -> Iterator[Graph]:
    """Four at a time, with three elements left."""
    for dtype, quant in ((DType.INT8, SMALL), (DType.INT16, Quant.per_tensor(0.0001, 0))):
        for even in (False, True):
            name = f"floats_{dtype.value}_{'even' if even else 'away'}"
            yield _layer(name, Quantize(dtype, quant, even), [_real("x", 1, 3, 13)])


def _words() -> Iterator[Graph]:
    """Pools, sums and products of int16."""
    quant = Quant.per_tensor(0.001, 0)
    for dtype, own in ((DType.INT8, SMALL), (DType.UINT8, SMALL), (DType.INT16, quant), (DType.INT16, None)):
        name = f"clamp_{dtype.value}{'' if own else '_whole'}"
        yield _layer(name, Clamp(-0.5, 1.1 if own else 300.0), [Tensor("x", (3, 7), dtype, own)])
    x = Tensor("x", (1, 5, 4, 3), DType.INT16, quant)
    yield _layer("max_words", MaxPool(kernel=(3, 2), strides=(2, 1), pads=(1, 0, 1, 0)), [x])
    for halves in ("away", "up", "even"):
        op = AveragePool(kernel=(2, 3), strides=(1, 2), pads=(0, 1, 0, 1), halves=halves)
        yield _layer(f"mean_words_{halves}", op, [x], TensorType(op.infer([x])[0].shape, DType.INT16, quant))
    for once in (False, True):
        y = TensorType((1, 5, 1, 3), DType.INT16, Quant.per_tensor(0.002, 0))
        yield _layer(f"sum_words_{once}", Reduce("sum", (2,), round_once=once), [x], y)
        a, b = (Tensor(name, shape, DType.INT16, quant) for name, shape in (("a", (2, 3, 5)), ("b", (5, 4))))
        y = TensorType((2, 3, 4), DType.INT16, Quant.per_tensor(0.004, 0))
        yield _layer(f"product_words_{once}", MatMul(round_once=once), [a, b], y)


def _choices(rng: np.random.Generator) -> Iterator[Graph]:
    for function in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"):
        a, b = (Tensor(name, (2, 3), DType.INT8, SMALL) for name in "ab")
        yield _layer(
            f"bytes_{function}", Binary(function), [a, replace(b, quant=Quant.per_tensor(0.013, -5))]
        )
        yield _layer(f"reals_{function}", Binary(function), [_real("a", 2, 3), _real("b", 3)])
    for dtype, quant in ((DType.FLOAT32, None), (DType.INT8, SMALL), (DType.INT16, Quant.per_tensor(0.1, 0))):
        x = Tensor("x", (1, 4, 3, 2), dtype, quant)
        yield _layer(f"bilinear_{dtype.value}", ResizeBilinear(7, 5, HALF_PIXELS), [x])
        yield _layer(f"best_{dtype.value}", TopK(2, 1, largest=dtype is not DType.INT8), [x])
    places = _known("i", rng.integers(0, 4, (1, 2, 3, 2)).astype(np.int32))
    yield _layer("elements", GatherElements(1), [_real("x", 1, 4, 3, 2), places])


def _reductions() -> Iterator[Graph]:
    quant = Quant.per_tensor(0.1, 0)
    for dtype, own in ((DType.INT8, SMALL), (DType.UINT8, SMALL), (DType.INT16, quant), (DType.INT32, None)):
        x = Tensor("x", (2, 3, 4, 2), dtype, own)
        yield _layer(f"largest_{dtype.value}", Reduce("max", (1, 2)), [x])
        yield _layer(f"smallest_{dtype.value}", Reduce("min", (3,)), [x])
    for function in ("sum", "prod", "l1", "sum_square"):
        yield _layer(f"whole_{function}", Reduce(function, (0, 2)), [Tensor("x", (2, 3, 4, 2), DType.INT32)])
    yield _layer("any", Reduce("any", (1,)), [Tensor("x", (2, 5), DType.BOOL)])


def _scattered(rng: np.random.Generator) -> Iterator[Graph]:
    """Updates that replace what is there, or are combined with it; some places come twice."""
    for reduction, dtype in (("none", DType.INT8), ("add", DType.FLOAT32), ("max", DType.INT16)):
        quant = SMALL if dtype is DType.INT8 else None
        x, one = (Tensor(name, shape, dtype, quant) for name, shape in (("x", (3, 4, 2)), ("u", (2, 4, 2))))
        places = _known("i", rng.integers(-3, 3, (2, 1)).astype(np.int64))
        yield _layer(f"scatter_{reduction}", ScatterND(reduction), [x, places, one])
        index = _known("i", rng.integers(-3, 3, one.shape).astype(np.int32))
        yield _layer(f"scatter_elements_{reduction}", ScatterElements(reduction, 0), [x, index, one])
    blocks = {"row": (1, 4, 2), "corner": (2, 3, 1), "whole": (3, 4, 2), "bytes": (3, 1, 1)}
    for kind, block in blocks.items():
        dtype = DType.INT8 if kind == "bytes" else DType.FLOAT32
        x, part = Tensor("x", (3, 4, 2), dtype), Tensor("u", block, dtype)
        starts = Tensor("i", (3,), DType.INT64 if kind == "row" else DType.INT32)
        yield _layer(f"update_{kind}", DynamicUpdate(), [x, part, starts])


def _resized() -> Iterator[Graph]:
    for mode in ("linear", "cubic"):
        axes = tuple(Axis(size, size / 2) for size in (3, 1, 4, 3))
        yield _layer(f"resize_{mode}", ResizeWeighted(axes, Sampling(mode)), [_real("x", 2, 2, 2, 2)])
    crop = Sampling("linear", "tf_crop_and_resize", extrapolation=7.0)
    axes = (Axis(1), Axis(4, 4 / 3, (-0.5, 1.2)), Axis(2, 1.0, (0.1, 0.9)), Axis(2))
    yield _layer("resize_crop", ResizeWeighted(axes, crop), [_real("x", 1, 3, 2, 2)])


def _transposed(rng: np.random.Generator) -> Iterator[Graph]:
    """Parts of the outputs are convolutions, some of which begin inside the input."""
    for name, strides, pads, outputs in (("one", (2, 3), (0, 1), (5, 8)), ("inside", (1, 2), (2, 4), (3, 4))):
        weights = rng.normal(size=(2, 3, 3, 2)).astype(np.float32)
        op = ConvTranspose(strides=strides, pads=pads, outputs=outputs, clamp=(-1.0, np.inf))
        operands = [_real("x", 1, 3, 4, 2), _known("w", weights), _known("b", rng.normal(size=2).astype("f"))]
        yield _layer(f"transposed_{name}", op, operands)
    weights = rng.normal(size=(2, 2, 2, 1)).astype(np.float32)
    apart = ConvTranspose(strides=(2, 1), pads=(0, 0), dilations=(1, 2), outputs=(6, 6), groups=2)
    yield _layer("transposed_in_groups", apart, [_real("x", 1, 3, 4, 2), _known("w", weights)])


def _recurrent(rng: np.random.Generator) -> Iterator[Graph]:
    """RNN, GRU and LSTM of quantised ONNX models; with and without all steps and first states."""
    ops = (
        RecurrentInt8("rnn", scale=0.008, sequence=False),
        RecurrentInt8("gru", scale=0.008, reverse=True),
        RecurrentInt8("gru", scale=0.008, linear_before_reset=True, wide=True),
        RecurrentInt8("lstm", scale=0.008, zero_point=-3),
    )
    for number, op in enumerate(ops):
        rows = GATES[op.cell] * CELLS
        x = Tensor("x", (STEPS, BATCHES, INPUTS), DType.INT8, SMALL)
        weights = [
            _known(
                name,
                rng.integers(-127, 128, (rows, size)).astype(np.int8),
                Quant((0.01,) * rows, (0,) * rows, 0),
            )
            for name, size in (("w", INPUTS), ("r", CELLS))
        ]
        biases = rng.integers(-9000, 9000, rows + (CELLS if op.second_bias else 0)).astype(np.int32)
        states = [Tensor("h", (BATCHES, CELLS), *op.state_type)] if number % 2 else []
        states += [Tensor("c", (BATCHES, CELLS), *op.cell_type)] if op.cell == "lstm" else []
        yield _layer(f"{op.cell}_bytes_{number}", op, [x, *weights, _known("b", biases), *states])


def _together(name: str, graphs: Iterator[Graph]) -> Graph:
    """One graph of several, which have nothing in common: building it takes no longer than building one."""
    tensors: dict[str, Tensor] = {}
    nodes: list[Node] = []
    inputs: list[str] = []
    outputs: list[str] = []
    for graph in graphs:
        new = {old: f"{graph.name}_{old}" for old in graph.tensors} | {"": ""}
        tensors |= {new[old]: replace(tensor, name=new[old]) for old, tensor in graph.tensors.items()}
        for node in graph.nodes:
            operands = tuple(new[t] for t in node.inputs), tuple(new[t] for t in node.outputs)
            nodes.append(replace(node, inputs=operands[0], outputs=operands[1]))
        inputs += [new[t] for t in graph.inputs]
        outputs += [new[t] for t in graph.outputs]
    return Graph(name, tensors, tuple(nodes), tuple(inputs), tuple(outputs))


def _binaries() -> Iterator[Graph]:
    """Functions of two tensors of uint8 and int16, one of which repeats along an axis."""
    for dtype, zero in ((DType.UINT8, 100), (DType.INT16, 0)):
        for function in ("add", "sub", "mul", "prelu", "squared_difference", "max", "min"):
            one = Quant.per_tensor(0.02, zero)
            quants = [one] * 3 if function in ("max", "min") else [one, Quant.per_tensor(0.013, zero)]
            out = quants[-1] if len(quants) == 3 else Quant.per_tensor(0.031, zero)
            for once in (False, True):
                if once and function == "squared_difference":
                    continue  # ONNX has none
                shapes = ((2, 3, 5), (3, 1))
                operands = [
                    Tensor(name, shape, dtype, quant)
                    for name, shape, quant in zip("ab", shapes, quants, strict=False)
                ]
                name = f"{function}_{dtype.value}{'_once' if once else ''}"
                op = Binary(function, round_once=once)
                yield _layer(name, op, operands, TensorType(shapes[0], dtype, out))


def samples(graph: Graph) -> dict[str, Array]:
    rng = np.random.default_rng(1)
    found = {}
    for name in graph.inputs:
        tensor = graph.tensors[name]
        if tensor.dtype is DType.BOOL:
            found[name] = rng.random(tensor.shape) < 0.3
        elif tensor.dtype.is_float:
            found[name] = rng.normal(size=tensor.shape).astype(np.float32)
        else:
            low, high = tensor.dtype.limits
            found[name] = rng.integers(low, high, tensor.shape).astype(tensor.dtype.numpy)
    return found


def _layer(name: str, op: Op, operands: Sequence[Tensor | None], output: TensorType | None = None) -> Graph:
    types = op.infer(operands) if output is None else (output,)
    outputs = [Tensor.of(f"y{i}", type_) for i, type_ in enumerate(types)]
    names = tuple(t.name if t is not None else "" for t in operands)
    node = Node(name, op, names, tuple(t.name for t in outputs))
    tensors = {t.name: t for t in (*operands, *outputs) if t is not None}
    inputs = tuple(t.name for t in operands if t is not None and not t.is_constant)
    return Graph(name, tensors, (node,), inputs, tuple(t.name for t in outputs))


def _real(name: str, *shape: int) -> Tensor:
    return Tensor(name, shape, DType.FLOAT32)


def _known(name: str, values: Array, quant: Quant | None = None) -> Tensor:
    return Tensor.constant(name, values, quant)


def _lstm_int8(rng: np.random.Generator) -> list[Tensor | None]:
    def weights(name: str, columns: int) -> list[Tensor | None]:
        scale = Quant.per_tensor(0.01, 0)
        return [
            _known(f"{name}{gate}", rng.integers(-127, 128, (CELLS, columns)).astype(np.int8), scale)
            for gate in range(4)
        ]

    return [
        Tensor("x", (STEPS, BATCHES, INPUTS), DType.INT8, SMALL),
        *weights("w", INPUTS),
        *weights("r", CELLS),
        *(_known(f"b{gate}", rng.integers(-500, 500, CELLS).astype(np.int32)) for gate in range(4)),
        Tensor("state", (BATCHES, CELLS), DType.INT8, SMALL),
        Tensor("cell", (BATCHES, CELLS), DType.INT16, Quant.per_tensor(2.0**-11, 0)),
    ]


def _lstm_float(rng: np.random.Generator, whole: bool) -> list[Tensor | None]:
    """With all gates; or with coupled ones, peepholes and a projection."""
    outputs = CELLS if whole else 3

    def known(name: str, *shape: int) -> Tensor:
        return _known(name, rng.normal(0, 0.5, shape).astype(np.float32))

    def gates(name: str, *shape: int) -> list[Tensor | None]:
        return [known(f"{name}{gate}", *shape) if gate or whole else None for gate in range(4)]

    return [
        _real("x", BATCHES, STEPS, INPUTS),
        *gates("w", CELLS, INPUTS),
        *gates("r", CELLS, outputs),
        *(None if whole or not gate else known(f"p{gate}", CELLS) for gate in range(3)),
        *gates("b", CELLS),
        None if whole else known("projection", outputs, CELLS),
        None if whole else known("projection_bias", outputs),
        _real("state", BATCHES, outputs),
        _real("cell", BATCHES, CELLS),
    ]
