# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The checksum by which generated code recognises its constants (TINYML_CHECK_WEIGHTS)."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

import numpy as np

from tinyml.ir import Array


def crc_of(tables: Iterable[Array]) -> int:
    """CRC-32 of tables one after the other, as they lie in the memory of a little-endian core."""
    crc = 0
    for values in tables:
        crc = zlib.crc32(stored_bytes(values), crc)
    return crc


def stored_bytes(values: Array) -> bytes:
    """A table as C stores it: an empty one has one zero, and every NaN is the one of <math.h>."""
    array = np.ascontiguousarray(values if values.size else np.zeros(1, values.dtype))
    if array.dtype.kind == "f":
        array = np.where(np.isnan(array), array.dtype.type(np.nan), array)
    return array.astype(array.dtype.newbyteorder("<")).tobytes()
