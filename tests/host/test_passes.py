# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Passes on small graphs: the results stay the same, and the expected operators are left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.support.interpret import interpret
from tests.support.sketch import Sketch, kinds
from tinyml import pipeline
from tinyml.ir import DType, Graph, Quant, State, Tensor
from tinyml.ir.verifier import verify
from tinyml.ops.conv.conv import Conv
from tinyml.ops.conv.depthwise import DepthwiseConv
from tinyml.ops.conv.transpose import ConvTranspose
from tinyml.ops.dense.dense import Dense
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.elementwise.cast import Cast
from tinyml.ops.elementwise.clamp import Clamp
from tinyml.ops.elementwise.unary import Unary
from tinyml.ops.pad import Pad
from tinyml.ops.pool.average import AveragePool
from tinyml.ops.pool.max import MaxPool
from tinyml.ops.quantization.quantize import Dequantize, Quantize
from tinyml.ops.quantization.requantize import Requantize
from tinyml.ops.reshape import Reshape
from tinyml.ops.transpose import Transpose
from tinyml.passes import Pass
from tinyml.passes.editor import Editor
from tinyml.passes.fold_scale import fold_scale
from tinyml.passes.fuse_pad import fuse_pad
from tinyml.passes.fuse_qdq import fuse_qdq
from tinyml.passes.join_casts import join_casts
from tinyml.passes.merge_common import merge_common
from tinyml.passes.remove_no_ops import remove_no_ops
from tinyml.passes.use_dilation import use_dilation

Make = Callable[[Sketch], Tensor]
BYTES = Quant.per_tensor(0.05, -7)
RELU6 = (0.0, 6.0)


def check(make: Make, step: Pass, left: str) -> Graph:
    """The pass leaves the operators named in ``left`` and changes no result (floats: by rounding only)."""
    sketch = Sketch(3)
    output = make(sketch)
    graph = sketch.graph(output)
    after = step(graph)
    verify(after, step.__name__)
    assert kinds(after) == left.split()
    for _ in range(3):
        sample = sketch.sample()
        before, now = interpret(graph, sample)[output.name], interpret(after, sample)[output.name]
        if output.dtype.is_float:
            np.testing.assert_allclose(now, before, rtol=1e-5, atol=1e-5)
        else:
            assert np.array_equal(now, before)
    return after


def floats(s: Sketch, *shape: int) -> Tensor:
    return s.input(shape or (1, 6, 5, 4), DType.FLOAT32)


def batch_norm(s: Sketch, x: Tensor) -> Tensor:
    x = s.add(Binary("mul"), x, s.real(1, 1, 1, x.shape[-1]))
    return s.add(Binary("add", clamp=RELU6), x, s.real(x.shape[-1]))


# --- fold_scale ----------------------------------------------------------------------------------


def after_conv(s: Sketch) -> Tensor:
    return batch_norm(s, s.add(Conv(pads=(1, 1, 1, 1)), floats(s), s.real(8, 3, 3, 4), s.real(8)))


def after_conv_without_bias(s: Sketch) -> Tensor:
    return batch_norm(s, s.add(Conv(), floats(s), s.real(8, 3, 3, 4)))


def after_depthwise(s: Sketch) -> Tensor:
    return batch_norm(s, s.add(DepthwiseConv(pads=(1, 1, 1, 1)), floats(s), s.real(1, 3, 3, 8)))


def after_transposed(s: Sketch) -> Tensor:
    op = ConvTranspose(strides=(2, 2), pads=(1, 1), outputs=(12, 10))
    return batch_norm(s, s.add(op, floats(s), s.real(8, 3, 3, 4)))


def after_dense(s: Sketch) -> Tensor:
    x = s.add(Dense(), floats(s, 3, 7), s.real(5, 7), s.real(5))
    return s.add(Binary("sub"), s.constant(np.arange(5) + 1), s.add(Binary("div"), x, s.real(1, 5)))


def before_conv(s: Sketch) -> Tensor:
    x = s.add(Binary("sub"), floats(s), s.constant([127.5]))
    x = s.add(Binary("mul"), x, s.constant(1 / 127.5))
    return s.add(Conv(), x, s.real(8, 3, 3, 4), s.real(8))


