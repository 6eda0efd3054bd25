# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""ConvTranspose: every input element spreads a filter over the output. Channels last, any rank.

Weights are (out, *kernel, in / groups), like those of Conv.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, Constraint, Layer, Tensor, TensorType, given
from tinyml.ops.shared.operands import not_empty, numbers_from, present
from tinyml.ops.weighted.weighted import Weighted


def spatial_axes(layer: Layer[ConvTranspose]) -> bool:
    """Input and weights have the axes of the window, one axis before them and one after."""
    op = layer.op
    ranks = {len(part) for part in (op.strides, op.dilations, op.pads, op.outputs)}
    return ranks == {len(layer.input(0).shape) - 2} == {len(layer.input(1).shape) - 2}


def transposed_groups(layer: Layer[ConvTranspose]) -> bool:
    """The number of groups must divide the output channels, and groups x weight channels must equal the input
    channels."""
    groups, w = layer.op.groups, layer.input(1).shape
    return groups >= 1 and w[0] % groups == 0 and groups * w[-1] == layer.input(0).shape[-1]


@dataclass(frozen=True)
class ConvTranspose(Weighted):
    """Output element o gets x[i] * w[k] for all i, k with o = i * stride + k * dilation - pad."""

    operands: ClassVar[tuple[Constraint, ...]] = (
        present(2),
        spatial_axes,
        *Weighted.operands,
        not_empty(0),
        numbers_from(1, "strides", "dilations", "outputs"),
        transposed_groups,
    )
    strides: tuple[int, ...] = (1, 1)
    dilations: tuple[int, ...] = (1, 1)
    pads: tuple[int, ...] = (0, 0)  # before each spatial axis
    outputs: tuple[int, ...] = (1, 1)  # spatial extents of the output
    groups: int = 1

    @property
    def channel_axis(self) -> int:
        return 0

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x, w = given(inputs, 0), given(inputs, 1)
        return (TensorType((x.shape[0], *self.outputs, w.shape[0]), x.dtype),)

    def accumulate(self, x: Array, weights: Array) -> Array:
        sizes, kernel = x.shape[1:-1], weights.shape[1:-1]
        full = [
            max((i - 1) * s + (k - 1) * d + 1, o + p)
            for i, s, k, d, o, p in zip(
                sizes, self.strides, kernel, self.dilations, self.outputs, self.pads, strict=True
            )
        ]
        outs, ins = weights.shape[0] // self.groups, weights.shape[-1]
        acc = np.zeros((x.shape[0], *full, weights.shape[0]), np.result_type(x, weights))
        for tap in np.ndindex(*kernel):
            spots = tuple(
                slice(k * d, k * d + (i - 1) * s + 1, s)
                for k, d, i, s in zip(tap, self.dilations, sizes, self.strides, strict=True)
            )
            for g in range(self.groups):
                own = slice(g * outs, (g + 1) * outs)
                filters, target = (own, *tap), (slice(None), *spots, own)
                acc[target] += x[..., g * ins : (g + 1) * ins] @ weights[filters].T
        middle = (slice(p, p + o) for p, o in zip(self.pads, self.outputs, strict=True))
        cut = (slice(None), *middle)
        return acc[cut]

    def macs(self, layer: Layer) -> int:
        w = layer.input(1)
        positions = layer.input(0).elements // layer.input(0).shape[-1]
        return positions * w.elements
