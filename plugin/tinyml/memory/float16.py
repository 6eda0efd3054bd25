# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Layers whose weights are float16 numbers: where flash holds floats in spite of that.

Both compute the same outputs. float16 halves the weights, and costs code where a model has layers with other
float weights as well: their kernel is linked beside the one for float16.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tinyml.ir import Layer
from tinyml.ops.framework.kernel import Kernel, kernels_of

SAVED = 2
"""Bytes of a weight."""

LONGER_CODE = 512
"""Bytes that kernels for float16 take more than those for floats: conversions."""

SECOND_CODE = 2048
"""Bytes that they take beside those for floats."""

Choice = tuple[Layer, Kernel[Any]]


def as_floats(chosen: Sequence[Choice], wanted: bool) -> Mapping[int, Kernel[Any]]:
    """By step, the kernels for floats of layers that shall not have float16 weights.

    These are all layers, unless float16 is ``wanted`` and makes the image smaller. Kernels that compute in
    float16 stay: a user has chosen them.
    """
    others = {
        step: _for_floats(layer, kernel)
        for step, (layer, kernel) in enumerate(chosen)
        if kernel.weights_are_float16 and not kernel.adds_in_float16
    }
    saved = sum(chosen[step][0].input(1).elements * SAVED for step in others)
    names = {kernel.name for kernel in others.values()}
    code = SECOND_CODE if any(kernel.name in names for _, kernel in chosen) else LONGER_CODE
    return {} if wanted and saved > code else others


def _for_floats(layer: Layer, kernel: Kernel[Any]) -> Kernel[Any]:
    """The first kernel after one for float16 that reads floats and computes the layer."""
    known = kernels_of(type(layer.op))
    after = known[known.index(kernel) + 1 :]
    others = (one for one in after if not one.weights_are_float16 and one.refusal(layer) is None)
    return next(others, kernel)
