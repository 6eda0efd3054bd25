# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Quant, BipolarQuant and Trunc of QONNX (Brevitas, FINN, hls4ml): quantise and dequantise, any bit width.

Up to 8 bits they become Quantize and Dequantize, with a clamp to the values of the bit width, so that layers
between them compute on integers. Wider ones, and those with a scale per channel of an activation, are
arithmetic on floats.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tinyml.base.errors import UnsupportedError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Quant, Shape, Tensor
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.elementwise.clamp import Clamp
from tinyml.ops.elementwise.unary import Unary
from tinyml.ops.elementwise.where import Where
from tinyml.ops.framework.fixed_point import round_half_away
from tinyml.ops.framework.reading import Builder, OnnxNode, OnnxReader, onnx_op
from tinyml.ops.quantization.quantize import Dequantize, Quantize

DOMAINS = ("qonnx.custom_op.general", "finn.custom_op.general", "onnx.brevitas")
MOST_BITS = 8  # of integers that kernels compute on

ROUNDINGS: dict[str, tuple[Callable[[Array], Array], str]] = {
    "ROUND": (np.rint, "round"),
    "HALF_EVEN": (np.rint, "round"),
    "CEIL": (np.ceil, "ceil"),
    "FLOOR": (np.floor, "floor"),
    "UP": (lambda x: np.copysign(np.ceil(np.abs(x)), x), ""),
    "DOWN": (np.trunc, ""),
    "ROUND_TO_ZERO": (np.trunc, ""),
    "HALF_UP": (round_half_away, ""),
    "HALF_DOWN": (lambda x: np.copysign(np.ceil(np.abs(x) - 0.5), x), ""),
}
"""In numpy, for constants; and as an operator, for activations."""


@dataclass(frozen=True)
class Grid:
    """The values that a quantiser can give: scale * (n - zero) for all integers n from low to high."""

    scale: Array
    zero: Array
    low: int
    high: int
    rounding: str

    @property
    def fits_bytes(self) -> bool:
        return self.high - self.low < 1 << MOST_BITS and self.low >= -128 and self.high <= 255

    @property
    def dtype(self) -> DType:
        return DType.INT8 if self.high <= 127 else DType.UINT8

    def quant(self, axis: int | None) -> Quant:
        scales = self.scale.reshape(-1)
        zeros = np.broadcast_to(self.zero.reshape(-1), scales.shape)
        return Quant(tuple(float(s) for s in scales), tuple(int(z) for z in zeros), axis)

    def integers(self, x: Array) -> Array:
        steps = np.clip(x / self.scale + self.zero, self.low, self.high)
        return ROUNDINGS[self.rounding][0](steps)


def _limits(bits: int, signed: bool, narrow: bool) -> tuple[int, int]:
    if signed:
        return -(1 << bits - 1) + narrow, (1 << bits - 1) - 1
    return 0, (1 << bits) - 1 - narrow


def _bits(node: OnnxNode, index: int) -> int:
    values = node.const(index).reshape(-1)
    bits = float(values[0]) if values.size == 1 else 0.0
    if bits != int(bits) or not 1 <= bits <= 32:
        raise UnsupportedError(
            f"{node.op_type} node {node.name!r} has {bits:g} bits", "1 to 32, a whole number"
        )
    return int(bits)


def _rounding(node: OnnxNode, default: str) -> str:
    mode = str(node.attr("rounding_mode", default)).upper()
    if mode not in ROUNDINGS:
        raise UnsupportedError(f"{node.op_type} node {node.name!r} rounds {mode!r}", ", ".join(ROUNDINGS))
    return mode


def _scale(node: OnnxNode, index: int = 1) -> Array:
    scale = node.const(index).astype(np.float32)
    if not scale.size or not (scale > 0).all() or not np.isfinite(scale).all():
        raise UnsupportedError(f"{node.op_type} node {node.name!r} has a scale that is not positive")
    return scale


def _zero(node: OnnxNode, index: int = 2) -> Array:
    zero = node.const(index).astype(np.float32)
    if (zero != np.rint(zero)).any():
        raise UnsupportedError(f"{node.op_type} node {node.name!r} has a zero point that is no integer")
    return zero


def _qonnx(*names: str) -> Callable[[OnnxReader], OnnxReader]:
    """Register a reader in all domains that tools use."""

    def register(reader: OnnxReader) -> OnnxReader:
        for domain in DOMAINS:
            onnx_op(*names, domain=domain)(reader)
        return reader

    return register


