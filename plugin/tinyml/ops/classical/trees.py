# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Trees: sums of what the leaves of decision trees hold. Random forests, boosted trees.

Nodes are stored in depth-first order, so the next node after a "yes" follows directly, and only the target of
a "no" is stored. All comparisons are "at most"; the readers convert the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tinyml.base.lazy_dataclass import dataclass
from tinyml.cores.targets import Target
from tinyml.ir import Array, DType, Layer, Op, Tensor, TensorType, given
from tinyml.ops.classical import trees_played
from tinyml.ops.classical.tree_counts import tree_work
from tinyml.ops.classical.tree_integers import integer_limits, integer_weights
from tinyml.ops.classical.tree_stream import LEAF, Stream, packed, sorting_keys
from tinyml.ops.framework.kernel import Kernel, Sheet, register_kernels
from tinyml.ops.framework.work import Work
from tinyml.ops.shared.operands import present

X, ROOTS, FEATURES, LIMITS, OTHERS, STARTS, TARGETS, WEIGHTS, MISSING = range(9)


def rows_of_features(layer: Layer[Trees]) -> bool:
    """The input has 2 axes."""
    return len(layer.input(X).shape) == 2


def sound_trees(layer: Layer[Trees]) -> bool:
    """Every node compares a feature of the input and leads to later nodes; every leaf has its own weights."""
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
    node whether an x that is not a number counts as "yes".

    x and the limits may be stored integers. Weights may be integers as well: ``scale`` is what 1 stands for.
    """

    operands = (present(1), rows_of_features, sound_trees)
    outputs: int = 1
    scale: float = 1.0

    def infer(self, inputs: Sequence[Tensor | None]) -> tuple[TensorType, ...]:
        return (TensorType((given(inputs, X).shape[0], self.outputs), DType.FLOAT32),)

    def evaluate(self, layer: Layer, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x, roots, features, limits, others, starts, targets, weights = (
            given(inputs, i) for i in range(WEIGHTS + 1)
        )
        missing = given(inputs, MISSING) if len(inputs) > MISSING else np.zeros(len(features), np.int8)
        whole = weights.dtype.kind in "iu"
        y = np.zeros((len(x), self.outputs), np.int32 if whole else np.float32)
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
        return (y.astype(np.float32) * np.float32(self.scale) if whole else y,)

    def on_integers(
        self, inputs: Sequence[Tensor | None], stored: Tensor
    ) -> tuple[Op, Sequence[Array]] | None:
        """Integers are always numbers, so that ``MISSING`` is not needed."""
        roots, features, limits, others, starts, targets, weights = (
            given(inputs, i).value for i in range(ROOTS, WEIGHTS + 1)
        )
        if stored.quant is None or stored.dtype not in (DType.INT8, DType.INT16):
            return None
        whole = integer_limits(limits, features != LEAF, stored.quant, stored.dtype)
        if whole is None:
            return None
        leaves = integer_weights(weights, starts, targets, len(roots))
        values, scale = (weights, self.scale) if leaves is None else (leaves.values, leaves.scale)
        return replace(self, scale=scale), (roots, features, whole, others, starts, targets, values)


def tables_of_trees(layer: Layer) -> bool:
    """The input is float32, int8 or int16, and the trees are constants."""
    return layer.input(X).dtype in INPUTS and all(
        tensor is not None and tensor.is_constant for tensor in layer.inputs[ROOTS:]
    )


READERS = {DType.FLOAT32: "f32", DType.INT32: "s32", DType.INT16: "s16", DType.INT8: "s16"}
"""Types that are compared, and the functions that read a limit out of the stream."""

INPUTS = (DType.FLOAT32, DType.INT16, DType.INT8)


def worth_keys(layer: Layer[Trees]) -> bool:
    """Whether features are looked at so often that each is made an integer of the same order first.

    Integers are compared with fewer instructions, also on cores with an FPU.
    """
    return layer.input(X).dtype.is_float and 4 * layer.input(ROOTS).elements >= layer.input(X).shape[1]


def stream_of(layer: Layer[Trees]) -> Stream:
    """The tables of a layer as its kernel stores them."""
    missing = layer.input(MISSING).value if layer.has_input(MISSING) else None
    tables = [layer.input(i).value for i in range(ROOTS, WEIGHTS + 1)]
    if worth_keys(layer):
        tables[LIMITS - ROOTS] = sorting_keys(tables[LIMITS - ROOTS])
    return packed(tables, layer.input(X).shape[1], missing)


class TreeWalk(Kernel[Trees]):
    """From root to leaf, one comparison per level, along a stream of bytes."""

    name = "tree walk"
    constraints = (tables_of_trees,)

    def scratch_bytes(self, layer: Layer[Trees], target: Target) -> int:
        sums = 0 if layer.input(WEIGHTS).dtype.is_float else layer.op.outputs
        keys = layer.input(X).shape[1] if worth_keys(layer) else 0
        return 4 * (sums + keys)

    def emit(self, layer: Layer[Trees], sheet: Sheet) -> None:
        x, y, outputs = layer.input(X), sheet.y(), layer.op.outputs
        features, keys = x.shape[1], worth_keys(layer)
        whole = not layer.input(WEIGHTS).dtype.is_float
        stream = stream_of(layer)
        compared = DType.INT32 if keys else x.dtype
        sheet.include("<tinyml/trees.h>")
        if keys:
            sheet.line(f"int32_t *const row = {sheet.scratch};")
        if whole:
            sheet.line(f"int32_t *const sums = {f'&row[{features}]' if keys else sheet.scratch};")
        if keys or whole:
            sheet.line()
        with sheet.loop("r", x.shape[0]):
            if not keys:
                sheet.line(f"const {x.dtype.c} *const row = &{sheet.x(X)}[r * {features}];")
            if not whole:
                sheet.line(f"float *const sums = &{y}[r * {outputs}];")
            if not (keys and whole):
                sheet.line()
            if keys:
                with sheet.loop("k", features):
                    sheet.line(f"row[k] = tinyml_trees_key({sheet.x(X)}[r * {features} + k]);")
            with sheet.loop("k", outputs):
                sheet.line(f"sums[k] = {'0' if whole else '0.0f'};")
            with sheet.loop("t", len(stream.roots)):
                nodes, roots = sheet.table("nodes", stream.nodes), sheet.table("roots", stream.roots)
                sheet.line(f"const uint8_t *p = &{nodes}[{roots}[t]];")
                _walk(sheet, stream, features, compared, layer.has_input(MISSING))
                _add(sheet, stream, outputs)
            if whole:
                with sheet.loop("k", outputs):
                    sheet.line(f"{y}[r * {outputs} + k] = {sheet.number(layer.op.scale)} * (float)sums[k];")

    def loop_counts(self, layer: Layer[Trees], target: Target) -> Work | None:
        x, stream = layer.input(X), stream_of(layer)
        tables = [layer.input(i).value for i in range(ROOTS, STARTS + 1)]
        comparison = "key" if worth_keys(layer) else READERS[x.dtype]
        if layer.has_input(MISSING):
            comparison += ", missing"
        return tree_work(x.shape, layer.op.outputs, tables, stream, comparison)

    def play(self, layer: Layer[Trees], sheet: Sheet) -> None:
        missing = layer.has_input(MISSING)
        trees_played.play(layer, sheet, stream_of(layer), layer.op.scale, worth_keys(layer), missing)


def turns(most: int) -> str:
    """How often the loop on the next line turns: `tinyml bound` reads it (bounds/stated_turns.py)."""
    return f"/* at most {most} turn{'s' if most != 1 else ''} */"


def _walk(sheet: Sheet, stream: Stream, features: int, compared: DType, missing: bool) -> None:
    """From the root at ``p`` to a leaf, whose number is then ``leaf``."""
    head = "p[0]" if stream.head_bytes == 1 else "tinyml_trees_u16(p)"
    limit = stream.head_bytes
    no, end = limit + stream.limit_bytes, limit + stream.limit_bytes + stream.distance_bytes
    distance = f"tinyml_trees_u{8 * stream.distance_bytes}(&p[{no}])"
    yes = f"v <= tinyml_trees_{READERS[compared]}(&p[{limit}])"
    sheet.line(f"uint32_t head = {head};")
    sheet.line()
    sheet.line(turns(stream.levels))
    with sheet.block(f"while (head < {features}) {{"):
        sheet.line(f"const {compared.c} v = row[head];")
        if missing:
            mark = 1 << (8 * stream.distance_bytes - 1)
            sheet.line(f"const uint32_t no = {distance};")
            unknown = "v != v" if compared.is_float else "v == INT32_MAX"
            yes, distance = f"({yes} || ({unknown} && no >= {mark}u))", f"(no & {mark - 1}u)"
        sheet.line()
        sheet.line(f"p += {yes} ? {end} : {distance};")
        sheet.line(f"head = {head};")
    sheet.line()
    if not stream.number_bytes:
        sheet.line(f"const uint32_t leaf = head - {features};")
        return
    number = f"tinyml_trees_u{8 * stream.number_bytes}(&p[{stream.head_bytes}])"
    sheet.line(f"const uint32_t leaf = head < {stream.last_head} ? head - {features} : {number};")


def _add(sheet: Sheet, stream: Stream, outputs: int) -> None:
    """Add the weights of ``leaf`` to the sums."""
    targets = sheet.table("targets", stream.targets) if outputs > 1 else ""
    weights = sheet.table("weights", stream.weights)
    sheet.line()
    if stream.starts is None:
        sheet.line(f"sums[{f'{targets}[leaf]' if targets else '0'}] += {weights}[leaf];")
        return
    starts = sheet.table("starts", stream.starts)
    sheet.line(f"const uint32_t end = {starts}[leaf + 1];")
    sheet.line()
    sheet.line(turns(int(np.diff(stream.starts).max(initial=0))))
    with sheet.block(f"for (uint32_t k = {starts}[leaf]; k < end; k++) {{"):
        sheet.line(f"sums[{f'{targets}[k]' if targets else '0'}] += {weights}[k];")


register_kernels(Trees, TreeWalk())
