# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Attention whose past grows: where past and present are a state, the past is a cache of the longest length.

In the file the present is the past followed by the new keys and values, one row longer after every run. A
compiled model writes the new rows behind those that the runs before have filled, and counts them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyml.base.errors import UnsupportedError
from tinyml.ir import DType, Tensor, TensorType
from tinyml.ops.attention.composed import Composition
from tinyml.ops.framework.reading import Builder, OnnxNode
from tinyml.ops.indexing.tensor_scatter import TensorScatter


def is_cache(build: Builder, past: Tensor | None) -> bool:
    """Whether a past is a state of the model."""
    return past is not None and past.name in build.states


def filled_rows(of: Composition, steps: int, longest: int) -> Tensor:
    """(1,): how many rows the runs before have filled; all caches of a model have the same number."""
    build = of.build
    if build.filled is None:
        rows = build.state("filled rows", TensorType((1,), DType.INT64))
        following = of("Add", rows, np.array([steps], np.int64))
        build.update(rows, of("Min", following, np.array([longest], np.int64)))
        build.filled = rows, steps, longest
    rows, known, length = build.filled
    if (steps, longest) != (known, length):
        raise UnsupportedError(
            f"{of.node.op_type} node {of.node.name!r} adds {steps} rows to a cache of {longest}; "
            f"another node adds {known} to one of {length}",
            "give all caches the same length: --shape",
        )
    return rows


def appended(of: Composition, past: Tensor, new: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """The cache with the new rows, and the number of rows before them."""
    steps, longest = new.shape[axis], past.shape[axis]
    if steps > longest or past.elements != new.elements // steps * longest:
        raise UnsupportedError(
            f"{of.node.op_type} node {of.node.name!r} has a past of {past.shape} for {new.shape}",
            "--shape gives a past the longest length: --shape past_key=1x2x128x16",
        )
    rows = filled_rows(of, steps, longest)
    starts = rows if past.shape[0] == 1 else of("Expand", rows, np.array([past.shape[0]], np.int64))
    return of.build.add1(TensorScatter(axis), [past, new, starts]), rows


def seen(of: Composition, rows: Tensor, steps: int, keys: int, causal: bool) -> Tensor:
    """(1, 1, steps, keys): the keys that are filled; if it is causal, none after a query."""
    if causal or steps == 1:
        return of.causal(rows, steps, keys)
    places = np.arange(keys, dtype=np.int64)[None, None, None, :]
    return of("Less", places, of.reshape(of("Add", rows, np.array([steps], np.int64)), 1, 1, 1, 1))


def refuse_masks(node: OnnxNode, *masks: Tensor | None) -> None:
    if any(mask is not None for mask in masks):
        raise UnsupportedError(
            f"{node.op_type} node {node.name!r} has a mask whose length grows with its past",
            "export the model without it: keys that are not filled are never read",
        )


def read_attention(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    """ONNX's own Attention with a past that is a state."""
    of = Composition(node, build)
    q, k, v, past_key, past_value = (node.input(i) for i in (0, 1, 2, 4, 5))
    refuse_masks(node, node.optional(3), node.optional(6))
    if node.wants(3) or q.shape[0] != 1:
        raise UnsupportedError(
            f"{node.op_type} node {node.name!r} has batches or gives its scores, and a past that is a state"
        )
    flat = len(q.shape) == 3
    if flat:
        groups = int(node.attr("kv_num_heads", 1))
        q, k, v = of.apart(q, int(node.attr("q_num_heads", 1))), of.apart(k, groups), of.apart(v, groups)
    steps = q.shape[2]
    k, rows = appended(of, past_key, k, 2)
    v, _ = appended(of, past_value, v, 2)
    y = of.attention(
        *(q, k, v),
        scale=float(node.attr("scale", 0.0)),
        softcap=float(node.attr("softcap", 0.0)),
        visible=seen(of, rows, steps, k.shape[2], bool(node.attr("is_causal", 0))),
    )
    return [of.joined(y) if flat else y, k, v]
