# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Trees: sums of what the leaves of decision trees hold. Random forests, boosted trees.

Nodes are stored in depth-first order, so the next node after a "yes" follows directly, and only the target of
a "no" is stored. All comparisons are "at most"; the readers convert the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tinyml.ir import Array, DType, Layer, Op, Tensor, TensorType, given
from tinyml.kernel import Kernel, Sheet, register_kernels
from tinyml.ops.shared.operands import present

X, ROOTS, FEATURES, LIMITS, OTHERS, STARTS, TARGETS, WEIGHTS, MISSING = range(9)

LEAF = -1


def rows_of_features(layer: Layer[Trees]) -> bool:
    """The input has 2 axes."""
    return len(layer.input(X).shape) == 2


def sound_trees(layer: Layer[Trees]) -> bool:
    """Every node compares a feature of the input and leads to later nodes, every leaf to its own weights."""
    tables = [tensor.data for tensor in layer.inputs[ROOTS : WEIGHTS + 1] if tensor is not None]
    if len(tables) != WEIGHTS or any(table is None for table in tables):
        return False
    roots, features, limits, others, starts, targets, weights = (np.asarray(table) for table in tables)
    nodes, numbers = len(features), np.arange(len(features))
    leaf = features == LEAF
    missing = layer.inputs[MISSING] if len(layer.inputs) > MISSING else None
    return bool(
        nodes == len(limits) == len(others)
        and (missing is None or missing.shape == (nodes,))
        and np.all((roots >= 0) & (roots < nodes))
        and np.all(features >= LEAF)
        and np.all(features < layer.input(X).shape[1])
        and np.all(leaf | ((others > numbers) & (others < nodes) & (numbers + 1 < nodes)))
        and np.all(~leaf | ((others >= 0) & (others < len(starts) - 1)))
        and np.all(np.diff(starts) >= 0)
        and (len(starts) == 0 or (starts[0] >= 0 and starts[-1] <= len(weights)))
        and len(targets) == len(weights)
        and np.all((targets >= 0) & (targets < layer.op.outputs))
    )


@dataclass(frozen=True)
class Trees(Op):
    """Inputs, all but x constants: x; the first node of each tree; for each node the feature it compares
    (-1: a leaf), the limit, and the node that a "no" leads to (for leaves: their number); for each leaf
    where its weights begin; for each weight the output it is added to, and the weight. Optionally for each
    node whether an x that is not a number counts as "yes"."""

    operands = (present(1), rows_of_features, sound_trees)
    outputs: int = 1

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        return (TensorType((given(inputs, X).shape[0], self.outputs), DType.FLOAT32),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x, roots, features, limits, others, starts, targets, weights = (
            given(inputs, i) for i in range(WEIGHTS + 1)
        )
        missing = given(inputs, MISSING) if len(inputs) > MISSING else np.zeros(len(features), np.int8)
        y = np.zeros((len(x), self.outputs), np.float32)
        for row, sums in zip(x, y, strict=True):
            for root in roots:
                node = int(root)
                while features[node] != LEAF:
                    value = row[features[node]]
                    yes = value <= limits[node] or (np.isnan(value) and missing[node])
                    node = node + 1 if yes else int(others[node])
                leaf = int(others[node])
                for k in range(int(starts[leaf]), int(starts[leaf + 1])):
                    sums[targets[k]] += weights[k]
        return (y,)


def tables_of_trees(layer: Layer) -> bool:
    """The input is float32, and the trees are constants."""
    return layer.input(X).dtype is DType.FLOAT32 and all(
        tensor is not None and tensor.is_constant for tensor in layer.inputs[ROOTS:]
    )


class TreesLoops(Kernel[Trees]):
    """From root to leaf, one comparison per level."""

    name = "tree walk"
    constraints = (tables_of_trees,)

    def emit(self, layer: Layer[Trees], sheet: Sheet) -> None:
        x, y, outputs = layer.input(X), sheet.y(), layer.output.shape[1]
        with sheet.block(f"for (int32_t r = 0; r < {x.shape[0]}; r++) {{"):
            sheet.line(f"const float *const row = &{sheet.x(X)}[r * {x.shape[1]}];")
            sheet.line(f"float *const sums = &{y}[r * {outputs}];")
            sheet.line()
            with sheet.block(f"for (int32_t k = 0; k < {outputs}; k++) {{"):
                sheet.line("sums[k] = 0.0f;")
            with sheet.block(f"for (int32_t t = 0; t < {layer.input(ROOTS).elements}; t++) {{"):
                sheet.line(f"int32_t n = {sheet.x(ROOTS)}[t];")
                sheet.line()
                with sheet.block(f"while ({sheet.x(FEATURES)}[n] >= 0) {{"):
                    sheet.line(f"const float v = row[{sheet.x(FEATURES)}[n]];")
                    question = f"v <= {sheet.x(LIMITS)}[n]"
                    if layer.has_input(MISSING):
                        question = f"({question} || (v != v && {sheet.x(MISSING)}[n] != 0))"
                    sheet.line()
                    sheet.line(f"n = {question} ? n + 1 : {sheet.x(OTHERS)}[n];")
                starts, leaf = sheet.x(STARTS), f"{sheet.x(OTHERS)}[n]"
                with sheet.block(f"for (int32_t k = {starts}[{leaf}]; k < {starts}[{leaf} + 1]; k++) {{"):
                    sheet.line(f"sums[{sheet.x(TARGETS)}[k]] += {sheet.x(WEIGHTS)}[k];")


register_kernels(Trees, TreesLoops())
