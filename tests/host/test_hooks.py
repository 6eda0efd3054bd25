# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""An operator that passes have never heard of takes part in what its hooks offer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tests.support.sketch import Sketch
from tinyml.ir import Array, DType, Graph, Layer, Op, Tensor, TensorType, given
from tinyml.ir.hook_types import Affine, Border
from tinyml.ops.conv.conv import Conv
from tinyml.ops.elementwise.clamp import Clamp
from tinyml.ops.pad import Pad
from tinyml.ops.reshape import Reshape
from tinyml.ops.shared.clamped import Clamped
from tinyml.passes.fold_scale import fold_scale
from tinyml.passes.fuse_activation import fuse_activation
from tinyml.passes.fuse_pad import fuse_pad
from tinyml.passes.sink_reshape import sink_reshape


@dataclass(frozen=True)
class Doubled(Clamped):
    """From outside the package: twice its input, within limits, and whatever is around it."""

    elementwise: ClassVar[bool] = True
    border: Border | None = None

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x = given(inputs, 0)
        if self.border is None:
            return (x.type,)
        n, h, w, channels = x.shape
        widths = [a + b for a, b in zip(self.border.before, self.border.after, strict=True)]
        return (TensorType((n, h + widths[0], w + widths[1], channels), x.dtype),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        return (np.clip(2 * given(inputs, 0), *self.clamp),)

    def bordered(self, x: Tensor, border: Border) -> Op | None:
        return Doubled(border=border)

    def affine(self, layer: Layer) -> Affine | None:
        channels = layer.output.shape[-1]
        return Affine(0, np.full(channels, 2.0), np.zeros(channels))


def kinds(graph: Graph) -> str:
    return " ".join(node.op.kind for node in graph.nodes)


def test_an_activation_becomes_part_of_it() -> None:
    s = Sketch(0)
    graph = fuse_activation(s.graph(s.add(Clamp(0, 6), s.add(Doubled(), s.input((1, 4))))))
    assert kinds(graph) == "Doubled"
    assert graph.nodes[0].op.limits == (0, 6)


def test_a_border_becomes_part_of_it() -> None:
    s = Sketch(0)
    x = s.add(Clamp(0, 6), s.input((1, 4, 4, 2)))
    x = s.add(Pad((0, 1, 2, 0), (0, 3, 4, 0)), x)
    graph = fuse_pad(s.graph(s.add(Doubled(), x)))
    assert kinds(graph) == "Clamp Doubled"
    assert graph.nodes[1].op == Doubled(border=Border((1, 2), (3, 4), not_negative=True))


def test_a_reshape_moves_past_it() -> None:
    s = Sketch(0)
    graph = sink_reshape(s.graph(s.add(Doubled(), s.add(Reshape((4,)), s.input((2, 2))))))
    assert kinds(graph) == "Doubled Reshape"


def test_its_factor_moves_into_weights() -> None:
    s = Sketch(0)
    x, weights = s.input((1, 4, 4, 2), DType.FLOAT32), s.real(3, 1, 1, 2)
    graph = fold_scale(s.graph(s.add(Doubled(), s.add(Conv(), x, weights))))
    assert kinds(graph) == "Conv"
    (scaled,) = (t.value for t in graph.tensors.values() if t.is_constant)
    np.testing.assert_array_equal(scaled, 2 * weights.value)
