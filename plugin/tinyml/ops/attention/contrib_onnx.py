# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""onnxruntime's operators of attention, as exporters and optimisers of language models write them.

They are read as standard operators, of which ``fuse_attention`` makes one again.
``docs/contrib_ops`` of onnxruntime defines them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from tinyml.base.errors import ModelError, UnsupportedError
from tinyml.ir import Tensor
from tinyml.ops.attention.composed import Composition
from tinyml.ops.attention.grown import appended, is_cache, refuse_masks, seen
from tinyml.ops.framework.reading import MALFORMED, Builder, OnnxNode, onnx_op
from tinyml.ops.fused_onnx import MICROSOFT
from tinyml.ops.indexing.tensor_scatter import TensorScatter


def _refuse(node: OnnxNode, what: str, advice: str = "") -> UnsupportedError:
    return UnsupportedError(f"{node.op_type} node {node.name!r} {what}, which is not supported", advice)


def _rank(node: OnnxNode, x: Tensor, *ranks: int) -> Tensor:
    if len(x.shape) not in ranks:
        raise ModelError(f"{node.op_type} node {node.name!r} has an input of shape {x.shape}", MALFORMED)
    return x


def _heads(node: OnnxNode, name: str, *widths: int) -> int:
    """The number of heads, which the elements of each step are divided into."""
    heads = int(node.attr(name, 0))
    if heads < 1:
        raise ModelError(f"{node.op_type} node {node.name!r}: {name} is {heads}, below 1", MALFORMED)
    for width in widths:
        if width % heads:
            raise ModelError(
                f"{node.op_type} node {node.name!r}: {name} is {heads}, which does not divide the {width} "
                "elements of a step",
                MALFORMED,
            )
    return heads


