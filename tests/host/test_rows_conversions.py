# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""``io: rows`` where layers prepare the input first: other scales, casts, normalisation, a logarithm."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from tests.host.test_rows import check, compiled
from tests.support.batch import Item
from tests.support.sketch import Sketch
from tinyml.base.errors import UnsupportedError
from tinyml.ir import DType, Quant, Tensor
from tinyml.ops.conv.conv import Conv
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.elementwise.cast import Cast
from tinyml.ops.elementwise.channel_lookup import ChannelLookup
from tinyml.ops.elementwise.clamp import Clamp
from tinyml.ops.elementwise.unary import Unary
from tinyml.ops.quantization.quantize import Quantize
from tinyml.ops.quantization.requantize import Requantize
from tinyml.ops.transpose import Transpose

QUANT = Quant.per_tensor(0.04, -5)
OTHER = Quant.per_tensor(0.02, 3)

Prepare = Callable[[Sketch, Tensor], Tensor]


def quantised(sketch: Sketch, x: Tensor) -> Tensor:
    return sketch.add(Quantize(DType.INT8, QUANT), x)


def normalised(sketch: Sketch, x: Tensor) -> Tensor:
    """As torchvision's Normalize: a mean and a factor for each channel, which the axis 1 of NCHW has."""
    along = (1, 3, 1, 1) if x.shape[1] == 3 else (3,)
    y = sketch.add(Binary("div"), x, sketch.constant(np.float32(64)))
    y = sketch.add(Binary("sub"), y, sketch.constant(np.array([0.4, 0.5, 0.6]).reshape(along)))
    return quantised(
        sketch, sketch.add(Binary("mul"), y, sketch.constant(np.array([2, 3, 4]).reshape(along)))
    )


def tables(sketch: Sketch, x: Tensor) -> Tensor:
    """One for each channel, from bytes of a camera to int8."""
    found = tuple(tuple(int(entry) for entry in sketch.rng.integers(0, 256, 256)) for _ in range(3))
    return sketch.add(ChannelLookup(len(x.shape) - 1, found), x, quant=QUANT, dtype=DType.INT8)


def logarithm(sketch: Sketch, x: Tensor) -> Tensor:
    y = sketch.add(Unary("abs"), x)
    y = sketch.add(Binary("add"), y, sketch.constant(np.float32(1)))
    return quantised(sketch, sketch.add(Unary("log"), y))


PREPARED: Sequence[tuple[str, DType, Quant | None, Prepare]] = (
    ("requantize", DType.INT8, OTHER, lambda s, x: s.add(Requantize(), x, quant=QUANT)),
    ("requantize_once", DType.INT8, OTHER, lambda s, x: s.add(Requantize(True), x, quant=QUANT)),
    ("two_scales", DType.FLOAT32, None, lambda s, x: s.add(
        Requantize(True), s.add(Quantize(DType.INT8, OTHER), x), quant=QUANT
    )),
    ("bytes", DType.UINT8, Quant.per_tensor(0.02, 128), lambda s, x: s.add(
        Requantize(), x, quant=QUANT, dtype=DType.INT8
    )),
    ("cast", DType.INT16, None, lambda s, x: normalised(s, s.add(Cast(DType.FLOAT32), x))),
    ("normalise", DType.FLOAT32, None, normalised),
    ("limits", DType.FLOAT32, None, lambda s, x: quantised(s, s.add(Clamp(-1.0, 0.5), x))),
    ("logarithm", DType.FLOAT32, None, logarithm),
)  # fmt: skip


