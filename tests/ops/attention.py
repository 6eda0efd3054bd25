# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Attention: layouts of heads, masks, caps, and bytes at the ends of their range."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.support.cases import Case, Const, op_case
from tests.support.cases import Stored as Bytes
from tinyml.ir import Array, DType, Quant, TensorType
from tinyml.ops.attention.attention import Attention
from tinyml.ops.attention.attention_int8 import AttentionInt8
from tinyml.ops.attention.heads import BIAS, Heads, Rows, rows_of

SOFTMAX = Quant.per_tensor(1 / 256, -128)
STEPS = tuple(int(v) for v in np.clip(np.rint(np.arange(-128, 128) * 0.7 + 3), -128, 127))


def side_by_side(heads: int, rows: int, elements: int, offset: int = 0, width: int = 0) -> Rows:
    """Heads in one row after the other, from column ``offset`` of ``width`` on."""
    wide = width or heads * elements
    numbers = np.arange(rows * wide).reshape(rows, wide)[:, offset : offset + heads * elements]
    found = rows_of(numbers.reshape(rows, heads, elements).swapaxes(0, 1))
    assert found is not None
    return found


def apart(heads: int, rows: int, elements: int) -> Rows:
    return Rows(tuple(h * rows * elements for h in range(heads)), elements)


def places(size: tuple[int, int, int, int, int], joined: bool) -> dict[str, Any]:
    """Of (heads, queries, keys, depth, values); ``joined``: all of them as columns of one tensor."""
    heads, queries, keys, depth, values = size
    width = heads * (2 * depth + values)
    if joined:
        q = side_by_side(heads, queries, depth, 0, width)
        k = side_by_side(heads, keys, depth, heads * depth, width)
        v = side_by_side(heads, keys, values, 2 * heads * depth, width)
        y = side_by_side(heads, queries, values)
    else:
        q, k = apart(heads, queries, depth), apart(heads, keys, depth)
        v, y = apart(heads, keys, values), apart(heads, queries, values)
    shape = (queries, heads * values) if joined else (heads, queries, values)
    named: dict[str, Any] = {
        "shape": shape,
        "queries": queries,
        "keys": keys,
        "depth": depth,
        "values": values,
    }
    for word, rows in zip("qkvy", (q, k, v, y), strict=True):
        named |= {f"{word}_starts": rows.starts, f"{word}_step": rows.step}
    return named


def real(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).normal(0, 1, shape).astype(np.float32)


def operands(op: Heads, joined: bool) -> list[Array]:
    if joined:
        whole = real(1, op.queries, op.heads * (2 * op.depth + op.values))
        return [whole, whole, whole]
    return [
        real(1, op.heads, op.queries, op.depth),
        real(2, op.heads, op.keys, op.depth),
        real(3, op.heads, op.keys, op.values),
    ]


def floats(
    name: str,
    *size: int,
    joined: bool = False,
    mask: Array | None = None,
    position: Array | None = None,
    bias: Array | None = None,
    **more: Any,
) -> Case:
    """``bias``: (heads, queries, keys)."""
    heads, queries, keys, depth, values = size
    named = places((heads, queries, keys, depth, values), joined)
    if bias is not None:
        named |= {"bias_starts": tuple(h * queries * keys for h in range(heads)), "bias_step": keys}
    if mask is not None:
        step = keys if mask.shape[-2] > 1 else 0
        per_head = mask.shape[-2] * keys if mask.ndim == 3 else 0
        named |= {"mask_starts": tuple(h * per_head for h in range(heads)), "mask_step": step}
    op = Attention(**named, **more)
    inputs = operands(op, joined)
    if bias is not None:
        return op_case(name, op, [*inputs, mask, position, bias])
    if position is not None:
        return op_case(name, op, [*inputs, mask, position])
    return op_case(name, op, [*inputs, mask] if mask is not None else inputs)


def stored(seed: int, low: int, high: int, *shape: int) -> Array:
    return np.random.default_rng(seed).integers(low, high + 1, shape).astype(np.int8)


