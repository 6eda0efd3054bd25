# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Resize (and Upsample): each axis separately, with indices and weights computed at compile time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import numpy as np

from tinyml.base import c, limits
from tinyml.base.errors import UnsupportedError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Layer, Op, Shape, Tensor, TensorType, given
from tinyml.ops.framework.kernel import Kernel, Sheet, register_kernels
from tinyml.ops.framework.play_loops import LOOPS
from tinyml.ops.framework.play_sheet import NotPlayableError
from tinyml.ops.framework.quantization_facts import quantizes
from tinyml.ops.framework.reading import Builder, OnnxNode, onnx_op
from tinyml.ops.resize.axis import Axis, Sampling, Taps, nearest, unchanged, weights
from tinyml.ops.shared.axis import from_front
from tinyml.ops.shared.constraints import single_precision
from tinyml.ops.shared.operands import not_empty, one_per_axis, present
from tinyml.ops.shared.take import Picks, Take, TakeLoops

NEAREST, LINEAR = Sampling(), Sampling("linear")


def sensible_axes(layer: Layer[Any]) -> bool:
    """Every output extent is between 1 and the limit of elements of a tensor, and every scale is positive."""
    most = limits.limit("tensor_elements")
    return all(1 <= axis.size <= most and 0 < axis.scale < math.inf for axis in layer.op.axes)


@dataclass(frozen=True)
class ResizeNearest(Take):
    """The nearest element; works on any type."""

    operands = (present(1), not_empty(0), one_per_axis("axes"), sensible_axes)
    axes: tuple[Axis, ...] = ()
    sampling: Sampling = NEAREST

    def picks(self, shape: Shape) -> tuple[Picks, ...]:
        return tuple(nearest(axis, size, self.sampling) for axis, size in zip(self.axes, shape, strict=True))

    def extents(self, shape: Shape) -> Shape:
        for axis, size in zip(self.axes, shape, strict=True):
            if not unchanged(axis, size, self.sampling):
                nearest(replace(axis, size=1), size, self.sampling)  # refuses modes that are not known
        return tuple(axis.size for axis in self.axes)

    def permuted(self, layer: Layer, perm: Sequence[int]) -> Op | None:
        return replace(self, axes=tuple(self.axes[p] for p in perm))


register_kernels(ResizeNearest, TakeLoops())


