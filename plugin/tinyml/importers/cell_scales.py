# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Scales of LSTM cells that nothing reads, which an ONNX file can only name in its metadata:
``tinyml.cells`` = ``{"name of the LSTM node": integer bits}``.

As integers, such cells reach from -16 to 16, four integer bits, if the file says nothing. Other runtimes
compute cells in float and need none of this.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tinyml.base.errors import ModelError
from tinyml.ops.recurrent.integer_form import MOST_CELL_BITS

if TYPE_CHECKING:
    import onnx

KEY = "tinyml.cells"
EXAMPLE = f'{KEY} = {{"lstm": 6}}, with integer bits from 0 to {MOST_CELL_BITS} for each node named'


def cell_bits_of(model: onnx.ModelProto) -> Mapping[str, int]:
    """The integer bits by name of the node; an error if the metadata are something else."""
    text = next((entry.value for entry in model.metadata_props if entry.key == KEY), "{}")
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict) or not all(
        type(bits) is int and 0 <= bits <= MOST_CELL_BITS for bits in found.values()
    ):
        raise ModelError(f"the model's metadata {KEY} cannot be read", EXAMPLE)
    return found


def note_cell_bits(model: onnx.ModelProto, bits: Mapping[str, int]) -> None:
    """Write them into the metadata."""
    if bits:
        model.metadata_props.add(key=KEY, value=json.dumps(dict(sorted(bits.items()))))