@_qonnx("Quant", "IntQuant")
def read_quant(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    x, bits, signed = node.input(0), _bits(node, 3), bool(node.attr("signed", 1))
    scale = _scale(node)
    if bits == 1 and signed:
        return [bipolar(build, x, scale)]
    low, high = _limits(bits, signed, bool(node.attr("narrow", 0)))
    return [on_grid(build, node, x, Grid(scale, _zero(node), low, high, _rounding(node, "ROUND")))]


@_qonnx("BipolarQuant")
def read_bipolar(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    return [bipolar(build, node.input(0), _scale(node))]


@_qonnx("Trunc")
def read_trunc(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    """Integers of the input, divided by a power of two and rounded down (after an average in integers).

    Version 1 has the bits before and after, version 2 the scale after as well, and clamps.
    """
    x, scale, zero = node.input(0), _scale(node), _zero(node)
    if len(node.inputs) > 5:
        out_scale, bits = _scale(node, 4), _bits(node, 6)
        factor = np.exp2(np.rint(np.log2(out_scale / scale))).astype(np.float32)
        low, high = _limits(bits, bool(node.attr("signed", 1)), bool(node.attr("narrow", 0)))
    else:
        bits = _bits(node, 4)
        out_scale, factor = scale, np.float32(2.0 ** (_bits(node, 3) - bits))
        low, high = _limits(max(bits, 2), True, False)[0], _limits(bits, False, False)[1]
    if any(values.size != 1 for values in (scale, zero, out_scale)):
        raise UnsupportedError(f"Trunc node {node.name!r} has a scale for each channel", "one scale")
    if zero.any():
        raise UnsupportedError(f"Trunc node {node.name!r} has a zero point", "0")
    steps = _round(build, node, _scaled(build, "div", x, scale), "ROUND")
    less = _round(build, node, _scaled(build, "div", steps, factor), _rounding(node, "FLOOR"))
    if len(node.inputs) > 5:
        less = build.add1(Clamp(float(low), float(high)), [less])
    real = _scaled(build, "mul", less, out_scale)
    grid = Grid(out_scale, zero, low, high, "ROUND")
    if len(node.inputs) > 5 and grid.fits_bytes:
        return [_in_bytes(build, real, grid)]
    return [real]


def bipolar(build: Builder, x: Tensor, scale: Array) -> Tensor:
    """scale where x is not negative, -scale elsewhere."""
    if x.is_constant:
        values = np.where(x.value >= 0, 1, -1).astype(np.int8)
        return _stored(build, values, Grid(scale, np.zeros(1, np.float32), -1, 1, "ROUND"))
    truth = build.add1(Binary("greater_equal"), [x, build.constant(np.zeros((), np.float32))])
    one = scale.reshape(()) if scale.size == 1 else scale
    y = build.add1(Where(), [truth, build.constant(one), build.constant(-one)])
    if scale.size > 1:
        return y
    return _in_bytes(build, y, Grid(scale, np.zeros(1, np.float32), -1, 1, "ROUND"))


def on_grid(build: Builder, node: OnnxNode, x: Tensor, grid: Grid) -> Tensor:
    if x.is_constant:
        values = grid.integers(x.value)
        if grid.fits_bytes and (grid.scale.size == 1 or _axis(grid.scale.shape, values.shape) is not None):
            return _stored(build, values.astype(grid.dtype.numpy), grid)
        return build.constant(((values - grid.zero) * grid.scale).astype(np.float32), f"{x.name}/quantised")
    if grid.fits_bytes and grid.scale.size == grid.zero.size == 1 and ROUNDINGS[grid.rounding][1] == "round":
        low, high = (
            float((n - grid.zero.reshape(())) * grid.scale.reshape(())) for n in (grid.low, grid.high)
        )
        clamped = build.add1(Clamp(low, high), [x]) if (grid.low, grid.high) != grid.dtype.limits else x
        return _in_bytes(build, clamped, grid)
    steps = _scaled(build, "add", _scaled(build, "div", x, grid.scale), grid.zero)
    steps = build.add1(Clamp(float(grid.low), float(grid.high)), [steps])
    steps = _round(build, node, steps, grid.rounding)
    return _scaled(build, "mul", _scaled(build, "sub", steps, grid.zero), grid.scale)


def _in_bytes(build: Builder, x: Tensor, grid: Grid) -> Tensor:
    return build.add1(Dequantize(), [build.add1(Quantize(grid.dtype, grid.quant(None)), [x])])


def _stored(build: Builder, integers: Array, grid: Grid) -> Tensor:
    axis = None if grid.scale.size == 1 else _axis(grid.scale.shape, integers.shape)
    return build.add1(Dequantize(), [build.constant(integers, quant=grid.quant(axis))])


def _axis(scales: Shape, shape: Shape) -> int | None:
    """The axis along which scales of this shape differ, if it is one."""
    aligned = (*(1,) * (len(shape) - len(scales)), *scales)
    axes = [axis for axis, extent in enumerate(aligned) if extent > 1]
    return axes[0] if len(axes) == 1 and shape[axes[0]] == aligned[axes[0]] else None


def _scaled(build: Builder, function: str, x: Tensor, values: Array) -> Tensor:
    if function in ("add", "sub") and not values.any():
        return x
    return build.add1(
        Binary(function), [x, build.constant(values if values.size > 1 else values.reshape(()))]
    )


def _round(build: Builder, node: OnnxNode, x: Tensor, rounding: str) -> Tensor:
    function = ROUNDINGS[rounding][1]
    if not function:
        raise UnsupportedError(
            f"{node.op_type} node {node.name!r} rounds {rounding!r} at run time", "ROUND, CEIL or FLOOR"
        )
    return build.add1(Unary(function), [x])
