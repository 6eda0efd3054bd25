# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Which layers add up products in float16, as ``arithmetic: float16`` allows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tinyml.cores.targets import Target
from tinyml.memory.bands.banded import banded_layers
from tinyml.memory.loops.placed import looped_layers
from tinyml.memory.select import Selected
from tinyml.ops.framework.kernel import Kernel, kernel_table


def has_float16_sums(selected: Sequence[Selected]) -> bool:
    """Whether a layer rounds sums to float16, in bands and in loops too."""
    return any(kernel.adds_in_float16 for one in selected for kernel in _kernels(one))


def _kernels(one: Selected) -> Iterator[Kernel[Any]]:
    yield one.kernel
    yield from (kernel for _, kernel in banded_layers(one.layer) or ())
    _, working = looped_layers(one.layer) or (0, [])
    for inner in working:
        yield from _kernels(inner)


def in_vain(selected: Sequence[Selected], target: Target) -> tuple[str, ...]:
    """A note if it is allowed and no layer does it."""
    if has_float16_sums(selected):
        return ()
    start = "`arithmetic: float16` changes nothing"
    known = (kernel for kernels in kernel_table().values() for kernel in kernels)
    if not any(kernel.adds_in_float16 and kernel.runs_on(target) for kernel in known):
        return (f"{start} on {target.name}, which has no vectors of float16: layers add up floats",)
    return (
        f"{start} in this model: no convolution or dense layer that is large enough has float16 weights, "
        "which `tinyml quantize --weights float16` gives it",
    )
