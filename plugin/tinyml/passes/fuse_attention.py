# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Product of queries and keys → softmax → product with values becomes attention, without the scores."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, cast

import numpy as np

from tinyml.ir import Array, DType, Graph, Layer, Node
from tinyml.ir.constraints import operand_problem
from tinyml.ops.attention.attention import Attention
from tinyml.ops.attention.attention_int8 import AttentionInt8, has_form
from tinyml.ops.attention.heads import BIAS, MASK, MOST_HEADS, Heads, K, Q, V
from tinyml.ops.dense.matmul import MatMul
from tinyml.ops.elementwise.cast import Cast
from tinyml.ops.softmax.exp_table import SoftmaxTable
from tinyml.ops.softmax.softmax import Softmax
from tinyml.passes._attention_masks import Scores, Shown, causal_past, visible_keys
from tinyml.passes._attention_rows import Operand, destination, source, turned
from tinyml.passes._attention_scores import Path, bias_of, in_real_numbers, path_to, scores_of, table_of
from tinyml.passes.editor import Editor
from tinyml.passes.remove_dead_code import remove_dead_code


def fuse_attention(graph: Graph) -> Graph:
    """The matrix of scores grows with the square of the length; one row of it is enough.

    Bytes give the same bits as before, floats differ by the order of additions.
    """
    edit = Editor(graph)
    changed = False
    for node in edit.sweep():
        if isinstance(node.op, MatMul):
            changed |= _fuse(edit, node)
    return remove_dead_code(edit.graph()) if changed else graph


def _fuse(edit: Editor, second: Node) -> bool:
    path = path_to(edit, second.inputs[0])
    if path is None:
        return False
    scores, y = edit.tensors[path.scores], edit.tensors[second.outputs[0]]
    weights, lead = edit.tensors[second.inputs[0]], y.shape[:-2]
    if weights.shape[:-2] != lead or scores.elements != weights.elements or not scores.shape[-1] > 1:
        return False
    if not y.elements or not 0 < math.prod(lead) <= MOST_HEADS:
        return False
    if scores.shape[:-2] != lead and math.prod(scores.shape[:-2]) != math.prod(lead):
        return False
    new: list[Node] = []
    q, k = reversed(path.product.inputs) if path.swapped else path.product.inputs
    scaled = scores.quant is None
    first = source(edit, q, scores.shape[:-2], turned=path.swapped, scaled=scaled)
    keys = source(edit, k, scores.shape[:-2], turned=not path.swapped, scaled=scaled)
    values = source(edit, second.inputs[1], lead)
    if keys is None and not path.swapped and edit.tensors[k].shape[:-2] == scores.shape[:-2]:
        node, keys = turned(edit, k)
        new.append(node)
    if first is None or keys is None or values is None:
        return False
    moves, result = destination(edit, second)
    places: dict[str, Any] = {
        "shape": edit.tensors[result.name].shape,
        "queries": y.shape[-2],
        "keys": scores.shape[-1],
        "depth": edit.tensors[q].shape[-2 if path.swapped else -1],
        "values": y.shape[-1],
    }
    for word, operand in zip("qkvy", (first, keys, values, result), strict=True):
        places |= {f"{word}_starts": operand.rows.starts, f"{word}_step": operand.rows.step}
    operands = (first, keys, values)
    form = _bytes if scores.quant is not None else _floats
    found = form(edit, path, second, places, operands, new)
    if found is None:
        return False
    op, more = found
    names = (*(operand.name for operand in operands), *more)
    if operand_problem(op, [edit.tensors[name] if name else None for name in names]) is not None:
        return False
    fused = Node(second.name, op, names, (result.name,))
    if isinstance(op, AttentionInt8) and not has_form(cast(Layer[AttentionInt8], edit.layer(fused))):
        return False
    edit.replace([second, *moves], [*new, fused])
    return True


def _floats(
    edit: Editor,
    path: Path,
    second: Node,
    places: dict[str, Any],
    operands: tuple[Operand, ...],
    new: list[Node],
) -> tuple[Heads, tuple[str, ...]] | None:
    softmax = path.softmax.op
    if not isinstance(softmax, Softmax):
        return None
    tensors = [
        edit.tensors[name] for node in (path.product, second) for name in (*node.inputs, *node.outputs)
    ]
    if any(t.dtype is not DType.FLOAT32 or t.quant is not None for t in tensors):
        return None
    scores = scores_of(edit, path)
    if scores is None or (path.empty and path.empty != scores.masked_by):
        return None
    shown = scores.shown
    if softmax.beta != 1.0 and (scores.mask or shown or scores.softcap):
        return None
    rows = scores.rows if shown is None else shown.rows
    op = Attention(
        **places,
        scale=scores.scale * softmax.beta * operands[0].factor * operands[1].factor,
        softcap=scores.softcap,
        low=scores.low if shown is None else shown.blind.low,
        empty=bool(path.empty or (path.guarded and scores.masked_by)) and not scores.position,
        causal=scores.past is not None,
        past=scores.past or 0,
        mask_starts=rows.starts,
        mask_step=rows.step,
        inverted=scores.inverted if shown is None else shown.inverted,
        later=0.0 if scores.later is None else scores.later.low,
        later_replaces=scores.later is not None and scores.later.replaces,
        bias_starts=scores.bias_rows.starts,
        bias_step=scores.bias_rows.step,
    )
    mask = scores.mask if shown is None else _bits(edit, shown, new)
    if scores.position:
        return _one_by_one(op) if scores.alike else op, (mask, scores.position)
    return op, (mask, "", scores.bias) if scores.bias else (mask,) if mask else ()


