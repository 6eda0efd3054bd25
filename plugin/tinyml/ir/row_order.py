# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The order in which the elements of an input in rows arrive, if it is not that of the model file.

ONNX files have channels first: 1x3x128. A row has all channels of a step: 1x128x3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir.tensor import Array, Shape


@dataclass(frozen=True)
class RowOrder:
    """Axis i of the rows is axis ``axes[i]`` of the input, after a reshape if the shapes do not fit."""

    shape: Shape  # of the input as it arrives
    axes: tuple[int, ...]

    @property
    def file_shape(self) -> Shape:
        """The shape of which ``axes`` are the axes."""
        extents = dict(zip(self.axes, self.shape, strict=True))
        return tuple(extents[axis] for axis in range(len(self.axes)))

    def arranged(self, array: Array) -> Array:
        """An input as the model file has it, as it arrives."""
        return np.ascontiguousarray(array.reshape(self.file_shape).transpose(self.axes))

    @property
    def summary(self) -> dict[str, list[int]]:
        """For the summary in JSON."""
        return {"shape": list(self.shape), "axes": list(self.axes)}

    @classmethod
    def of_summary(cls, rows: Mapping[str, Any]) -> RowOrder | None:
        """From the entry ``rows`` of a summary; None for the order of the file, and without such an entry."""
        if "axes" not in rows:
            return None
        return cls(tuple(rows["shape"]), tuple(rows["axes"]))