@dataclass(frozen=True)
class ResizeWeighted(Op):
    """Linear or cubic: a weighted sum of neighbours."""

    operands = (present(1), not_empty(0), one_per_axis("axes"), sensible_axes)
    axes: tuple[Axis, ...] = ()
    sampling: Sampling = LINEAR

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        x = given(inputs, 0)
        return (TensorType(tuple(axis.size for axis in self.axes), x.dtype, x.quant),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x = given(inputs, 0)
        y = x.astype(np.float64)
        outside = np.zeros(layer.output.shape, bool)
        for number, axis in enumerate(self.axes):
            taps = weights(axis, x.shape[number], self.sampling)
            if taps is None:
                continue
            picked = np.take(y, taps.places.reshape(-1), axis=number)
            shape = (*y.shape[:number], *taps.places.shape, *y.shape[number + 1 :])
            factors = taps.factors.reshape(*taps.factors.shape, *[1] * (y.ndim - number - 1))
            y = (picked.reshape(shape) * factors).sum(axis=number + 1)
            missing = [1] * outside.ndim
            missing[number] = -1
            outside |= taps.outside.reshape(missing)
        y = np.where(outside, self.sampling.extrapolation, y)
        return (y.astype(layer.output.dtype.numpy),)

    def permuted(self, layer: Layer, perm: Sequence[int]) -> Op | None:
        return replace(self, axes=tuple(self.axes[p] for p in perm))


class ResizeLoops(Kernel[ResizeWeighted]):
    """Loops over the output and, per resized axis, over its neighbours; tables hold indices and weights."""

    name = "resize loops"
    constraints = (single_precision,)

    def emit(self, layer: Layer[ResizeWeighted], sheet: Sheet) -> None:
        op, x, y = layer.op, layer.input(0), layer.output
        tables = [weights(a, size, op.sampling) for a, size in zip(op.axes, x.shape, strict=True)]
        resized = [a for a, taps in enumerate(tables) if taps is not None]
        plain = [a for a in range(len(x.shape)) if a not in resized]
        strides = c.contiguous(x.shape)
        # output loops in the order of its memory
        with sheet.nested((f"i{axis}", extent) for axis, extent in enumerate(y.shape) if extent > 1):
            sheet.line("float sum = 0.0f;")
            sheet.line()
            base = sheet.x()
            if place := [f"i{a} * {strides[a]}" for a in plain if y.shape[a] > 1]:
                sheet.line(f"const float *in = &{base}[{' + '.join(place)}];")
                sheet.line()
                base = "in"
            missing = _sum(sheet, base, tables, strides, y.shape)
            target = " + ".join(
                f"i{a} * {s}" if s > 1 else f"i{a}"
                for a, s in enumerate(c.contiguous(y.shape))
                if y.shape[a] > 1
            )
            value = "sum"
            if missing:
                value = f"{' || '.join(missing)} ? {sheet.number(op.sampling.extrapolation)} : sum"
            sheet.line(f"{sheet.y()}[{target or '0'}] = {value};")

    def play(self, layer: Layer[ResizeWeighted], sheet: Sheet) -> None:
        op, x, y = layer.op, layer.input(0), layer.output
        tables = [weights(a, size, op.sampling) for a, size in zip(op.axes, x.shape, strict=True)]
        missing = LOOPS - len(x.shape)
        if missing < 0 or max(*x.shape, *y.shape) > DType.INT16.limits[1]:
            raise NotPlayableError(f"the player resizes at most {LOOPS} axes of less than 32,768 elements")
        members: dict[str, object] = {".extrapolation": sheet.number(op.sampling.extrapolation)}
        for number in range(missing):
            members |= _axis(number, (1, 1, 0, 0, 1))
        order = sorted(range(len(tables)), key=lambda axis: tables[axis] is not None)
        for number, axis in enumerate(order, missing):
            taps = tables[axis]
            steps = c.contiguous(x.shape)[axis], c.contiguous(y.shape)[axis]
            count = 1 if taps is None else taps.places.shape[1]
            members |= _axis(number, (x.shape[axis], y.shape[axis], *steps, count))
            if taps is None:
                continue
            place = f".axes[{number}]."
            members[f"{place}places"] = sheet.table(f"places{axis}", taps.places.astype(np.int16))
            members[f"{place}factors"] = sheet.table(f"factors{axis}", taps.factors.astype(np.float32))
            if bool(np.any(taps.outside)):
                members[f"{place}outside"] = sheet.table(f"outside{axis}", taps.outside)
        sheet.note("tinyml_play_resize_weighted", members, sheet.x(), sheet.y())


def _axis(number: int, numbers: tuple[int, int, int, int, int]) -> dict[str, object]:
    """Members of struct tinyml_play_resize_axis."""
    names = ("in", "out", "step", "out_step", "taps")
    return {f".axes[{number}].{name}": value for name, value in zip(names, numbers, strict=True)}


def _sum(
    sheet: Sheet, base: str, tables: Sequence[Taps | None], strides: Sequence[int], shape: Shape
) -> list[str]:
    """Add up the taps of one output; returns C conditions that say whether it lies outside of the input."""
    missing: list[str] = []
    resized = [(axis, taps) for axis, taps in enumerate(tables) if taps is not None]
    factor = ""
    with ExitStack() as opened:
        for number, (axis, taps) in enumerate(resized):
            count = taps.places.shape[1]
            at = sheet.table(f"places{axis}", taps.places.astype(np.int16))
            by = sheet.table(f"factors{axis}", taps.factors.astype(np.float32))
            if bool(np.any(taps.outside)):
                flag = sheet.table(f"outside{axis}", taps.outside)
                missing.append(f"{flag}[{_name(axis, shape)}]")
            opened.enter_context(sheet.loop(f"k{axis}", count))
            index = f"{_name(axis, shape)} * {count} + k{axis}" if shape[axis] > 1 else f"k{axis}"
            step = f" * {strides[axis]}" if strides[axis] > 1 else ""
            if number == len(resized) - 1:
                sheet.line(f"sum += {base}[{at}[{index}]{step}] * {factor}{by}[{index}];")
            else:
                sheet.line(f"const float *in{axis} = &{base}[{at}[{index}]{step}];")
                sheet.line(f"const float f{axis} = {factor}{by}[{index}];")
                sheet.line()
                base, factor = f"in{axis}", f"f{axis} * "
        if not resized:
            sheet.line(f"sum = {base}[0];")
    return missing


def _name(axis: int, shape: Shape) -> str:
    return f"i{axis}" if shape[axis] > 1 else "0"


register_kernels(ResizeWeighted, ResizeLoops())


def resize(build: Builder, x: Tensor, axes: Sequence[Axis], sampling: Sampling) -> Tensor:
    """``x`` resized by the operator that fits the mode."""
    rest = tuple(axes)
    if sampling.mode == "nearest":
        if sampling.coordinates == "tf_crop_and_resize":
            raise UnsupportedError("Resize to the nearest element of a region is not supported")
        return build.add1(ResizeNearest(rest, sampling), [x])
    return build.add1(ResizeWeighted(rest, sampling), [x])


quantizes("Resize", keeps_scale=True)


@onnx_op("Resize", "Upsample")
def read_onnx(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    x = node.input(0)
    old = node.op_type == "Upsample" or node.opset < 11
    sampling = Sampling(
        str(node.attr("mode", "nearest")),
        str(node.attr("coordinate_transformation_mode", "asymmetric" if old else "half_pixel")),
        str(node.attr("nearest_mode", "floor" if old else "round_prefer_floor")),
        float(node.attr("cubic_coeff_a", -0.75)),
        bool(node.attr("exclude_outside", 0)),
        bool(node.attr("antialias", 0)),
        float(node.attr("extrapolation_value", 0.0)),
    )
    if sampling.mode not in ("nearest", "linear", "cubic"):
        raise UnsupportedError(f"{node.op_type} node {node.name!r}: mode {sampling.mode!r} is not known")
    axes = node.ints("axes", range(len(x.shape)))
    chosen = dict(zip((from_front(a, len(x.shape)) for a in axes), _axes(node, x, axes, old), strict=True))
    every = [chosen.get(a, Axis(size)) for a, size in enumerate(x.shape)]
    return [resize(build, x, every, sampling)]


def _axes(node: OnnxNode, x: Tensor, axes: Sequence[int], old: bool) -> list[Axis]:
    """Extent, scale and region of the axes that the node speaks of."""
    sizes = [x.shape[a] for a in axes]
    scales_at = 1 if old else 2
    scales = _floats(node, scales_at)
    if "scales" in node.attributes:  # Upsample of opset 7
        scales = [float(s) for s in node.attr("scales")]
    region = [] if old else _floats(node, 1)
    regions = [(0.0, 1.0)] * len(sizes)
    if region and str(node.attr("coordinate_transformation_mode", "")) == "tf_crop_and_resize":
        regions = [(region[i], region[len(sizes) + i]) for i in range(len(sizes))]
    if scales:
        extents = [  # in float32, as onnxruntime: 10 * 0.7 is 7 (ONNX's shape inference says 6)
            math.floor(np.float32(size) * np.float32(scale) * np.float32(end - start))
            for size, scale, (start, end) in zip(sizes, scales, regions, strict=True)
        ]
    else:
        wanted = [int(s) for s in node.const(3).reshape(-1)]
        ratios = [w / size for w, size in zip(wanted, sizes, strict=True)]
        policy = str(node.attr("keep_aspect_ratio_policy", "stretch"))
        if policy == "stretch":
            extents, scales = wanted, ratios
        else:
            ratio = min(ratios) if policy == "not_larger" else max(ratios)
            scales = [ratio] * len(sizes)
            extents = [math.floor(size * ratio + 0.5) for size in sizes]
    return [Axis(*row) for row in zip(extents, scales, regions, strict=True)]


def _floats(node: OnnxNode, index: int) -> list[float]:
    """An optional operand of numbers; an empty tensor is an absent one."""
    if node.optional(index) is None:
        return []
    return [float(v) for v in node.const(index).reshape(-1)]