def factor_before_padded_conv(s: Sketch) -> Tensor:
    x = s.add(Binary("mul"), floats(s), s.real(1, 1, 1, 4))
    return s.add(Conv(pads=(1, 1, 1, 1)), x, s.real(8, 3, 3, 4), s.real(8))


def offset_before_padded_conv(s: Sketch) -> Tensor:
    x = s.add(Binary("add"), floats(s), s.real(1, 1, 1, 4))
    return s.add(Conv(pads=(1, 1, 1, 1)), x, s.real(8, 3, 3, 4), s.real(8))


def before_depthwise(s: Sketch) -> Tensor:
    x = s.add(Binary("add"), s.add(Binary("mul"), floats(s), s.real(4)), s.real(4))
    return s.add(DepthwiseConv(), x, s.real(1, 3, 3, 8), s.real(8))


def behind_a_clamp(s: Sketch) -> Tensor:
    return s.add(Binary("mul"), s.add(Conv(clamp=RELU6), floats(s), s.real(8, 3, 3, 4)), s.real(8))


def read_twice(s: Sketch) -> Tensor:
    x = s.add(Conv(), floats(s), s.real(4, 1, 1, 4))
    return s.add(Binary("add"), s.add(Binary("mul"), x, s.real(4)), x)


def along_another_axis(s: Sketch) -> Tensor:
    return s.add(Binary("mul"), s.add(Conv(), floats(s), s.real(5, 1, 1, 4)), s.real(5, 1))


def whole_numbers(s: Sketch) -> Tensor:
    x = s.add(Conv(), floats(s), s.constant(np.arange(32).reshape(8, 1, 1, 4)))
    return s.add(Binary("mul"), x, s.real(8))


def blocks(s: Sketch) -> Tensor:
    """64 outputs of 64 inputs: integers of four bits, a scale for each 32."""
    random = np.random.default_rng(5)
    steps, scales = (
        random.integers(-8, 8, (64, 2, 32)),
        random.uniform(0.01, 0.1, (64, 2, 1)).astype(np.float32),
    )
    return s.constant((steps.astype(np.float32) * scales).reshape(64, 64))


def factors_before_blocks(s: Sketch) -> Tensor:
    return s.add(Dense(), s.add(Binary("mul"), floats(s, 1, 64), s.real(64)), blocks(s))


def one_factor_before_blocks(s: Sketch) -> Tensor:
    return s.add(Dense(), s.add(Binary("mul"), floats(s, 1, 64), s.constant([0.5])), blocks(s))


