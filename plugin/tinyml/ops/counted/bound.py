# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Results of a number that is known at run time alone: in numpy, and how kernels in C end."""

from __future__ import annotations

import numpy as np

from tinyml.base.errors import ModelError
from tinyml.ir import Array, DType, Layer, TensorType
from tinyml.ops.framework.kernel import Sheet

COUNT = TensorType((1,), DType.INT64)
"""Of a tensor that says how many results there are."""


def rows_within(found: Array, rows: int, layer: Layer, axis: int = 0) -> Array:
    """Results with zeros after the last, so that there are ``rows``; more are the error of a run."""
    count = found.shape[axis]
    check_count(count, rows, layer)
    missing = [(0, rows - count if a == axis % found.ndim else 0) for a in range(found.ndim)]
    return np.pad(found, missing)


def check_count(count: int, most: int, layer: Layer) -> None:
    """What TINYML_EBOUND is in C."""
    if count > most:
        raise ModelError(
            f"{layer.op.kind} {layer.name!r} has {count} results; its bound is {most}",
            f"--bound {layer.name}={count}, or fewer results",
        )


def emit_count(sheet: Sheet, count: str, output: str) -> None:
    """Write how many results there are."""
    sheet.line(f"{output}[0] = {count};")


def emit_overflow(sheet: Sheet, count: str, rows: int, output: str) -> None:
    """End the run if another result has no place: results that do not fit are never written."""
    with sheet.block(f"if ({count} == {rows}) {{"):
        emit_count(sheet, count, output)
        sheet.line("return TINYML_EBOUND;")
