# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The nodes of a decoder with growing caches, written anew for caches of the longest length.

Rows after the last valid one hold anything. So only operators that keep rows apart may read them, until
softmax hides them and a product with its weights adds up the rest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tinyml.base.errors import UnsupportedError
from tinyml.importers.growing_states import GrowingCache
from tinyml.importers.growing_values import Values
from tinyml.importers.onnx_outputs import free_names
from tinyml.ir import Array

ADVICE = "export the model with a cache of fixed length, which it writes at a position: docs/decoders.md"
ELEMENTWISE = {
    *("Abs", "Add", "And", "Cast", "CastLike", "Clip", "Div", "Dropout", "Equal", "Erf", "Exp", "Greater"),
    *(
        "GreaterOrEqual",
        "Identity",
        "IsInf",
        "IsNaN",
        "Less",
        "LessOrEqual",
        "Max",
        "Min",
        "Mul",
        "Neg",
        "Not",
    ),
    *("Or", "Pow", "Reciprocal", "Relu", "Sigmoid", "Sqrt", "Sub", "Tanh", "Where", "Xor"),
}
MOVES = {"Expand", "Reshape", "Squeeze", "Transpose", "Unsqueeze"}
SHAPES = {("Expand", 1), ("Reshape", 1)}
"""Operands that state a shape: with the longest length, they have its values."""


