# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Upper bounds over all inputs, from machine code: instructions, cycles, stack, written bytes."""

from tinyml.bounds.elf import read_elf
from tinyml.bounds.image_bounds import (
    NOT_SHOWN,
    Bound,
    LayerBound,
    NoBoundError,
    Written,
    bound_files,
    bound_generated,
    bound_image,
    models_in,
)

__all__ = [
    "NOT_SHOWN",
    "Bound",
    "LayerBound",
    "NoBoundError",
    "Written",
    "bound_files",
    "bound_generated",
    "bound_image",
    "models_in",
    "read_elf",
]
