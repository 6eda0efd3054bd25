# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Float layers whose weights are bytes times a scale: models with quantised weights and float activations.

Their weights go to flash as bytes, a quarter of the size. The form is found in the numbers themselves, so
that it does not matter which format or exporter a model came from, and it is used only where it is exact.
"""

from __future__ import annotations

import numpy as np

from tinyml.base import c
from tinyml.cores.targets import Target
from tinyml.ir import Array, DType, Layer
from tinyml.ops.conv.convolution import Convolution
from tinyml.ops.framework.kernel import Kernel, Library, Overlay, Sheet
from tinyml.ops.framework.work import Work
from tinyml.ops.shared.overlay import backwards, forwards
from tinyml.ops.weighted import float_counts
from tinyml.ops.weighted.records import (
    constant_weights,
    float_limits,
    float_tensors,
    geometry,
    matrix,
    small_extents,
)
from tinyml.ops.weighted.walked import windows_of
from tinyml.ops.weighted.weighted import Weighted

WORTHWHILE = 64  # elements; below that it is not worth another kernel
SHORTEST = 3  # elements of a filter; below that its scale would cost what bytes save
_found: dict[int, tuple[Array, tuple[Array, Array] | None]] = {}


def byte_form(filters: Array) -> tuple[Array, Array] | None:
    """Bytes and one scale per filter (the first axis) whose products are ``filters``, bit for bit."""
    known = _found.get(id(filters))
    if known is None or known[0] is not filters:
        _found.clear()  # the constraint and then the kernel look up the same weights
        known = _found[id(filters)] = (filters, _search(filters))
    return known[1]


def _search(filters: Array) -> tuple[Array, Array] | None:
    rows = filters.reshape(filters.shape[0], -1)
    if rows.size < WORTHWHILE or rows.shape[1] < SHORTEST:
        return None
    return as_bytes(filters)


def as_bytes(filters: Array) -> tuple[Array, Array] | None:
    """The same for filters of any size."""
    rows = filters.reshape(filters.shape[0], -1)
    bytes_, scales = np.zeros(rows.shape, np.int8), np.ones(len(rows), np.float32)
    largest = 127  # filters of one tensor mostly have the same largest byte: try the last one first
    for number, row in enumerate(rows):
        top = np.abs(row).max()
        if top == 0:
            continue
        for candidate in dict.fromkeys((largest, *range(127, 0, -1))):
            scale = _scale(row, top, candidate)
            if scale is not None:
                break
        else:
            return None
        largest = candidate
        scales[number] = scale
        bytes_[number] = np.rint(row / scale).astype(np.int8)
    return bytes_.reshape(filters.shape), scales


def were_integers(weights: Array, axis: int) -> bool:
    """Whether the weights of each output channel, along ``axis``, are integers of 8 bits times one scale."""
    for row in np.moveaxis(weights, axis, 0).reshape(weights.shape[axis], -1):
        top = np.abs(row).max(initial=0)
        if top and all(_scale(row, top, steps) is None for steps in range(255, 0, -1)):
            return False
    return True


def _scale(row: Array, top: np.float32, largest: int) -> np.float32 | None:
    """The scale with which ``top`` is ``largest`` steps and every element a whole number of them."""
    guess = np.float32(top / np.float32(largest))
    steps = np.rint(row / guess)
    if np.abs(row / guess - steps).max() > 1e-3:
        return None
    for scale in (guess, np.nextafter(guess, np.float32(0)), np.nextafter(guess, np.float32(np.inf))):
        if np.array_equal((steps.astype(np.float32) * scale).astype(np.float32), row):
            return np.float32(scale)
    return None


def bytes_times_scales(layer: Layer) -> bool:
    """The weights of each filter are bytes times one scale."""
    return layer.input(1).dtype is DType.FLOAT32 and byte_form(layer.input(1).value) is not None


def _common(layer: Layer[Weighted], sheet: Sheet) -> dict[str, object]:
    """Members that both of these records have."""
    form = byte_form(layer.input(1).value)
    assert form is not None
    sheet.include("<tinyml/byte_weights.h>")
    return {
        ".weights": sheet.table("weights", form[0]),
        ".scales": sheet.table("scales", form[1]),
        **float_limits(layer, sheet),
    }


class DenseByteWeights(Kernel[Weighted]):
    """Matrix-vector products with weights of one byte, in portable C."""

    name = "tinyml_dense_f32_s8"
    library = Library.PORTABLE
    sources = ("dense/dense_f32_s8.c",)
    constraints = (float_tensors, constant_weights, bytes_times_scales)

    def emit(self, layer: Layer[Weighted], sheet: Sheet) -> None:
        members = {**matrix(layer), **_common(layer, sheet)}
        name = sheet.record("struct tinyml_dense_f32_s8", "params", members)
        sheet.call("tinyml_dense_f32_s8", name, sheet.x(), sheet.y())

    def loop_counts(self, layer: Layer[Weighted], target: Target) -> Work | None:
        return float_counts.dense_one_by_one(layer)


class ConvByteWeights(Kernel[Convolution]):
    """Convolution with weights of one byte, in portable C."""

    name = "tinyml_conv_f32_s8"
    library = Library.PORTABLE
    sources = ("conv/conv_f32_s8.c",)
    constraints = (float_tensors, constant_weights, small_extents, bytes_times_scales)
    in_bands = True

    def overlays(self, layer: Layer[Convolution]) -> tuple[Overlay, ...]:
        return (*forwards(layer, copied=False), *backwards(layer, copied=False))

    def emit(self, layer: Layer[Convolution], sheet: Sheet) -> None:
        members = {
            **geometry(layer),
            ".groups": layer.input(0).shape[3] // layer.input(1).shape[3],
            ".from_the_end": c.boolean(sheet.backwards),
            **_common(layer, sheet),
        }
        name = sheet.record("struct tinyml_conv_f32_s8", "params", members)
        sheet.call("tinyml_conv_f32_s8", name, sheet.x(), sheet.y())

    def loop_counts(self, layer: Layer[Convolution], target: Target) -> Work | None:
        groups = layer.input(0).shape[3] // layer.input(1).shape[3]
        return float_counts.conv_one_by_one(layer, windows_of(layer, groups))
