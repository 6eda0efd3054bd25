# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""NAME_feed(): samples in, features computed, the model run. What its templates need."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.base import c
from tinyml.base.lazy_dataclass import dataclass
from tinyml.features.feed import Feed, Whole
from tinyml.features.written import Memory
from tinyml.ir import DType
from tinyml.ops.framework.kernel import Record, Table

WINDOW_SOURCE = "signal/sliding.c"


@dataclass(frozen=True)
class FeedCode:
    """For the templates; all texts are C."""

    description: str
    headers: Sequence[str]
    sources: Sequence[str]
    tables: Sequence[Table]
    records: Sequence[Record]
    memory: Sequence[Memory]
    windows: Sequence[Window]
    statement: Sequence[c.Code]
    conversion: Sequence[c.Code]  # statements in a loop over i, from NAME_row[i] to feature[i]
    sample: str  # C type of a sample
    row: str  # C type of a feature before the conversion
    feature: str  # and after
    rate: str
    axes: int
    window: int
    step: int
    width: int
    rows: int
    stride: int

    @property
    def in_place(self) -> bool:
        """Whether a row is all that a run needs: then nothing is kept, and nothing copied."""
        return self.rows == 1

    @property
    def ram_bytes(self) -> int:
        """Variables of the front end."""
        return sum(m.bytes for m in self.memory) + 24 * len(self.windows)  # a window is six words

    @property
    def flash_bytes(self) -> int:
        return sum(table.values.nbytes for table in self.tables)


@dataclass(frozen=True)
class Window:
    """A struct tinyml_sliding over one of the arrays."""

    name: str
    data: str
    frame_bytes: int
    frames: int
    step: int


def _indented(statement: str, depth: int) -> list[c.Code]:
    """A statement in lines, with room for one more level than ``depth``."""
    return c.code(line.removeprefix(c.TAB) for line in c.wrap(statement, c.TAB * (depth + 1)))


def feed_code(model: str, feed: Feed) -> FeedCode:
    """The feed of a model with this prefix."""
    frontend, settings = feed.frontend, feed.frontend.settings
    written = frontend.of.write(model, settings)
    sample = DType(frontend.of.sample)
    row = DType.UINT16 if frontend.of.integer else DType.FLOAT32
    feature = feed.tensor.dtype
    samples = settings.window * settings.axes
    memory = [
        Memory(sample.c, f"{model}_samples", samples, samples * sample.bytes, "a ring"),
        *written.memory,
        Memory(row.c, f"{model}_row", settings.width, settings.width * row.bytes, "of features"),
    ]
    windows = [
        Window(
            f"{model}_window",
            f"{model}_samples",
            settings.axes * sample.bytes,
            settings.window,
            settings.step,
        )
    ]
    if feed.rows > 1:
        elements = feed.rows * settings.width
        memory.append(
            Memory(feature.c, f"{model}_rows", elements, elements * feature.bytes, "a ring of features")
        )
        width_bytes = settings.width * feature.bytes
        windows.append(Window(f"{model}_row_window", f"{model}_rows", width_bytes, feed.rows, feed.stride))
    return FeedCode(
        description=frontend.describe(),
        headers=["<tinyml/stream.h>", *written.headers, *_headers(feed)],
        sources=[WINDOW_SOURCE, *written.sources],
        tables=written.tables,
        records=written.records,
        memory=memory,
        windows=windows,
        statement=_indented(written.statement, 1),
        conversion=_indented(_conversion(model, feed), 2),
        sample=sample.c,
        row=row.c,
        feature=feature.c,
        rate=np.format_float_positional(settings.rate, trim="-"),
        axes=settings.axes,
        window=settings.window,
        step=settings.step,
        width=settings.width,
        rows=feed.rows,
        stride=feed.stride,
    )


def _headers(feed: Feed) -> list[str]:
    if isinstance(feed.conversion, Whole):
        return ["<tinyml/fixed_point.h>"]
    return ["<tinyml/quantize.h>"] if feed.conversion.quantized else []


def _conversion(model: str, feed: Feed) -> str:
    how, dtype = feed.conversion, feed.tensor.dtype
    value = f"{model}_row[i]"
    if isinstance(how, Whole):
        low, high = dtype.limits
        steps = f"({value} * {how.multiplier}u + {how.half}u) / {how.divisor}u"
        moved = f"(int32_t)({steps})"
        if how.zero_point:
            moved += f" {'-' if how.zero_point < 0 else '+'} {abs(how.zero_point)}"
        return f"features[i] = ({dtype.c})tinyml_clamp({moved}, {low}, {high});"
    real = value if how.scale == 1.0 else f"(float){value} * {c.floating(how.scale)}"
    if how.quantized is None:
        return f"features[i] = {'(double)' if dtype is DType.FLOAT64 else ''}{real};"
    (low, high), (scale, zero_point) = dtype.limits, how.quantized
    call = f"tinyml_quantize_even({real}, {c.floating(scale)}, {zero_point}, {low}, {high})"
    return f"features[i] = ({dtype.c}){call};"