def _bytes(
    edit: Editor,
    path: Path,
    second: Node,
    places: dict[str, Any],
    operands: tuple[Operand, ...],
    new: list[Node],
) -> tuple[Heads, tuple[str, ...]] | None:
    softmax, product = path.softmax.op, path.product.op
    assert isinstance(softmax, Softmax | SoftmaxTable) and isinstance(product, MatMul)
    scores, weights = edit.tensors[path.scores], edit.tensors[path.weights]
    between, real = path.between, Scores()
    if edit.tensors[path.softmax.inputs[0]].quant is None:
        apart = in_real_numbers(edit, path)
        if apart is None:
            return None
        between, real = apart
    last = between[-1].outputs[0] if between else path.scores
    stored = (edit.tensors[last], scores, weights, edit.tensors[second.outputs[0]])
    if any(t.dtype is not DType.INT8 or t.quant is None or t.quant.per_channel for t in stored):
        return None
    if product != second.op or scores.quant is None or weights.quant is None:
        return None
    if path.empty and not ((real.position or real.shown) and path.empty == real.masked_by):
        return None  # with a position, every query sees a key
    if path.guarded and between is path.between:
        return None  # without a mask, scores that were bytes are numbers, and so are their weights
    sums = bias_of(edit, between, path)
    table: tuple[int, ...] = ()
    scaled = scores.quant
    mapping = between if sums is None else between[:-1]
    if mapping:
        mapped = table_of(edit, mapping)
        if mapped is None:
            return None
        table, scaled = mapped
    biased: dict[str, Any] = {}
    if sums is not None:
        if real.alike:
            return None
        biased = {
            "unbiased": scaled,
            "add_once": sums.once,
            "bias_starts": sums.rows.starts,
            "bias_step": sums.rows.step,
        }
        scaled = edit.tensors[last].quant or scaled
    visible: Array | None = None
    if real.mask:
        shape = (places["queries"], places["keys"])
        visible = None if real.position else visible_keys(edit, real, shape)
        if visible is None:
            return None
        past = causal_past(visible[0]) if len(visible) == 1 else None
        if past is not None:
            real, visible = replace(real, past=past), None
    tables, starts = (None, ()) if visible is None else _shared(visible)
    shown = real.shown
    op = AttentionInt8(
        **places,
        scores=scores.quant,
        table=table,
        scaled=scaled,
        weights=weights.quant,
        beta=softmax.beta * real.scale,
        by_table=isinstance(softmax, SoftmaxTable) or between is not path.between,
        round_once=product.round_once,
        causal=real.past is not None,
        past=real.past or 0,
        mask_starts=starts,
        mask_step=0 if tables is None else places["keys"],
        **biased,
    )
    more: tuple[str, ...] = ()
    if shown is not None:
        op, more = _shown(edit, op, shown, new)
    elif tables is not None:
        more = (edit.constant(f"{second.name} visible", tables).name,)
    elif real.position:
        more = ("", real.position)
    if sums is not None:
        more = (*more, *[""] * (BIAS - MASK - len(more)), sums.bias)
    return _one_by_one(op) if real.alike else op, more


def _shared(visible: Array) -> tuple[Array, tuple[int, ...]]:
    """The tables of heads that differ, and where that of each head starts; nowhere if there is one."""
    tables, places = np.unique(visible, axis=0, return_inverse=True)
    size = visible[0].size
    return tables, tuple(int(place) * size for place in places.reshape(-1)) if len(visible) > 1 else ()


def _shown(
    edit: Editor, op: AttentionInt8, shown: Shown, new: list[Node]
) -> tuple[AttentionInt8, tuple[str, ...]]:
    """With the bits that say which keys are seen."""
    masked = replace(
        op,
        mask_starts=shown.rows.starts,
        mask_step=shown.rows.step,
        inverted=shown.inverted,
        blind=shown.blind.form,
        blind_keys=shown.blind.keys,
    )
    return masked, (_bits(edit, shown, new),)


def _bits(edit: Editor, shown: Shown, new: list[Node]) -> str:
    """The tensor of bool, perhaps of a new node."""
    bits = edit.tensors[shown.name]
    if bits.dtype is not DType.BOOL:
        node, bits = edit.make(shown.name, Cast(DType.BOOL), [bits])
        new.append(node)
    return bits.name


def _one_by_one(op: Heads) -> Heads:
    """Each query is a head: exporters join the queries that share keys, of which none is before another."""
    starts = {
        f"{word}_starts": tuple(start + row * step for start in rows.starts for row in range(op.queries))
        for word, rows in (("q", op.read[Q]), ("y", op.written))
        for step in (rows.step,)
    }
    starts |= {
        f"{word}_starts": tuple(start for start in rows.starts for _ in range(op.queries))
        for word, rows in (("k", op.read[K]), ("v", op.read[V]))
    }
    return replace(op, queries=1, **starts)  # type: ignore[arg-type]
