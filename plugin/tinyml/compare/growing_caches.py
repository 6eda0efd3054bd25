# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Pasts that grow, beside a compiled model whose caches have the longest length.

The file's model gets the rows before the position, and gives them back with the new ones. Rows of an earlier
text stay behind the position, as they do in the compiled model, so positions may go back and forth.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
from onnx import helper

from tinyml.importers.growing_states import GrowingModel
from tinyml.ir import Array


class GrowingCaches:
    """``first`` are the caches of the compiled model before the first run."""

    def __init__(self, model: onnx.ModelProto, growing: GrowingModel, first: Mapping[str, Array]) -> None:
        self._growing = growing
        self._kinds = {value.name: value.type.tensor_type.elem_type for value in model.graph.input}
        self._rows = {cache.state.input: first[cache.state.input].copy() for cache in growing.caches}
        self._position = 0

    def feed(self, sample: Mapping[str, Array], steps: int) -> dict[str, Array]:
        """Pasts, the mask of tokens without padding, and all positions of a run."""
        growing = self._growing
        cache = growing.caches[0]
        last = self._rows[cache.state.input].shape[cache.axis] - steps
        if growing.position:
            self._position = int(sample[growing.position].reshape(-1)[0])
        self._position = max(0, min(self._position, last))
        places = np.arange(self._position)
        axes = {cache.state.input: cache.axis for cache in growing.caches}
        found = {name: np.take(self._rows[name], places, axis=axis) for name, axis in axes.items()}
        if growing.mask:
            kind = helper.tensor_dtype_to_np_dtype(self._kinds[growing.mask])
            found[growing.mask] = np.ones((1, self._position + steps), kind)
        if growing.position:
            given = sample[growing.position]
            rows = np.arange(self._position, self._position + steps, dtype=given.dtype)
            found[growing.position] = rows.reshape(given.shape)
        return found

    def take(self, results: Mapping[str, Array]) -> None:
        """Keep the new rows of a run."""
        end = self._position
        for cache in self._growing.caches:
            rows = np.moveaxis(self._rows[cache.state.input], cache.axis, 0)
            new = np.moveaxis(results[cache.state.output], cache.axis, 0)[self._position :]
            end = self._position + len(new)
            rows[self._position : end] = new
        self._position = end