def quantised(
    name: str,
    *size: int,
    low: int = -128,
    high: int = 127,
    zero: int = 0,
    score: float = 0.05,
    mask: Array | None = None,
    given: bool = False,
    position: Array | None = None,
    bias: Array | None = None,
    **more: Any,
) -> Case:
    """``given``: the mask arrives at run time. ``bias``: bytes, (heads, queries, keys) or one row."""
    heads, queries, keys, depth, values = size
    named = places((heads, queries, keys, depth, values), False)
    if bias is not None:
        starts = tuple(h * queries * keys if bias.ndim > 1 else 0 for h in range(heads))
        named |= {"bias_starts": starts, "bias_step": keys if bias.ndim > 1 else 0}
        more = {"unbiased": Quant.per_tensor(score * 0.71317, 5), "add_once": True} | more
    if mask is not None and not given:
        named["mask_step"] = keys
    attributes: dict[str, Any] = {
        "scores": Quant.per_tensor(score, -1 - zero),
        "scaled": Quant.per_tensor(score, -1 - zero),
        "weights": SOFTMAX,
        "round_once": True,
        **more,
    }
    op = AttentionInt8(**named, **attributes)
    quants = [Quant.per_tensor(0.02, zero), Quant.per_tensor(0.03, -1 - zero), Quant.per_tensor(0.01, zero)]
    shapes = ((heads, queries, depth), (heads, keys, depth), (heads, keys, values))
    inputs: list[Any] = [
        Bytes(stored(i, low, high, *shape), quant)
        for i, (shape, quant) in enumerate(zip(shapes, quants, strict=True))
    ]
    if mask is not None:
        inputs.append(mask if given else Const(mask))
    if position is not None:
        inputs += [None, position]
    if bias is not None:
        inputs += [None] * (BIAS - len(inputs)) + [Bytes(bias, Quant.per_tensor(0.02171829, -11))]
    return op_case(
        name, op, inputs, outputs=[TensorType(op.shape, DType.INT8, Quant.per_tensor(0.006, zero))]
    )


PADDING = np.zeros((1, 9), np.float32)
PADDING[0, 6:] = -np.inf
NOTHING = np.zeros((7, 9), np.float32)
NOTHING[2] = -np.inf
NOTHING[4, 3:] = -np.inf
BEHIND = np.zeros((3, 12), np.float32)
BEHIND[1, :6] = -np.inf  # all that the second query sees from position 4 on
SEEN = np.random.default_rng(5).random((2, 7, 9)) < 0.6
SEEN[:, :, 0] = True

SOME = SEEN.copy()
SOME[0, 2] = SOME[1, 5] = False
"""Some queries see no key."""
FIRST = np.arange(40) < 22
"""Keys after these are padding."""
LATE = np.stack([np.arange(40) > 17, np.arange(40) % 3 == 2])
LATE[1, :30] = False
"""Causal: many queries see no key."""
GIVEN: list[tuple[str, tuple[int, ...], Array, dict[str, Any]]] = [
    ("keys", (2, 7, 40, 8, 4), FIRST, {}),
    ("keys_inverted", (2, 6, 40, 12, 5), FIRST[::-1], {"inverted": True}),
    ("keys_with_gaps", (3, 5, 40, 16, 8), FIRST ^ (np.arange(40) % 7 == 1), {"zero": -128}),
    ("no_keys", (1, 3, 40, 4, 4), FIRST & False, {"score": 0.3}),
    ("keys_causal", (2, 40, 40, 4, 4), FIRST[::-1], {"causal": True}),
    ("keys_of_odd_depth", (2, 5, 40, 7, 3), FIRST, {}),
    ("one_query", (2, 1, 40, 8, 4), FIRST, {}),
    ("queries", (2, 7, 9, 8, 4), SOME[0], {"mask_step": 9}),
    ("queries_of_heads", (2, 7, 9, 8, 4), SOME, {"mask_step": 9, "mask_starts": (63, 0)}),
    ("queries_inverted", (2, 7, 9, 8, 6), ~SOME[1], {"mask_step": 9, "inverted": True}),
    ("queries_causal", (2, 7, 9, 4, 4), SOME[1], {"mask_step": 9, "causal": True, "past": 2}),
    ("late_keys_causal", (2, 39, 40, 4, 4), LATE, {"mask_starts": (40, 0), "causal": True, "past": 1}),
    ("table", (2, 7, 9, 8, 8), SOME[1], {"mask_step": 9, "table": STEPS, "scaled": Quant.per_tensor(0.1, 3)}),
]


