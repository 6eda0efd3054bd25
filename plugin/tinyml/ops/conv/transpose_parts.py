# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Integer transposed convolutions as several convolutions: one for each remainder of output positions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import product

import numpy as np

from tinyml.base import c
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Layer, Tensor
from tinyml.ops.conv.phases import Phase, phases
from tinyml.ops.conv.stream_counts import by_rows
from tinyml.ops.conv.streamed import ConvInt8
from tinyml.ops.framework.kernel import Sheet
from tinyml.ops.framework.work import Work
from tinyml.ops.shared.overlay import Sliding
from tinyml.ops.shared.quant import quant_of
from tinyml.ops.weighted.records import in_zero, output_limits
from tinyml.ops.weighted.walked import Axis, Windows, together
from tinyml.ops.weighted.weighted import Weighted

REPEATED_BYTES = 9
"""Bias, factor and exponent of a filter, which every part has."""


@dataclass(frozen=True)
class Part:
    """The outputs that meet the same taps, and the layer whose weights are these taps."""

    rows: Phase
    columns: Phase
    layer: Layer[Weighted]

    @property
    def weights(self) -> Tensor:
        return self.layer.input(1)

    @property
    def filter_elements(self) -> int:
        return int(np.prod(self.weights.shape[1:]))


def parts(layer: Layer[Weighted], op: Sliding) -> Iterator[Part]:
    """Outputs that meet no tap have one of weight zero."""
    w, y = layer.input(1), layer.output.shape
    axes = [
        list(phases(op.strides[a], op.pads[a], w.shape[1 + a], y[1 + a], op.dilations[a])) for a in range(2)
    ]
    for rows, columns in product(*axes):
        if rows.taps and columns.taps:
            values = w.value[:, rows.taps][:, :, columns.taps]
        else:
            shape = (w.shape[0], 1, 1, w.shape[3])
            values = np.full(shape, quant_of(w).zero_points[0], w.value.dtype)
        taps = Tensor.constant(w.name, np.ascontiguousarray(values), w.quant)
        yield Part(rows, columns, replace(layer, inputs=(layer.inputs[0], taps, *layer.inputs[2:])))


def column_bytes(layer: Layer[Weighted], op: Sliding, kernel: ConvInt8) -> int:
    """What the kernel needs for the largest of the parts."""
    return max(kernel.columns_bytes(part.filter_elements, part.weights.shape[3]) for part in parts(layer, op))


def row_bytes(layer: Layer[Weighted], op: Sliding) -> int:
    """A row of outputs, if those of a part are not neighbours."""
    _, _, width, channels = layer.output.shape
    stride = op.strides[1]
    return -(-width // stride) * channels if stride > 1 else 0


def emit_parts(layer: Layer[Weighted], sheet: Sheet, op: Sliding, kernel: ConvInt8, function: str) -> None:
    """A call for each part."""
    sheet.include("<tinyml/conv.h>")
    columns_end = column_bytes(layer, op, kernel)
    for number, part in enumerate(parts(layer, op)):
        conv = {
            **kernel.part_layout(part.layer, sheet, number),
            **in_zero(layer),
            **output_limits(layer),
            ".from_the_end": c.boolean(False),
        }
        members = apart_members(part, op, conv, columns_end)
        record = sheet.record(kernel.apart, f"params{number}", members)
        call_part(part, sheet, function, record)


def apart_members(part: Part, op: Sliding, conv: Mapping[str, object], row: int) -> dict[str, object]:
    """Members of a record for a part: those of its convolution, and where its outputs are.

    ``row`` is where a row of outputs is collected, in elements from the start of the scratch memory.
    """
    rows, columns = part.rows, part.columns
    x, y = part.layer.input(0).shape, part.layer.output.shape
    window = {
        "batches": x[0],
        "in_h": x[1],
        "in_w": x[2],
        "in_c": x[3],
        "out_h": rows.outputs,
        "out_w": columns.outputs,
        "out_c": y[3],
        "kernel_h": part.weights.shape[1],
        "kernel_w": part.weights.shape[2],
        "stride_h": 1,
        "stride_w": 1,
        "dilation_h": rows.dilation,
        "dilation_w": columns.dilation,
        "pad_top": rows.pad,
        "pad_left": columns.pad,
    }
    return {
        **{f".conv.window.{name}": value for name, value in window.items()},
        **{f".conv{name}": value for name, value in conv.items()},
        ".step": op.strides[1] * y[3],
        ".line": op.strides[0] * y[2] * y[3],
        ".image": y[1] * y[2] * y[3],
        ".row": row,
    }


def call_part(part: Part, sheet: Sheet, function: str, record: str) -> None:
    """Compute the outputs of a part, which begin at its first one."""
    y = part.layer.output.shape
    place = (part.rows.first * y[2] + part.columns.first) * y[3]
    sheet.call(function, record, sheet.x(), sheet.element(sheet.y(), place, 0), sheet.scratch)


def repeated_bytes(layer: Layer[Weighted], op: Sliding) -> int:
    """What parts repeat for each filter."""
    count = sum(1 for _ in parts(layer, op))
    return (count - 1) * REPEATED_BYTES * layer.output.shape[3]


def part_windows(part: Part, groups: int) -> Windows:
    """The convolution of a part, from one output to the next."""
    x, y = part.layer.input(0).shape, part.layer.output.shape
    phases = (part.rows, part.columns)
    rows, cols = (
        Axis(x[1 + i], phase.outputs, part.weights.shape[1 + i], 1, phase.dilation, phase.pad)
        for i, phase in enumerate(phases)
    )
    return Windows(rows, cols, x[0], x[3], y[3], groups)


def walked_parts(
    layer: Layer[Weighted], op: Sliding, groups: int, of_windows: Callable[[Windows], Work]
) -> Work:
    """How often the loops of a kernel run that computes the parts row by row."""
    apart = op.strides[1] > 1
    found = [by_rows(part_windows(part, groups), of_windows, apart) for part in parts(layer, op)]
    return together({"parts": len(found)}, *found)


def walked_whole_parts(
    layer: Layer[Weighted], op: Sliding, groups: int, of_windows: Callable[[Windows], Work]
) -> Work:
    """The same for a kernel that computes all rows of a part in one call."""
    found = [of_windows(part_windows(part, groups)) for part in parts(layer, op)]
    return together({"parts": len(found)}, *found)
