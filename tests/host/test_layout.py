# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Transposes cancel, reshapes move away, and all results stay the same."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.support.interpret import interpret
from tests.support.sketch import Sketch, kinds
from tinyml.ir import DType, Tensor
from tinyml.ops.concat import Concat
from tinyml.ops.conv.conv import Conv
from tinyml.ops.dense.dense import Dense
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.elementwise.clamp import Clamp
from tinyml.ops.elementwise.unary import Unary
from tinyml.ops.reduce.reduce import Reduce
from tinyml.ops.reshape import Reshape
from tinyml.ops.softmax.softmax import Softmax
from tinyml.ops.transpose import Transpose
from tinyml.passes import Pass
from tinyml.passes._reshape_axes import carried, groups
from tinyml.passes.cancel_transposes import cancel_transposes
from tinyml.passes.fold_transpose_into_dense import fold_transpose_into_dense
from tinyml.passes.reshape_still_transposes import reshape_still_transposes
from tinyml.passes.sink_reshape import sink_reshape
from tinyml.verify import verify

Make = Callable[[Sketch], Tensor]
TO_LAST, TO_FIRST = Transpose((0, 2, 3, 1)), Transpose((0, 3, 1, 2))


def check(make: Make, step: Pass, left: str) -> None:
    sketch = Sketch(5)
    output = make(sketch)
    graph = sketch.graph(output)
    after = step(graph)
    verify(after, step.__name__)
    assert kinds(after) == left.split()
    sample = sketch.sample()
    before, now = interpret(graph, sample)[output.name], interpret(after, sample)[output.name]
    np.testing.assert_allclose(now, before, rtol=1e-5, atol=1e-6)


def nchw(s: Sketch, *shape: int) -> Tensor:
    return s.input(shape or (1, 3, 6, 5), DType.FLOAT32)


def conv(s: Sketch, x: Tensor, outs: int = 3) -> Tensor:
    """As the ONNX reader writes it: between two transposes."""
    inner = s.add(Conv(), s.add(TO_LAST, x), s.real(outs, 1, 1, x.shape[1]))
    return s.add(TO_FIRST, inner)


def two_convs(s: Sketch) -> Tensor:
    return conv(s, s.add(Clamp(0.0), conv(s, nchw(s))))


def residual(s: Sketch) -> Tensor:
    x = conv(s, nchw(s))
    return conv(s, s.add(Binary("add"), conv(s, x), x))


def joined(s: Sketch) -> Tensor:
    x = conv(s, nchw(s))
    return conv(s, s.add(Concat(1), conv(s, x, 4), x))


def scaled(s: Sketch) -> Tensor:
    """A constant per channel, as batch normalisation has it."""
    return conv(s, s.add(Binary("mul"), conv(s, nchw(s)), s.real(3, 1, 1)))


def squeeze_and_excite(s: Sketch) -> Tensor:
    """One operand is not transposed, but as small as one pixel."""
    x = conv(s, nchw(s))
    pooled = s.add(Reduce("mean", (2, 3)), x)
    return conv(s, s.add(Binary("mul"), s.add(Unary("sigmoid"), pooled), x))


def gate_from_outside(s: Sketch) -> Tensor:
    x = conv(s, nchw(s))
    return conv(s, s.add(Binary("mul"), x, s.input((1, 3, 1, 1), DType.FLOAT32)))


def to_tokens(s: Sketch) -> Tensor:
    """An image as a sequence of pixels: NCHW, flattened, transposed; no work in NHWC."""
    x = s.add(Reshape((1, 3, 30)), conv(s, nchw(s)))
    return s.add(Softmax(2), s.add(Transpose((0, 2, 1)), x))


def from_tokens(s: Sketch) -> Tensor:
    x = s.add(Transpose((0, 2, 1)), s.input((1, 30, 3), DType.FLOAT32))
    return conv(s, s.add(Reshape((1, 3, 6, 5)), x))


def torn_apart(s: Sketch) -> Tensor:
    """Channels and rows joined: the transpose has to be done."""
    return s.add(Reshape((18, 5)), s.add(TO_FIRST, s.input((1, 6, 5, 3), DType.FLOAT32)))