@onnx_op("RotaryEmbedding", domain=MICROSOFT)
def read_rotary(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    """Positions are one number, that of the first step, or one for each step."""
    of = Composition(node, build)
    x, positions, cosines, sines = (node.input(i) for i in range(4))
    _rank(node, x, 3, 4)
    if int(node.attr("is_packed_batching", 0)):
        raise _refuse(node, "has batches of several lengths")
    if len(x.shape) == 4:
        apart = x
    elif int(node.attr("rotary_embedding_dim", 0)) or int(node.attr("num_heads", 0)):
        apart = of.apart(x, _heads(node, "num_heads", x.shape[2]))
    else:
        size = 2 * _rank(node, cosines, 2).shape[1]
        if x.shape[2] % size:
            raise ModelError(f"{node.op_type} node {node.name!r} has an input of shape {x.shape}", MALFORMED)
        apart = of.apart(x, x.shape[2] // size)
    steps = apart.shape[2]
    positions = of.int64(positions)
    places = (
        of.positions(positions, steps)
        if positions.elements == 1 and steps > 1
        else of.reshape(positions, -1, steps)
    )
    y = of.rotated(apart, (cosines, sines), places, bool(node.attr("interleaved", 0)))
    return [y if len(x.shape) == 4 else of.joined(y)]


@onnx_op("GroupQueryAttention", domain=MICROSOFT)
def read_grouped(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    """The cache has the longest length; new keys and values are written at the end of its valid part."""
    of = Composition(node, build)
    _check_grouped(node)
    query, key, value = _rank(node, node.input(0), 3), node.optional(1), node.optional(2)
    heads, groups = _heads(node, "num_heads"), _heads(node, "kv_num_heads")
    batch, steps, width = query.shape
    if key is None or value is None:
        if width % (heads + 2 * groups):
            raise ModelError(
                f"{node.op_type} node {node.name!r}: queries, keys and values of {heads} + {groups} + "
                f"{groups} heads are {width} elements wide",
                MALFORMED,
            )
        size = width // (heads + 2 * groups)
        ends = [0, heads * size, (heads + groups) * size, (heads + 2 * groups) * size]
        query, key, value = (of.part(query, 2, a, b) for a, b in pairwise(ends))
    if heads % groups:
        what = f"kv_num_heads is {groups}, which does not divide num_heads, {heads}"
        raise ModelError(f"{node.op_type} node {node.name!r}: {what}", MALFORMED)
    _heads(node, "num_heads", query.shape[2])
    _heads(node, "kv_num_heads", key.shape[2], value.shape[2])
    q, k, v = of.apart(query, heads), of.apart(key, groups), of.apart(value, groups)
    past_key, past_value = node.optional(3), node.optional(4)
    lengths = of.reshape(of.int64(node.input(5)), batch)
    start: Tensor = build.constant(np.zeros(batch, np.int64))
    if past_key is not None:
        start = lengths if steps == 1 else of("Sub", lengths, np.array([steps - 1], np.int64))
    if int(node.attr("do_rotary", 0)):
        tables = node.input(7), node.input(8)
        given = node.optional(9)
        places = of.positions(start, steps) if given is None else of.reshape(of.int64(given), -1, steps)
        interleaved = bool(node.attr("rotary_interleaved", 0))
        q, k = (of.rotated(x, tables, places, interleaved) for x in (q, k))
    if past_key is not None and past_value is not None:
        for past in (past_key, past_value):
            if past.shape[2] < steps:
                raise _refuse(node, f"has a cache of length {past.shape[2]} for {steps} steps", LONGEST)
        k, v = (
            build.add1(TensorScatter(2), [past, new, start]) for past, new in ((past_key, k), (past_value, v))
        )
    keys = k.shape[2]
    if int(node.attr("causal", 1)):
        visible = of.causal(start, steps, keys, int(node.attr("local_window_size", -1)))
    else:
        last = of.reshape(lengths, batch, 1, 1, 1)
        visible = of("LessOrEqual", np.arange(keys, dtype=np.int64)[None, None, None, :], last)
    bias = node.optional(10)
    y = of.attention(
        *(q, k, v),
        scale=float(node.attr("scale", 0.0)),
        softcap=float(node.attr("softcap", 0.0)),
        visible=visible,
        added=() if bias is None else (bias,),
    )
    return [of.joined(y), k, v]


LONGEST = "--shape sets the length of the cache: --shape past_key=1x2x128x16"


def _check_grouped(node: OnnxNode) -> None:
    if node.optional(11) is not None or int(node.attr("smooth_softmax", 0)) > 0:
        raise _refuse(node, "adds a term to the sum of its softmax")
    if any(node.optional(i) is not None for i in (12, 13)):
        raise _refuse(node, "has a quantised cache", "export it with a cache of floats")
    if any(node.optional(i) is not None for i in (14, 15)):
        raise _refuse(node, "normalises queries and keys")
    if int(node.attr("sliding_window_cache", 0)):
        raise _refuse(node, "has a cache as long as its window")
    _both_pasts(node, node.optional(3), node.optional(4))


def _both_pasts(node: OnnxNode, keys: Tensor | None, values: Tensor | None) -> None:
    if (keys is None) != (values is None):
        found, missing = ("values", "keys") if keys is None else ("keys", "values")
        raise ModelError(f"{node.op_type} node {node.name!r} has past {found} without {missing}", MALFORMED)


@onnx_op("MultiHeadAttention", domain=MICROSOFT)
def read_multi_head(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    """Past keys and values come before the new ones."""
    of = Composition(node, build)
    query, key, value = _rank(node, node.input(0), 3, 5), node.optional(1), node.optional(2)
    if any(node.optional(i) is not None for i in (8, 9)):
        raise _refuse(node, "writes into a buffer that it shares", "export it with past and present apart")
    heads = _heads(node, "num_heads")
    if len(query.shape) == 5:  # (batch, steps, heads, 3, size)
        packed = query
        query, key, value = (_unpacked(of, packed, i) for i in range(3))
    elif key is not None and len(key.shape) == 5:
        packed = key
        key, value = (_unpacked(of, packed, i) for i in range(2))
    if key is None or value is None:
        raise ModelError(f"{node.op_type} node {node.name!r} has no keys or values", MALFORMED)
    _heads(node, "num_heads", *(x.shape[2] for x in (query, key, value) if len(x.shape) == 3))
    for x in (key, value):
        if len(_rank(node, x, 3, 4).shape) == 4 and x.shape[1] != heads:
            what = f"num_heads is {heads}, and keys or values have {x.shape[1]} heads"
            raise ModelError(f"{node.op_type} node {node.name!r}: {what}", MALFORMED)
    bias = node.optional(3)
    if bias is not None:
        query, key, value = _biased(of, (query, key, value), bias)
    q, k, v = (x if len(x.shape) == 4 else of.apart(x, heads) for x in (query, key, value))
    past = node.optional(6), node.optional(7)
    _both_pasts(node, *past)
    rows: Tensor | None = None
    if past[0] is not None and past[1] is not None:
        if is_cache(build, past[0]):
            refuse_masks(node, node.optional(4), node.optional(5))
            (k, rows), (v, _) = appended(of, past[0], k, 2), appended(of, past[1], v, 2)
        else:
            k, v = of("Concat", past[0], k, axis=2), of("Concat", past[1], v, axis=2)
    y = _plain(of, q, k, v, node.optional(4), node.optional(5), rows)
    return [of.joined(y), k, v]


@onnx_op("Attention", domain=MICROSOFT)
def read_attention(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    """The input is projected to queries, keys and values; past keys and values are one tensor."""
    of = Composition(node, build)
    x, weights, bias, past = _rank(node, node.input(0), 3), node.input(1), node.optional(2), node.optional(4)
    if int(node.attr("do_rotary", 0)):
        raise _refuse(node, "computes rotary embeddings")
    if node.optional(6) is not None or int(node.attr("past_present_share_buffer", 0)):
        raise _refuse(node, "writes into a buffer that it shares", "export it with past and present apart")
    sizes = node.ints("qkv_hidden_sizes", (_rank(node, weights, 2).shape[1] // 3,) * 3)
    heads = _heads(node, "num_heads", *sizes)
    projected = of("MatMul", x, weights)
    if bias is not None:
        projected = of("Add", projected, bias)
    ends = np.cumsum([0, *sizes])
    q, k, v = (of.apart(of.part(projected, 2, int(a), int(b)), heads) for a, b in pairwise(ends))
    if past is not None and is_cache(build, past):
        refuse_masks(node, node.optional(3), node.optional(5))
        both = of("Concat", *(of.reshape(t, 1, *t.shape) for t in (k, v)), axis=0)
        present, rows = appended(of, past, both, 3)
        k, v = (of.reshape(of.part(present, 0, i, i + 1), *past.shape[1:]) for i in range(2))
        return [of.joined(_plain(of, q, k, v, None, None, rows)), present]
    if past is not None:
        before = (of.reshape(of.part(past, 0, i, i + 1), *past.shape[1:]) for i in range(2))
        k, v = (of("Concat", old, new, axis=2) for old, new in zip(before, (k, v), strict=True))
    y = of.joined(_plain(of, q, k, v, node.optional(3), node.optional(5)))
    if not node.wants(1):
        return [y]
    return [y, of("Concat", *(of.reshape(t, 1, *t.shape) for t in (k, v)), axis=0)]


def _unpacked(of: Composition, x: Tensor, index: int) -> Tensor:
    """One of several tensors in (batch, steps, heads, several, size), as (batch, steps, heads * size)."""
    batch, steps, heads, _, size = x.shape
    return of.reshape(of.part(x, 3, index, index + 1), batch, steps, heads * size)


def _biased(of: Composition, tensors: Sequence[Tensor], bias: Tensor) -> list[Tensor]:
    """Of keys and values with a past, which have their heads apart, the bias has been added before."""
    ends = np.cumsum([0, *(t.shape[2] if len(t.shape) == 3 else t.shape[1] * t.shape[3] for t in tensors)])
    parts = [of.part(bias, 0, int(a), int(b)) for a, b in pairwise(ends)]
    return [of("Add", t, part) if len(t.shape) == 3 else t for t, part in zip(tensors, parts, strict=True)]


def _plain(
    of: Composition,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    bias: Tensor | None,
    rows: Tensor | None = None,
) -> Tensor:
    """Attention with the masks that MultiHeadAttention and Attention have in common.

    ``rows`` of a cache are filled before the new ones.
    """
    node = of.node
    batch, _, steps, _ = q.shape
    keys = k.shape[2]
    added = [] if bias is None else [bias]
    if mask is not None:
        if mask.shape not in ((batch, keys), (batch, steps, keys)):
            raise _refuse(node, f"has a mask of shape {mask.shape}", "give it an element for each key")
        wide = of.reshape(mask, batch, 1, mask.elements // batch // keys, keys)
        hidden = of("Equal", wide, np.zeros((), mask.dtype.numpy))
        low = np.array(node.attr("mask_filter_value", -10000.0), np.float32)
        added.append(of("Where", hidden, low, np.array(0, np.float32)))
    visible = None
    if rows is not None:
        visible = seen(of, rows, steps, keys, bool(node.attr("unidirectional", 0)))
    elif int(node.attr("unidirectional", 0)):
        visible = of.causal(np.array([keys - steps], np.int64), steps, keys)
    scale = float(node.attr("scale", 0.0))
    return of.attention(q, k, v, scale=scale, visible=visible, added=added)