@pytest.mark.parametrize(
    "make,left",
    [
        (factors_before_blocks, "Binary Dense"),
        (one_factor_before_blocks, "Dense"),
        (after_conv, "Conv"),
        (after_conv_without_bias, "Conv"),
        (after_depthwise, "DepthwiseConv"),
        (after_transposed, "ConvTranspose"),
        (after_dense, "Dense"),
        (before_conv, "Conv"),
        (factor_before_padded_conv, "Conv"),
        (offset_before_padded_conv, "Binary Conv"),
        (before_depthwise, "DepthwiseConv"),
        (behind_a_clamp, "Conv Binary"),
        (read_twice, "Conv Binary Binary"),
        (along_another_axis, "Conv Binary"),
        (whole_numbers, "Conv Binary"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_fold_scale(make: Make, left: str) -> None:
    check(make, fold_scale, left)


# --- fuse_pad ------------------------------------------------------------------------------------

AROUND = Pad((0, 1, 2, 0), (0, 2, 1, 0))


def pad_conv(s: Sketch) -> Tensor:
    return s.add(Conv(strides=(2, 2)), s.add(AROUND, floats(s)), s.real(8, 3, 3, 4), s.real(8))


def pad_int8_conv(s: Sketch) -> Tensor:
    x = s.add(AROUND, s.input((1, 6, 5, 4), DType.INT8, BYTES))
    return s.add(Conv(pads=(1, 0, 0, 1)), x, s.weights((8, 3, 3, 4)), s.bias(8), quant=BYTES)


def pad_depthwise(s: Sketch) -> Tensor:
    x = s.add(AROUND, s.input((1, 6, 5, 4), DType.INT8, BYTES))
    return s.add(DepthwiseConv(), x, s.weights((1, 3, 3, 4), axis=3), s.bias(4), quant=BYTES)


def pad_with_another_value(s: Sketch) -> Tensor:
    x = s.add(Pad((0, 1, 1, 0), (0, 1, 1, 0), 0.5), floats(s))
    return s.add(Conv(), x, s.real(8, 3, 3, 4))


def pad_of_channels(s: Sketch) -> Tensor:
    return s.add(Conv(), s.add(Pad((0, 0, 0, 1), (0, 0, 0, 1)), floats(s)), s.real(8, 3, 3, 6))


def pad_max_pool(s: Sketch) -> Tensor:
    return s.add(MaxPool((3, 3), (2, 2), (1, 1), (0, 0, 0, 0)), s.add(AROUND, floats(s)))


def pad_max_pool_behind_relu(s: Sketch) -> Tensor:
    x = s.add(AROUND, s.add(Clamp(0.0), floats(s)))
    return s.add(MaxPool((3, 3), (2, 2), (1, 1), (0, 0, 0, 0)), x)


def pad_average_pool(s: Sketch) -> Tensor:
    return s.add(AveragePool((3, 3), (2, 2), (1, 1), (0, 0, 0, 0)), s.add(AROUND, floats(s)))


def pad_conv_1d(s: Sketch) -> Tensor:
    x = s.add(Pad((0, 2, 0), (0, 1, 0)), floats(s, 1, 9, 4))
    return s.add(Conv(), s.add(Reshape((1, 1, 12, 4)), x), s.real(8, 1, 3, 4))


def pad_read_twice(s: Sketch) -> Tensor:
    x = s.add(AROUND, floats(s))
    y = s.add(Conv(), x, s.real(4, 1, 1, 4))
    return s.add(Binary("add"), y, s.add(Unary("exp"), x))


@pytest.mark.parametrize(
    "make,left",
    [
        (pad_conv, "Conv"),
        (pad_int8_conv, "Conv"),
        (pad_depthwise, "DepthwiseConv"),
        (pad_with_another_value, "Pad Conv"),
        (pad_of_channels, "Pad Conv"),
        (pad_max_pool, "Pad MaxPool"),
        (pad_max_pool_behind_relu, "Clamp MaxPool"),
        (pad_average_pool, "AveragePool"),
        (pad_conv_1d, "Reshape Conv"),
        (pad_read_twice, "Pad Conv Unary Binary"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_fuse_pad(make: Make, left: str) -> None:
    check(make, fuse_pad, left)


# --- remove_no_ops -------------------------------------------------------------------------------


def neutral(s: Sketch) -> Tensor:
    x = s.add(Binary("mul"), floats(s), s.constant(1))
    x = s.add(Binary("add"), s.constant(np.zeros((1, 1, 1, 4))), x)
    x = s.add(Binary("sub"), s.add(Binary("div"), x, s.constant([1])), s.constant(0))
    return s.add(Unary("exp"), s.add(Clamp(), s.add(Reshape((1, 6, 5, 4)), x)))


def not_neutral(s: Sketch) -> Tensor:
    x = s.add(Binary("sub"), s.constant(0), floats(s))
    x = s.add(Binary("mul", clamp=RELU6), x, s.constant(1))
    return s.add(Unary("exp"), s.add(Binary("add"), x, s.constant(np.zeros((2, 6, 5, 4)))))


def reshapes(s: Sketch) -> Tensor:
    x = s.add(Reshape((30, 4)), s.add(Reshape((4, 30)), floats(s)))
    return s.add(Unary("exp"), s.add(Reshape((2, 60)), x))


def same_parameters(s: Sketch) -> Tensor:
    x = s.add(Requantize(), s.input((4,), DType.INT8, BYTES), quant=BYTES)
    return s.add(Requantize(), x, quant=Quant.per_tensor(0.1, 3))


@pytest.mark.parametrize(
    "make,left",
    [
        (neutral, "Unary"),
        (not_neutral, "Binary Binary Binary Unary"),
        (reshapes, "Reshape Unary"),
        (same_parameters, "Requantize"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_remove_no_ops(make: Make, left: str) -> None:
    check(make, remove_no_ops, left)


# --- merge_common --------------------------------------------------------------------------------


def twice_the_same(s: Sketch) -> Tensor:
    x = floats(s)
    a, b = (s.add(Unary("exp"), s.add(Binary("mul"), x, s.constant(2))) for _ in range(2))
    return s.add(Binary("add"), a, b)


def different(s: Sketch) -> Tensor:
    x = floats(s)
    a, b = (s.add(Binary("mul"), x, s.constant(factor)) for factor in (2, 3))
    return s.add(Binary("add"), a, b)


@pytest.mark.parametrize(
    "make,left",
    [(twice_the_same, "Binary Unary Binary"), (different, "Binary Binary Binary")],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_merge_common(make: Make, left: str) -> None:
    check(make, merge_common, left)


def test_equal_outputs_stay_two() -> None:
    """Two outputs stay two tensors."""
    s = Sketch()
    x = floats(s)
    a, b = s.add(Unary("exp"), x), s.add(Unary("exp"), x)
    assert len(merge_common(s.graph(a, b)).nodes) == 2


# --- use_dilation --------------------------------------------------------------------------------


def space_to_batch(s: Sketch, x: Tensor, block: tuple[int, int]) -> Tensor:
    _, height, width, channels = x.shape
    bh, bw = block
    x = s.add(Reshape((1, height // bh, bh, width // bw, bw, channels)), x)
    x = s.add(Transpose((2, 4, 0, 1, 3, 5)), x)
    return s.add(Reshape((bh * bw, height // bh, width // bw, channels)), x)


def batch_to_space(s: Sketch, x: Tensor, block: tuple[int, int]) -> Tensor:
    _, height, width, channels = x.shape
    bh, bw = block
    x = s.add(Transpose((2, 3, 0, 4, 1, 5)), s.add(Reshape((bh, bw, 1, height, width, channels)), x))
    return s.add(Reshape((1, height * bh, width * bw, channels)), x)


def dilated(s: Sketch) -> Tensor:
    x = space_to_batch(s, floats(s, 1, 12, 12, 4), (2, 3))
    return batch_to_space(s, s.add(Conv(pads=(1, 0, 0, 1)), x, s.real(5, 3, 2, 4), s.real(5)), (2, 3))


def dilated_depthwise_int8(s: Sketch) -> Tensor:
    x = space_to_batch(s, s.input((1, 12, 8, 4), DType.INT8, BYTES), (2, 2))
    y = s.add(DepthwiseConv(), x, s.weights((1, 3, 3, 4), axis=3), s.bias(4), quant=BYTES)
    return batch_to_space(s, y, (2, 2))


def another_order(s: Sketch) -> Tensor:
    """Taken apart one way and put together another."""
    x = space_to_batch(s, floats(s, 1, 12, 12, 4), (2, 3))
    return batch_to_space(s, s.add(Conv(), x, s.real(5, 1, 1, 4)), (3, 2))


def batches(s: Sketch) -> Tensor:
    return s.add(Conv(), floats(s, 4, 6, 6, 3), s.real(5, 3, 3, 3))


@pytest.mark.parametrize(
    "make,left",
    [
        (dilated, "Reshape Conv Reshape"),
        (dilated_depthwise_int8, "Reshape DepthwiseConv Reshape"),
        (another_order, "Reshape Transpose Reshape Conv Reshape Transpose Reshape"),
        (batches, "Conv"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_use_dilation(make: Make, left: str) -> None:
    check(make, use_dilation, left)


def to_int16(s: Sketch) -> Tensor:
    x = s.add(Dequantize(), s.input((1, 6, 5, 4), quant=BYTES))
    return s.add(Quantize(DType.INT16, Quant.per_tensor(0.0003, 0)), x)


def to_bytes_and_back(s: Sketch) -> Tensor:
    """Requantising twice: what is between is never real. No value of these scales is a tie."""
    x = s.add(Dequantize(), s.add(Quantize(DType.INT16, Quant.per_tensor(0.000307, 0)), floats(s)))
    x = s.add(Dequantize(), s.add(Quantize(DType.INT8, BYTES), x))
    return s.add(Quantize(DType.INT16, Quant.per_tensor(0.0004, 0)), x)


def to_int32(s: Sketch) -> Tensor:
    x = s.add(Dequantize(), s.input((1, 6, 5, 4), quant=BYTES))
    return s.add(Quantize(DType.INT32, Quant.per_tensor(1e-9, 0)), x)


@pytest.mark.parametrize(
    "make,left",
    [
        (to_int16, "Requantize"),
        (to_bytes_and_back, "Quantize Requantize Requantize"),
        (to_int32, "Dequantize Quantize"),  # 32 bits have no room for it
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_integers_are_rescaled_to_integers(make: Make, left: str) -> None:
    check(make, fuse_qdq, left)


@pytest.mark.parametrize("first", DType, ids=lambda dtype: dtype.value)
def test_join_casts_to_and_from_every_type(first: DType) -> None:
    joined = set()
    for between in DType:
        for last in DType:
            sketch = Sketch()
            x = sketch.input((64,), first)
            output = sketch.add(Cast(last), sketch.add(Cast(between), x))
            graph = sketch.graph(output)
            after = join_casts(graph)
            sample = {x.name: sketch.sample()[x.name] * (300 if first.is_float else True)}
            before, now = interpret(graph, sample)[output.name], interpret(after, sample)[output.name]
            assert np.array_equal(before, now), (first, between, last)
            joined |= {between} if len(after.nodes) == 1 else set()
    assert first in joined


def test_what_a_pass_leaves_alone_is_not_verified_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def rebuilds(graph: Graph) -> Graph:
        return graph.with_nodes(graph.nodes)

    def notes(graph: Graph) -> Graph:
        return replace(graph, notes=("changed",))

    def renews(graph: Graph) -> Graph:
        return replace(graph, tensors={name: replace(tensor) for name, tensor in graph.tensors.items()})

    seen: list[str] = []
    monkeypatch.setattr(pipeline, "verify", lambda graph, after: seen.append(after))
    monkeypatch.setattr(pipeline, "PASSES", (rebuilds, notes, rebuilds, renews))
    s = Sketch()
    graph = s.graph(s.add(Clamp(low=0.0), floats(s)))
    assert pipeline.optimize(graph).notes == ("changed",)
    assert seen == ["import", "notes", "renews"]


def test_what_was_not_edited_is_the_same_graph() -> None:
    """And every edit, the smallest too, makes another one."""
    s = Sketch()
    x = floats(s)
    between = s.add(Clamp(low=0.0), x)
    graph = s.graph(s.add(Clamp(high=1.0), between))
    assert Editor(graph).graph() is graph

    def other_node(edit: Editor) -> None:
        edit.nodes = [*edit.nodes[:-1], replace(edit.nodes[-1])]

    def fewer_nodes(edit: Editor) -> None:
        edit.remove(edit.nodes[-1])

    def other_output(edit: Editor) -> None:
        edit.outputs = [between.name]

    def other_tensor(edit: Editor) -> None:
        edit.retype(between.name, replace(graph.tensors[between.name].type))

    def other_state(edit: Editor) -> None:
        edit.states = [State(x.name, between.name)]

    for change in (other_node, fewer_nodes, other_output, other_tensor, other_state):
        edit = Editor(graph)
        change(edit)
        assert edit.graph() is not graph, change.__name__

    unread = Tensor.constant("unread", np.zeros(1, np.float32))
    more = replace(graph, tensors={**graph.tensors, unread.name: unread})
    assert Editor(more).graph().tensors.keys() == graph.tensors.keys()


def test_the_first_value_of_a_state_is_a_part_of_it() -> None:
    s = Sketch()
    x = floats(s)
    y = s.add(Clamp(low=0.0), x)
    graph = s.graph(y)
    graph = replace(graph, inputs=(), states=(State(x.name, y.name),))
    edit = Editor(graph)
    edit.states = [replace(edit.states[0], initial=np.ones(x.shape, np.float32))]
    (state,) = edit.graph().states
    assert state.initial is not None