@pytest.mark.parametrize("extents", [(20, 6), (1, 40)])
def test_numbers(extents: tuple[int, int]) -> None:
    """With channels last, and with channels first, where what is done moves after the transposition."""
    items = []
    for number, (name, dtype, quant, prepare) in enumerate(PREPARED):
        for first in (False, True):
            sketch = Sketch(number)
            x = sketch.input((1, 3, *extents) if first else (1, *extents, 3), dtype, quant)
            y = prepare(sketch, x)
            y = sketch.add(Transpose((0, 2, 3, 1)), y) if first else y
            kernel = 3 if extents[0] > 1 else 1
            weights = sketch.weights((8, kernel, 3, 3))
            y = sketch.add(Conv((1, 2), pads=(0, 1, 0, 1)), y, weights, sketch.bias(8), quant=QUANT)
            graph, title = sketch.graph(y), f"{name}_{int(first)}"
            made = compiled(graph, title, optimize=("balanced", "ram")[number % 2])
            chain = made.selected[int(first)].layer
            assert chain.op.label().startswith("arrival_")
            assert chain.op.label().endswith("_conv")
            assert ("axes" in made.summary["rows"]) is first
            items.append((Item(title, made.files, [sketch.sample() for _ in range(2)]), graph))
    check(items)


def test_a_table_for_each_channel() -> None:
    sketch = Sketch(3)
    x = sketch.input((1, 20, 6, 3), DType.UINT8)
    y = sketch.add(Conv((2, 2)), tables(sketch, x), sketch.weights((8, 3, 3, 3)), sketch.bias(8), quant=QUANT)
    made = compiled(graph := sketch.graph(y), "tables")
    assert made.selected[0].layer.op.label() == "arrival_normalize_conv"
    check([(Item("tables", made.files, [sketch.sample() for _ in range(2)]), graph)])


def float_conv(sketch: Sketch, x: Tensor) -> Tensor:
    return sketch.add(Conv(), x, sketch.real(4, 3, 3, 3), sketch.real(4))


def test_the_arena_has_no_converted_input() -> None:
    """A float model that normalises the bytes of a camera: neither they nor the floats are in memory."""
    sketch = Sketch(1)
    x = sketch.input((1, 40, 20, 3), DType.UINT8)
    y = sketch.add(Cast(DType.FLOAT32), x)
    y = sketch.add(Binary("mul"), y, sketch.constant(np.float32(1 / 255)))
    y = sketch.add(Conv((4, 4)), y, sketch.real(4, 3, 3, 3), sketch.real(4))
    made = compiled(graph := sketch.graph(y), "camera")
    assert made.plan.arena_bytes < 40 * 20 * 3 * 2
    check([(Item("camera", made.files, [sketch.sample()]), graph)], exact=False)


def test_constants_that_belong_to_rows() -> None:
    """A band would have to know which of them are its own."""
    sketch = Sketch(1)
    x = sketch.input((1, 12, 12, 3), DType.FLOAT32)
    y = sketch.add(Binary("mul"), x, sketch.constant(np.linspace(1, 2, 12).reshape(12, 1, 1)))
    with pytest.raises(UnsupportedError, match="Binary 'Binary0' needs all of it"):
        compiled(sketch.graph(float_conv(sketch, y)))


def test_values_for_each_place_do_not_follow_a_transposition() -> None:
    sketch = Sketch(1)
    x = sketch.input((1, 3, 12, 12), DType.FLOAT32)
    y = sketch.add(Binary("mul"), x, sketch.constant(np.linspace(1, 2, 144).reshape(12, 12)))
    y = sketch.add(Transpose((0, 2, 3, 1)), y)
    with pytest.raises(UnsupportedError, match="Transpose 'Transpose1' needs all of it, and cannot"):
        compiled(sketch.graph(float_conv(sketch, y)))


@pytest.mark.parametrize("first", [False, True])
def test_rows_that_no_window_reads(first: bool) -> None:
    """They are prepared as the others are; nothing cuts them off behind a conversion or a transposition."""
    sketch = Sketch(4)
    x = sketch.input((1, 3, 1, 41) if first else (1, 1, 41, 3), DType.FLOAT32)
    y = quantised(sketch, x)
    y = sketch.add(Transpose((0, 2, 3, 1)), y) if first else y
    y = sketch.add(Conv((1, 4)), y, sketch.weights((8, 1, 3, 3)), sketch.bias(8), quant=QUANT)
    made = compiled(graph := sketch.graph(y), "unread")
    assert made.summary["rows"]["count"] == 41
    check([(Item("unread", made.files, [sketch.sample()]), graph)])
