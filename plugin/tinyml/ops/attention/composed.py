# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Attention and rotary embeddings as standard ONNX operators, for readers of operators that combine them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Array, DType, Tensor
from tinyml.ops.framework.reading import ONNX_READERS, Builder, OnnxNode

OPSET = 17
Operand = Tensor | Array | None


@dataclass(frozen=True)
class Composition:
    """Standard operators that are read in the place of ``node``."""

    node: OnnxNode
    build: Builder

    def __call__(self, op_type: str, *operands: Operand, **attributes: Any) -> Tensor:
        return self.several(op_type, operands, 1, **attributes)[0]

    def several(
        self, op_type: str, operands: Sequence[Operand], outputs: int, **attributes: Any
    ) -> Sequence[Tensor]:
        names = self.node.output_names[:1] * outputs
        call = replace(
            self.node,
            op_type=op_type,
            domain="",
            opset=OPSET,
            inputs=tuple(self._tensor(operand) for operand in operands),
            output_names=names,
            attributes=attributes,
        )
        return ONNX_READERS[("", op_type)](call, self.build)

    def _tensor(self, operand: Operand) -> Tensor | None:
        return self.build.constant(operand) if isinstance(operand, np.ndarray) else operand

    def reshape(self, x: Tensor, *shape: int) -> Tensor:
        return self("Reshape", x, np.array(shape, np.int64))

    def part(self, x: Tensor, axis: int, start: int, end: int) -> Tensor:
        """Elements along an axis."""
        if (start, end) == (0, x.shape[axis]):
            return x
        ends = [np.array([number], np.int64) for number in (start, end, axis)]
        return self("Slice", x, *ends)

    def apart(self, x: Tensor, heads: int) -> Tensor:
        """(batch, steps, heads * size) as (batch, heads, steps, size)."""
        batch, steps, width = x.shape
        return self("Transpose", self.reshape(x, batch, steps, heads, width // heads), perm=[0, 2, 1, 3])

    def joined(self, x: Tensor) -> Tensor:
        """(batch, heads, steps, size) as (batch, steps, heads * size)."""
        batch, heads, steps, size = x.shape
        return self.reshape(self("Transpose", x, perm=[0, 2, 1, 3]), batch, steps, heads * size)

    def int64(self, x: Tensor) -> Tensor:
        if x.dtype is DType.INT64:
            return x
        from onnx import TensorProto  # takes a while, and models in TFLite's format do without

        return self("Cast", x, to=TensorProto.INT64)

    def positions(self, start: Tensor, steps: int) -> Tensor:
        """(batch, steps): the numbers from ``start``, (batch,), on."""
        column = self.reshape(start, start.elements, 1)
        return column if steps == 1 else self("Add", column, np.arange(steps, dtype=np.int64)[None, :])

    def rotated(
        self, x: Tensor, tables: tuple[Tensor, Tensor], positions: Tensor, interleaved: bool
    ) -> Tensor:
        """Rotary embeddings of (batch, heads, steps, size).

        ``tables`` are cosines and sines, (longest, half).
        """
        half = tables[0].shape[1]
        rows = [self("Gather", table, positions, axis=0) for table in tables]
        cosines, sines = (self.reshape(row, row.shape[0], 1, *row.shape[1:]) for row in rows)
        turned = self.part(x, 3, 0, 2 * half)
        if interleaved:
            pairs = self.reshape(turned, *turned.shape[:3], half, 2)
            first, second = (
                self.reshape(self.part(pairs, 4, i, i + 1), *turned.shape[:3], half) for i in (0, 1)
            )
        else:
            first, second = self.part(turned, 3, 0, half), self.part(turned, 3, half, 2 * half)
        real = self("Sub", self("Mul", cosines, first), self("Mul", sines, second))
        other = self("Add", self("Mul", sines, first), self("Mul", cosines, second))
        if interleaved:
            both = [self.reshape(part, *part.shape, 1) for part in (real, other)]
            turned = self.reshape(self("Concat", *both, axis=4), *turned.shape)
        else:
            turned = self("Concat", real, other, axis=3)
        if 2 * half == x.shape[3]:
            return turned
        return self("Concat", turned, self.part(x, 3, 2 * half, x.shape[3]), axis=3)

    def attention(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        *,
        scale: float = 0.0,
        softcap: float = 0.0,
        visible: Tensor | Array | None = None,
        added: Sequence[Tensor] = (),
    ) -> Tensor:
        """softmax(q · k) · v of (batch, heads, steps, size); heads of keys may serve several of queries."""
        heads = q.shape[1]
        k, v = self._repeated(k, heads), self._repeated(v, heads)
        scores = self("MatMul", q, self("Transpose", k, perm=[0, 1, 3, 2]))
        scores = self("Mul", scores, np.array(scale or q.shape[3] ** -0.5, np.float32))
        if softcap:
            limit = np.array(softcap, np.float32)
            scores = self("Mul", self("Tanh", self("Div", scores, limit)), limit)
        for mask in added:
            scores = self("Add", scores, mask)
        if visible is not None:
            scores = self("Where", visible, scores, np.array(-np.inf, np.float32))
        return self("MatMul", self("Softmax", scores, axis=-1), v)

    def _repeated(self, x: Tensor, heads: int) -> Tensor:
        batch, groups, steps, size = x.shape
        if groups == heads:
            return x
        shape = np.array([batch, groups, heads // groups, steps, size], np.int64)
        wide = self("Expand", self.reshape(x, batch, groups, 1, steps, size), shape)
        return self.reshape(wide, batch, heads, steps, size)

    def causal(self, start: Tensor | Array, steps: int, keys: int, window: int = 0) -> Tensor:
        """(batch, 1, steps, keys): which keys the queries from number ``start`` of each batch on see."""
        places = np.arange(keys, dtype=np.int64)[None, None, None, :]
        begin = start if isinstance(start, Tensor) else self.build.constant(start)
        row = self.reshape(self.positions(begin, steps), begin.elements, 1, steps, 1)
        visible = self("LessOrEqual", places, row)
        if not 0 < window < keys:
            return visible
        return self("And", visible, self("Greater", places, self("Sub", row, np.array(window, np.int64))))
