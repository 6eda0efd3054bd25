# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Graphs built by hand for tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tinyml.ir import Array, DType, Graph, Op, Quant, Tensor, TensorType
from tinyml.ops.framework.reading import Builder


class Sketch:
    """A graph in the making, with random weights from a seed."""

    def __init__(self, seed: int = 0) -> None:
        self.build = Builder()
        self.rng = np.random.default_rng(seed)
        self.inputs: list[Tensor] = []

    def input(self, shape: Sequence[int], dtype: DType = DType.INT8, quant: Quant | None = None) -> Tensor:
        tensor = self.build.tensor(f"in{len(self.inputs)}", TensorType(tuple(shape), dtype, quant))
        self.inputs.append(tensor)
        return tensor

    def add(
        self, op: Op, *inputs: Tensor | None, quant: Quant | None = None, dtype: DType | None = None
    ) -> Tensor:
        """Apply an operator; ``quant`` and ``dtype`` override what it infers."""
        self.build.scope = f"{op.kind}{len(self.build.nodes)}"
        inferred = op.infer(inputs)[0]
        type_ = TensorType(inferred.shape, dtype or inferred.dtype, quant or inferred.quant)
        return self.build.add1(op, inputs, type_)

    def constant(self, values: Any, quant: Quant | None = None, dtype: str = "float32") -> Tensor:
        return self.build.constant(np.asarray(values, dtype), "c", quant)

    def weights(self, shape: Sequence[int], axis: int = 0) -> Tensor:
        """Random int8 weights, quantised per channel along ``axis``."""
        scales = tuple(float(s) for s in self.rng.uniform(0.005, 0.02, shape[axis]))
        values = self.rng.integers(-127, 128, shape).astype(np.int8)
        return self.build.constant(values, "w", Quant(scales, (0,) * len(scales), axis))

    def bias(self, channels: int, spread: int = 2000, dtype: str = "int32") -> Tensor:
        return self.build.constant(self.rng.integers(-spread, spread, channels).astype(dtype), "b")

    def real(self, *shape: int) -> Tensor:
        return self.build.constant(self.rng.normal(0, 1, shape).astype(np.float32), "r")

    def graph(self, *outputs: Tensor) -> Graph:
        return Graph(
            "g",
            self.build.tensors,
            tuple(self.build.nodes),
            tuple(t.name for t in self.inputs),
            tuple(t.name for t in outputs),
        )

    def sample(self) -> dict[str, Array]:
        """Random values for the inputs."""
        arrays: dict[str, Array] = {}
        for t in self.inputs:
            if t.dtype.is_float:
                arrays[t.name] = self.rng.normal(0, 1, t.shape).astype(t.dtype.numpy)
            else:
                low, high = (0, 1) if t.dtype is DType.BOOL else t.dtype.limits
                wide = np.uint64 if t.dtype is DType.UINT64 else np.int64
                whole = self.rng.integers(low, high, t.shape, wide, endpoint=True)
                arrays[t.name] = whole.astype(t.dtype.numpy)
        return arrays


def kinds(graph: Graph) -> list[str]:
    """The operators of a graph, in order."""
    return [node.op.kind for node in graph.nodes]


def macs(graph: Graph) -> int:
    return sum(layer.op.macs(layer) for layer in graph.layers())
