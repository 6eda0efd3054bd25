# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Element types of two and four bits. Files pack them; a graph has one byte for each element.

The graph knows no type below eight bits. Readers remember which tensors had one (``Builder.narrow``), because
a type also says where QuantizeLinear and Cast end. Kernels that store four bits for each weight look at the
numbers.
"""

from __future__ import annotations

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType


@dataclass(frozen=True)
class Narrow:
    """A type of a file, and the type that holds it in a graph."""

    name: str
    bits: int
    signed: bool

    @property
    def holder(self) -> DType:
        return DType.INT8 if self.signed else DType.UINT8

    @property
    def limits(self) -> tuple[int, int]:
        half = 1 << (self.bits - 1)
        return (-half, half - 1) if self.signed else (0, 2 * half - 1)

    def wrapped(self, values: Array) -> Array:
        """Integers of another type without their upper bits."""
        low, _ = self.limits
        kept = (values.astype(np.int64) - low) & ((1 << self.bits) - 1)
        return (kept + low).astype(self.holder.numpy)


NARROW = {
    kind.name: kind
    for kind in (
        Narrow("int4", 4, True),
        Narrow("uint4", 4, False),
        Narrow("int2", 2, True),
        Narrow("uint2", 2, False),
    )
}


def unpacked(content: bytes, kind: Narrow) -> Array:
    """The elements in packed bytes, the lowest bits first; the last byte may have some too many."""
    packed = np.frombuffer(content, np.uint8)
    parts = [packed >> shift for shift in range(0, 8, kind.bits)]
    return kind.wrapped(np.stack(parts, axis=1).reshape(-1))


def packed(values: Array, kind: Narrow) -> bytes:
    """The other way round."""
    count = 8 // kind.bits
    flat = values.astype(np.int64).reshape(-1) & ((1 << kind.bits) - 1)
    parts = np.pad(flat, (0, -flat.size % count)).reshape(-1, count)
    shifts = np.arange(count) * kind.bits
    return (parts << shifts).sum(axis=1).astype(np.uint8).tobytes()