def given(name: str, size: tuple[int, ...], mask: Array, **more: Any) -> Case:
    return quantised(name, *size, mask=mask, given=True, **{"mask_starts": (0,) * size[0], **more})


CASES: list[Case] = [
    floats("floats", 2, 7, 9, 5, 3),
    floats("joined", 3, 8, 8, 4, 6, joined=True, scale=0.5),
    floats("causal", 2, 7, 7, 4, 4, causal=True),
    floats("causal_past", 1, 3, 9, 4, 4, causal=True, past=6),
    floats("capped", 1, 5, 6, 4, 2, scale=2.0, softcap=1.5),
    floats("mask", 2, 7, 9, 5, 3, mask=real(8, 2, 7, 9)),
    floats("padding", 2, 7, 9, 5, 3, mask=PADDING),
    floats("visible", 2, 7, 9, 5, 3, mask=SEEN),
    floats("empty", 2, 7, 9, 5, 3, mask=NOTHING, empty=True),
    floats("low", 2, 7, 9, 5, 3, mask=~SEEN, low=-3.0),
    floats("one_query", 4, 1, 33, 8, 8),
    floats("position", 2, 1, 12, 4, 6, causal=True, position=np.array([5])),
    floats("position_int32", 2, 3, 12, 4, 6, causal=True, position=np.array([[7]], np.int32)),
    floats("position_of_the_end", 2, 3, 9, 4, 6, causal=True, past=-3, position=np.array([8])),
    floats("inverted", 2, 7, 9, 5, 3, mask=~SEEN, inverted=True),
    floats("bias", 2, 7, 9, 5, 3, bias=real(9, 2, 7, 9)),
    floats("bias_and_mask", 2, 7, 9, 5, 3, mask=PADDING, bias=real(9, 2, 7, 9)),
    floats("bias_and_visible", 2, 7, 9, 5, 3, mask=SEEN, bias=real(9, 2, 7, 9), causal=True, past=2),
    floats("position_and_mask", 1, 3, 12, 4, 6, causal=True, mask=real(8, 3, 12), position=np.array([4])),
    floats("position_hidden", 1, 3, 12, 4, 6, causal=True, mask=BEHIND, position=np.array([4])),
    floats("position_before", 2, 3, 12, 4, 6, causal=True, past=-2, position=np.array([0])),
    quantised("bytes", 2, 7, 9, 5, 3),
    quantised("bytes_long", 2, 5, 99, 64, 64, score=0.4),
    quantised("bytes_odd", 3, 3, 35, 7, 9, zero=-128),
    quantised("bytes_ends", 1, 4, 17, 33, 18, low=127, high=127, zero=-128),
    quantised("bytes_low", 1, 4, 17, 33, 18, low=-128, high=-127, zero=127),
    quantised("bytes_table", 2, 6, 12, 8, 8, table=STEPS, scaled=Quant.per_tensor(0.1, 3)),
    quantised("bytes_causal", 2, 9, 9, 8, 8, causal=True),
    quantised("bytes_causal_past", 1, 4, 20, 16, 16, causal=True, past=16),
    quantised("bytes_tflite", 2, 7, 40, 16, 12, by_table=False, round_once=False),
    quantised(
        "bytes_tflite_causal", 2, 7, 7, 16, 12, by_table=False, round_once=False, causal=True, beta=0.5
    ),
    quantised("bytes_steep", 1, 8, 300, 4, 4, score=0.9),
    quantised("bytes_one_query", 4, 1, 33, 8, 8),
    quantised("bytes_one_element", 1, 3, 2, 1, 1),
    quantised("bytes_fifteen", 2, 3, 15, 8, 6),
    quantised("bytes_causal_sixteen", 1, 16, 16, 8, 5, causal=True),
    quantised("bytes_mask", 2, 7, 9, 5, 3, mask=SEEN[0]),
    quantised("bytes_mask_in_fours", 3, 7, 9, 8, 4, zero=-128, mask=SEEN[1].reshape(1, 1, 7, 9)),
    quantised("bytes_mask_of_one_key", 2, 9, 9, 4, 4, mask=np.eye(9, dtype=bool)[::-1]),
    quantised("bytes_mask_causal", 1, 7, 9, 16, 16, causal=True, past=2, mask=SEEN[0]),
    quantised("bytes_mask_table", 2, 7, 9, 8, 8, mask=SEEN[1], table=STEPS, scaled=Quant.per_tensor(0.1, 3)),
    quantised("bytes_mask_for_each_head", 3, 7, 9, 8, 4, mask=SEEN, mask_starts=(63, 0, 63)),
    quantised("bytes_mask_for_each_head_causal", 2, 7, 9, 5, 3, causal=True, mask=SEEN, mask_starts=(0, 63)),
    *(
        given(f"bytes_given_{name}_{blind}", size, mask, blind=blind, **more)
        for blind in ("zeros", "mean", "all")
        for name, size, mask, more in GIVEN
    ),
    *(
        given(f"bytes_given_{name}_{blind}_{keys}", size, mask, blind=blind, blind_keys=keys, **more)
        for blind in ("mean", "all")
        for keys in ("earlier", "once")
        for name, size, mask, more in GIVEN
        if "causal" in more
    ),
    quantised("bytes_bias", 2, 7, 9, 5, 3, bias=stored(9, -128, 127, 2, 7, 9)),
    quantised("bytes_bias_in_fours", 2, 7, 40, 8, 4, bias=stored(9, -128, 127, 2, 7, 40), zero=-128),
    quantised("bytes_bias_of_keys", 3, 4, 35, 16, 8, bias=stored(9, -128, 127, 35)),
    quantised("bytes_bias_one_query", 2, 1, 33, 8, 4, bias=stored(9, -90, 127, 2, 1, 33)),
    quantised("bytes_bias_causal", 2, 9, 9, 8, 4, bias=stored(9, -128, 127, 2, 9, 9), causal=True),
    quantised(
        "bytes_bias_table", 2, 7, 9, 8, 8, table=STEPS, bias=stored(9, -128, 127, 2, 7, 9), add_once=False
    ),
    quantised(
        "bytes_bias_tflite",
        *(2, 7, 40, 16, 12),
        by_table=False,
        round_once=False,
        add_once=False,
        bias=stored(9, -128, 127, 2, 7, 40),
    ),
    quantised("bytes_bias_and_mask", 2, 7, 9, 8, 4, mask=SEEN[0], bias=stored(9, -128, 127, 2, 7, 9)),
    quantised("bytes_bias_and_mask_alone", 2, 7, 9, 5, 3, mask=SEEN[0], bias=stored(9, -128, 127, 2, 7, 9)),
    *(
        given(
            f"bytes_bias_given_{blind}",
            (2, 7, 9, 8, 4),
            SOME[0],
            mask_step=9,
            blind=blind,
            bias=stored(9, -128, 127, 2, 7, 9),
        )
        for blind in ("zeros", "mean", "all")
    ),
    quantised(
        "bytes_bias_position",
        *(2, 3, 12, 8, 6),
        causal=True,
        position=np.array([7]),
        bias=stored(9, -128, 127, 2, 3, 12),
    ),
    quantised("bytes_position", 2, 1, 12, 4, 6, causal=True, position=np.array([5])),
    quantised("bytes_position_int32", 2, 3, 12, 4, 6, causal=True, position=np.array([[7]], np.int32)),
    quantised("bytes_position_of_the_end", 2, 3, 9, 8, 6, causal=True, past=-2, position=np.array([8])),
    quantised(
        "bytes_position_tflite",
        *(2, 1, 20, 8, 8),
        causal=True,
        by_table=False,
        round_once=False,
        position=np.array([9]),
    ),
]