@pytest.mark.parametrize(
    "make,left",
    [
        (two_convs, "Transpose Conv Clamp Conv Transpose"),
        (residual, "Transpose Conv Conv Binary Conv Transpose"),
        (joined, "Transpose Conv Conv Concat Conv Transpose"),
        (scaled, "Transpose Conv Binary Conv Transpose"),
        (squeeze_and_excite, "Transpose Conv Reduce Unary Binary Conv Transpose"),
        (gate_from_outside, "Transpose Conv Transpose Binary Conv Transpose"),
        (to_tokens, "Transpose Conv Reshape Softmax"),
        (from_tokens, "Reshape Conv Transpose"),
        (torn_apart, "Transpose Reshape"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_transposes_cancel(make: Make, left: str) -> None:
    check(make, cancel_transposes, left)


@pytest.mark.parametrize(
    "old,new,expected",
    [
        ((2, 3, 4), (6, 4), [([0, 1], [0]), ([2], [1])]),
        ((6, 4), (2, 3, 4), [([0], [0, 1]), ([1], [2])]),
        ((1, 6, 1), (6,), [([1], [0])]),
        ((4, 6), (8, 3), [([0, 1], [0, 1])]),
        ((1, 1), (1,), []),
    ],
)
def test_groups_of_a_reshape(old: tuple[int, ...], new: tuple[int, ...], expected: object) -> None:
    assert groups(old, new) == expected


def test_reshape_and_transpose_change_places_exactly() -> None:
    """Every permutation of a shape, followed by reshapes of all kinds."""
    x = np.arange(2 * 3 * 4 * 1).reshape(2, 3, 4, 1)
    moved = 0
    for perm in ((0, 1, 2, 3), (2, 0, 1, 3), (1, 2, 0, 3), (3, 2, 1, 0), (0, 2, 1, 3), (1, 3, 0, 2)):
        turned = np.transpose(x, perm)
        for shape in ((24,), (2, 12), (4, 6), (6, 4), (1, 3, 8), (2, 3, 2, 2), (3, 2, 4), (12, 1, 2)):
            found = carried(x.shape, perm, shape)
            if found is not None:
                moved += 1
                assert np.array_equal(np.transpose(x.reshape(found[0]), found[1]), turned.reshape(shape))
    assert moved > 10


# --- sink_reshape --------------------------------------------------------------------------------


def conv_1d(s: Sketch) -> Tensor:
    x = s.add(Conv(), s.input((1, 1, 9, 4), DType.FLOAT32), s.real(8, 1, 3, 4))
    x = s.add(Binary("mul"), s.add(Reshape((1, 7, 8)), x), s.real(8))
    return s.add(Clamp(0.0), s.add(Binary("add"), x, s.constant(2)))


def both_sides(s: Sketch) -> Tensor:
    a, b = (s.add(Reshape((1, 7, 8)), s.input((1, 1, 7, 8), DType.FLOAT32)) for _ in range(2))
    return s.add(Binary("add"), a, b)


def broadcast(s: Sketch) -> Tensor:
    """Along an axis that the reshape makes: stays as it is."""
    return s.add(Binary("add"), s.add(Reshape((7, 8)), s.input((56,), DType.FLOAT32)), s.real(7, 1))


@pytest.mark.parametrize(
    "make,left",
    [
        (conv_1d, "Conv Binary Binary Clamp Reshape"),
        (both_sides, "Binary Reshape"),
        (broadcast, "Reshape Binary"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_reshapes_sink(make: Make, left: str) -> None:
    check(make, sink_reshape, left)


# --- the rest ------------------------------------------------------------------------------------


def still(s: Sketch) -> Tensor:
    return s.add(Unary("exp"), s.add(TO_FIRST, s.input((1, 1, 1, 8), DType.FLOAT32)))


def test_transposes_of_single_elements_are_reshapes() -> None:
    check(still, reshape_still_transposes, "Reshape Unary")


def flattened(s: Sketch) -> Tensor:
    x = s.add(TO_FIRST, s.input((1, 6, 5, 3), DType.FLOAT32))
    return s.add(Dense(), s.add(Reshape((1, 90)), x), s.real(4, 90), s.real(4))


def unflattened(s: Sketch) -> Tensor:
    x = s.add(Dense(), s.input((1, 7), DType.FLOAT32), s.real(90, 7), s.real(90))
    return s.add(TO_LAST, s.add(Reshape((1, 3, 6, 5)), x))


@pytest.mark.parametrize(
    "make,left", [(flattened, "Reshape Dense"), (unflattened, "Dense Reshape")], ids=["before", "after"]
)
def test_dense_layers_take_transposes(make: Make, left: str) -> None:
    check(make, fold_transpose_into_dense, left)
