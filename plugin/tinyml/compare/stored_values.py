# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Values for two forms of one model: with ``io int8``, the C has integers where the file has floats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tinyml.datasets.arrays import is_quantized, quantized, real
from tinyml.ir import Array, Graph, Tensor


def fitting(
    graph: Graph, given: Graph, samples: Sequence[Mapping[str, Array]]
) -> Sequence[Mapping[str, Array]]:
    """Samples for the inputs of ``given`` as ``graph`` takes them: integers there may be floats here."""
    floats = {
        name
        for name in graph.inputs
        if name in given.inputs and graph.tensors[name].dtype.is_float and is_quantized(given.tensors[name])
    }
    if not floats:
        return samples
    return [
        {
            name: real(values, given.tensors[name]).astype(np.float32) if name in floats else values
            for name, values in sample.items()
        }
        for sample in samples
    ]


def as_stored(values: Array, tensor: Tensor) -> Array:
    """Floats as the integers of a quantised tensor; anything else as it is."""
    return quantized(values, tensor) if values.dtype.kind == "f" and is_quantized(tensor) else values
