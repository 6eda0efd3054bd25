# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The scales and zero points of ONNX's QuantizeLinear and DequantizeLinear."""

from __future__ import annotations

import numpy as np

from tinyml.base.errors import ModelError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Quant, Shape, Tensor
from tinyml.ops.framework.reading import MALFORMED, Builder, OnnxNode
from tinyml.ops.reshape import with_quant
from tinyml.ops.shared.axis import from_front

SMALL = 15
"""The largest distance of a weight of four bits from its zero point."""


@dataclass(frozen=True)
class Parameters:
    """Scale and zero point (absent: 0) of a tensor, and how they are spread over it."""

    scale: Tensor
    zero_point: Tensor | None
    axis: int
    block: int = 0  # elements along the axis that share a scale; 0: all

    @property
    def per_tensor(self) -> bool:
        return self.scale.elements == 1

    @property
    def per_channel(self) -> bool:
        return not self.per_tensor and len(self.scale.shape) == 1 and not self.block

    @property
    def known(self) -> bool:
        return self.scale.is_constant and (self.zero_point is None or self.zero_point.is_constant)

    def quant(self) -> Quant:
        """As constants, per tensor or per slice of the axis."""
        scales = self.scale.value.astype(np.float32).reshape(-1)
        zeros = np.zeros(1, np.int64) if self.zero_point is None else self.zero_point.value.reshape(-1)
        zeros = np.broadcast_to(zeros.astype(np.int64), scales.shape)
        axis = None if self.per_tensor else self.axis
        return Quant(tuple(float(s) for s in scales), tuple(int(z) for z in zeros), axis)

    def real(self, stored: Array) -> Array:
        """What stored integers with a scale for each block mean; the last block may be shorter."""
        scale = self._repeated(self.scale.value, stored.shape)
        centred = stored.astype(np.int64)
        if self.zero_point is not None:
            centred = centred - self._repeated(self.zero_point.value.astype(np.int64), stored.shape)
        real: Array = centred.astype(scale.dtype) * scale
        return real

    def _repeated(self, values: Array, shape: Shape) -> Array:
        every = np.repeat(values, self.block, axis=self.axis)
        return np.take(every, range(shape[self.axis]), axis=self.axis)

    def stored(self, build: Builder, x: Tensor, quant: Quant) -> Tensor:
        """A constant with its quantisation; small integers lose their zero points.

        Four bits with a zero point are integers from -15 to 15 without one, which every kernel supports.
        """
        if x.dtype not in (DType.INT8, DType.UINT8) or not any(quant.zero_points):
            return with_quant(build, x, quant)
        shape = [1] * len(x.shape)
        if quant.axis is not None:
            shape[quant.axis] = -1
            if x.shape[quant.axis] != len(quant.zero_points):
                return with_quant(build, x, quant)  # is refused
        centred = x.value.astype(np.int64) - np.asarray(quant.zero_points).reshape(shape)
        if np.abs(centred).max(initial=0) > SMALL:
            return with_quant(build, x, quant)
        centred_quant = Quant(quant.scales, (0,) * len(quant.scales), quant.axis)
        return build.constant(centred.astype(np.int8), f"{x.name}/centred", centred_quant)


def parameters(node: OnnxNode, build: Builder) -> Parameters:
    """As the attributes state them. A single scale has no axis, so there ONNX allows any number."""
    x, scale, zero = node.input(0), node.input(1), node.optional(2)
    block = int(node.attr("block_size", 0))
    axis = 0 if scale.elements == 1 else from_front(node.attr("axis", 1), len(x.shape))
    given = Parameters(scale, zero, axis, block)
    if given.per_tensor or given.per_channel:
        return Parameters(scale, zero, axis)
    return _blocked(node, build, x.shape, given)


def _blocked(node: OnnxNode, build: Builder, shape: Shape, given: Parameters) -> Parameters:
    scale, zero, axis, what = given.scale, given.zero_point, given.axis, f"{node.op_type} {node.name!r}"
    if given.block < 0:
        raise ModelError(f"{what} has blocks of {given.block} elements", MALFORMED)
    fits = len(scale.shape) == len(shape) and all(
        extent == whole for i, (extent, whole) in enumerate(zip(scale.shape, shape, strict=True)) if i != axis
    )
    if not fits or scale.shape[axis] == 0:
        raise ModelError(
            f"{what} has scales of shape {scale.shape} for a tensor of shape {shape}",
            f"in blocks along axis {axis}, all other extents must be equal",
        )
    if zero is not None and zero.shape != scale.shape:
        shapes = f"scales of shape {scale.shape} and zero points of shape {zero.shape}"
        raise ModelError(f"{what} has {shapes}", MALFORMED)
    block = given.block or -(-shape[axis] // scale.shape[axis])
    blocks = -(-shape[axis] // block)
    if blocks != scale.shape[axis]:
        raise ModelError(
            f"{what} has {scale.shape[axis]} scales along axis {axis}; "
            f"{shape[axis]} elements in blocks of {block} need {blocks}",
            MALFORMED,
        )
    if scale.is_constant and not (np.isfinite(scale.value).all() and (scale.value > 0).all()):
        raise ModelError(f"{what} has a scale that is not a positive number", MALFORMED)
    wide = [i for i, extent in enumerate(shape) if i != axis and extent > 1]
    if blocks == 1 and len(wide) == 1 and given.known:  # a scale for each channel, written as blocks
        flat = [None if t is None else build.constant(t.value.reshape(-1), t.name) for t in (scale, zero)]
        assert flat[0] is not None
        return Parameters(flat[0], flat[1], wide[0])
    return Parameters(scale, zero, axis, block)