class Rewriting:
    """``position`` is the input, or the state, that says how many rows the runs before have filled."""

    def __init__(self, values: Values, longest: int, position: str) -> None:
        self.values, self.longest, self.steps = values, longest, values.steps
        self.constants: list[onnx.TensorProto] = []
        self._nodes: list[onnx.NodeProto] = []
        self._position = position
        self._renamed: dict[str, str] = {}  # varying values, as a run looks them up
        self._tables: dict[str, list[Array]] = {}
        self._weights: set[str] = set()  # results of softmax, 0 in rows that are not valid
        self._starts: dict[int, str] = {}  # the position, for each of so many
        self._guarded: dict[str, str] = {}  # results of IsNaN, and what they are of
        self._masks: dict[str, Array] = {}  # varying values that are the same for all lengths, once padded
        self._visible = ""

    def nodes(self) -> list[onnx.NodeProto]:
        graph = self.values.model.graph
        joins = {id(cache.concat): cache for cache in self.values.growing.caches}
        kept = [node for node in graph.node if not self.values.varying.issuperset(filter(None, node.output))]
        read = {name for node in kept for name in free_names(node)} | {v.name for v in graph.output}
        wanted = sorted(read & self.values.varying)
        self._tables = self.values.tabulated(wanted, range(self.longest - self.steps + 1))
        self._begin()
        by_output = {cache.concat.output[0]: cache for cache in joins.values()}
        for node in kept:
            cache = by_output.get(node.output[0])
            if cache is not None:
                self._write(cache)
            else:
                self._check(node)
                self._keep(node)
        self._refuse_outputs()
        for value in graph.output:
            if value.name in self.values.varying:
                self._add("Identity", self._varying(value.name, False), output=value.name)
        return self._nodes

    def _begin(self) -> None:
        """The position as one integer of 64 bits, and the number of rows after this run."""
        name = self._position
        flat = self._add("Reshape", name, self._ints(-1))
        if self.steps > 1 and self.values.growing.position:
            flat = self._add("Slice", flat, self._ints(0), self._ints(1), self._ints(0))
        self._first = self._add("Cast", flat, to=TensorProto.INT64)
        self._total = self._add("Add", self._first, self._ints(self.steps))
        if not self.values.growing.position:
            last = self._ints(self.longest)
            self._add("Min", self._total, last, output=f"{name}/next")

    # --- nodes ---------------------------------------------------------------------------------------

    def _write(self, cache: GrowingCache) -> None:
        """New rows at their places."""
        if cache.axis == 0:
            raise UnsupportedError(f"{cache.state.input!r} grows along its first axis", ADVICE)
        batches = self.values.short[cache.new].shape[0]
        if batches not in self._starts:
            self._starts[batches] = (
                self._first if batches == 1 else self._add("Expand", self._first, self._ints(batches))
            )
        operands = (cache.state.input, self._renamed.get(cache.new, cache.new), self._starts[batches])
        self._add("TensorScatter", *operands, output=cache.concat.output[0], axis=cache.axis)

    def _keep(self, node: onnx.NodeProto) -> None:
        captured = sorted((free_names(node) - set(node.input)) & self.values.varying)
        if captured:
            called = node.name or node.output[0]
            raise UnsupportedError(
                f"{node.op_type} node {called!r}: a branch reads {captured[0]!r}, which depends on the "
                "length of the past",
                ADVICE,
            )
        if node.op_type == "IsNaN":
            self._guarded[node.output[0]] = node.input[0]
        made = onnx.NodeProto()
        made.CopyFrom(node)
        for index, name in enumerate(node.input):
            if name in self.values.varying:
                made.input[index] = self._varying(name, (node.op_type, index) in SHAPES)
        kept = self._does_nothing(made)
        if kept:
            del made.input[:]
            del made.attribute[:]
            made.op_type = "Identity"
            made.input.append(kept)
        if node.op_type == "Softmax" and self.values.growing_axes(node.input[0]):
            made.input[0] = self._hidden(made.input[0])
            self._weights.add(node.output[0])
        self._nodes.append(made)

    def _does_nothing(self, node: onnx.NodeProto) -> str:
        """What a node gives unchanged: it adds a mask that hides nothing, or guards weights that are numbers.

        Every query sees a key, its own, so no row of scores is -inf throughout.
        """
        kept = ""
        masks = [name for name in node.input if name in self._masks]
        if node.op_type == "Where" and node.input[0] in masks and self._masks[node.input[0]].all():
            kept = node.input[1]
        elif node.op_type == "Add" and masks and not self._masks[masks[0]].any():
            kept = next((name for name in node.input if name not in masks), "")
        elif node.op_type == "Where" and node.output[0] in self._weights:
            kept = node.input[2] if self._guarded.get(node.input[0]) == node.input[2] else ""
        same = (
            kept in self.values.short
            and self.values.short[kept].shape == self.values.short[node.output[0]].shape
        )
        return kept if same else ""

    def _hidden(self, scores: str) -> str:
        """Scores of rows that are not valid are -inf."""
        if not self._visible:
            places = self._constant(np.arange(self.longest, dtype=np.int64))
            self._visible = self._add("Less", places, self._total)
        return self._add("Where", self._visible, scores, self._constant(np.array(-np.inf, np.float32)))

    def _varying(self, name: str, is_shape: bool) -> str:
        """A varying value as a run reads it."""
        arrays = self._tables[name]
        if is_shape:
            return self._constant(arrays[-1])
        if name not in self._renamed:
            self._renamed[name] = self._looked_up(name, arrays)
        return self._renamed[name]

    def _looked_up(self, name: str, arrays: Sequence[Array]) -> str:
        axes = self.values.growing_axes(name)
        if len(axes) > 1:
            raise UnsupportedError(f"{name!r} grows along two axes with the length of the past", ADVICE)
        full = [_padded(a, axes[0], self.longest) if axes else a for a in arrays]
        if any(a.shape != full[-1].shape for a in full):
            raise UnsupportedError(f"the shape of {name!r} depends on the length of the past", ADVICE)
        if all(np.array_equal(a, full[-1]) for a in full):
            constant = self._constant(full[-1])
            self._masks[constant] = full[-1]
            return constant
        shape = full[-1].shape
        lines = self._lines(full)
        if lines is None:
            row = self._add("Gather", self._constant(np.stack(full)), self._first, axis=0)
        else:  # a line for each token
            steps = self._constant(np.arange(self.steps, dtype=np.int64))
            row = self._add("Gather", self._constant(lines), self._add("Add", self._first, steps), axis=0)
        return self._add("Reshape", row, self._ints(*shape))

    def _lines(self, arrays: Sequence[Array]) -> Array | None:
        """(longest, ...): the lines of all tokens, if each has the same in every run that it is part of."""
        shape = arrays[0].shape
        axis = next((a for a, extent in enumerate(shape) if extent != 1), 0)
        if self.steps == 1 or not shape or shape[axis] != self.steps:
            return None
        runs = [array.reshape(self.steps, -1) for array in arrays]
        lines = np.concatenate([runs[0], *(run[-1:] for run in runs[1:])])
        same = all(np.array_equal(run, lines[i : i + self.steps]) for i, run in enumerate(runs))
        return lines if same else None

    # --- what may read rows that are not valid -------------------------------------------------------

    def _check(self, node: onnx.NodeProto) -> None:
        values = self.values
        pasts = {cache.state.input for cache in values.growing.caches}
        names = free_names(node)
        read = [name for name in names if name in values.short and not self._stated(node, name)]
        growing = [name for name in read if values.growing_axes(name)]
        if not growing:
            return
        if pasts & names:
            raise self._refused(node, f"reads {sorted(pasts & names)[0]!r} without its new rows")
        axes = {n: values.growing_axes(n) for n in (*growing, node.output[0])}
        for name, found in axes.items():
            if len(found) > 1:
                raise self._refused(node, f"reads or gives {name!r}, which grows along two axes")
        apart = (
            (node.op_type in ELEMENTWISE and self._aligned(node, axes))
            or (node.op_type in MOVES and self._moved(node, axes))
            or (node.op_type == "Softmax" and self._is_last(node))
            or (node.op_type == "MatMul" and self._multiplied(node, axes))
        )
        if not apart:
            raise self._refused(node, f"mixes the rows of {growing[0]!r}")
        if self._has_pole(node, growing):
            raise self._refused(node, f"may divide by zero in empty rows of {growing[0]!r}")
        if self._keeps_zeros(node):
            self._weights.update(node.output[:1])

    def _has_pole(self, node: onnx.NodeProto, growing: Sequence[str]) -> bool:
        """Whether zeros may become infinite: rows that are not valid hold them, and 0 times that is NaN."""
        if node.op_type == "Pow":
            power = self.values.short.get(node.input[1])
            return node.input[0] in growing and not (
                power is not None and power.is_constant and (power.value >= 0).all()
            )
        return node.op_type == "Reciprocal" or (node.op_type == "Div" and node.input[1] in growing)

    def _keeps_zeros(self, node: onnx.NodeProto) -> bool:
        """Whether weights stay weights; PyTorch replaces those that are not numbers by zeros."""
        if node.op_type == "Where":
            zero = self.values.short.get(node.input[1])
            cleared = zero is not None and zero.is_constant and not zero.value.any()
            return cleared and node.input[2] in self._weights
        return node.op_type in {"Cast", "Dropout", "Identity", *MOVES} and node.input[0] in self._weights

    def _stated(self, node: onnx.NodeProto, name: str) -> bool:
        return any((node.op_type, i) in SHAPES and n == name for i, n in enumerate(node.input))

    def _refused(self, node: onnx.NodeProto, what: str) -> UnsupportedError:
        called = node.name or node.output[0]
        return UnsupportedError(f"{node.op_type} node {called!r} {what}, whose number grows", ADVICE)

    def _behind(self, name: str, axis: int) -> int:
        return len(self.values.short[name].shape) - axis

    def _aligned(self, node: onnx.NodeProto, axes: dict[str, list[int]]) -> bool:
        places = {self._behind(name, found[0]) for name, found in axes.items() if found}
        return len(places) == 1 and bool(axes[node.output[0]])

    def _moved(self, node: onnx.NodeProto, axes: dict[str, list[int]]) -> bool:
        """The rows are still an axis, after as many elements; a transposition moves them anyway."""
        x, y = node.input[0], node.output[0]
        if not axes.get(x) or not axes[y]:
            return False
        if node.op_type != "Reshape":
            return True
        before = [math.prod(self.values.short[name].shape[: axes[name][0]]) for name in (x, y)]
        return before[0] == before[1]

    def _is_last(self, node: onnx.NodeProto) -> bool:
        rank = len(self.values.short[node.input[0]].shape)
        axis = next((a.i for a in node.attribute if a.name == "axis"), -1)
        return axis % rank == rank - 1 and self.values.growing_axes(node.input[0]) == [rank - 1]

    def _multiplied(self, node: onnx.NodeProto, axes: dict[str, list[int]]) -> bool:
        """Columns of the second matrix stay apart; the rows of values are added up by the weights."""
        a, b = node.input
        if a in axes and b in axes:
            summed = self._behind(a, axes[a][0]) == 1 and self._behind(b, axes[b][0]) == 2
            return summed and a in self._weights and not axes[node.output[0]]
        name = a if a in axes else b
        apart = self._behind(name, axes[name][0]) != (1 if name == a else 2)
        return apart and bool(axes[node.output[0]])

    def _refuse_outputs(self) -> None:
        presents = {cache.state.output for cache in self.values.growing.caches}
        for value in self.values.model.graph.output:
            if value.name not in presents and self.values.growing_axes(value.name):
                raise UnsupportedError(
                    f"the output {value.name!r} grows with the length of the past", "leave it out: --outputs"
                )

    # --- new names -----------------------------------------------------------------------------------

    def _add(self, op_type: str, *operands: str, output: str = "", **attributes: Any) -> str:
        name = output or f"cache/{op_type}.{len(self._nodes)}"
        self._nodes.append(helper.make_node(op_type, operands, [name], name=name, **attributes))
        return name

    def _constant(self, data: Array) -> str:
        name = f"cache/constant.{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(data).reshape(data.shape), name))
        return name

    def _ints(self, *numbers: int) -> str:
        return self._constant(np.array(numbers, np.int64))


def _padded(array: Array, axis: int, longest: int) -> Array:
    """With as many rows as the caches: further ones are like the first, which is seen if any is."""
    missing = longest - array.shape[axis]
    if missing < 0 or not array.shape[axis]:
        raise UnsupportedError("a value has more rows than the caches, or none", ADVICE)
    first = np.take(array, [0], axis=axis)
    return np.concatenate([array, np.repeat(first, missing, axis=axis)], axis=axis)
