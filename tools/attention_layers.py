# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Random layers of attention that every kernel of it is counted on: a group of ``tools/kernel_layers.py``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tests.support.sketch import Sketch
from tinyml.ir import DType, Quant, Tensor
from tinyml.ops.attention.attention import Attention
from tinyml.ops.attention.attention_int8 import AttentionInt8
from tinyml.ops.attention.heads import Heads

SEED = 48
COUNT = 48
"""Of each type: more than the pieces of a kernel's code."""
BIASED = 16
"""With a bias, on bytes."""
MASKED = 24
"""With a mask, on bytes: half of them at run time. Every third one has a bias as well."""
BYTE = 0.05
"""The scale of queries, keys and values."""


def _places(random: np.random.Generator) -> dict[str, object]:
    """Sizes and places; every fourth layer is a step of a decoder, with one query."""
    heads = int(random.integers(1, 7))
    queries = 1 if random.random() < 0.25 else int(random.integers(1, 25))
    keys = int(random.integers(max(queries, 4), 73))
    depth = 4 * int(random.integers(1, 11))
    values = depth if random.random() < 0.5 else int(random.integers(3, 41))
    sizes = {"q": (queries, depth), "k": (keys, depth), "v": (keys, values), "y": (queries, values)}
    found: dict[str, object] = {
        "shape": (heads, queries, values),
        "queries": queries,
        "keys": keys,
        "depth": depth,
        "values": values,
        "causal": bool(random.random() < 0.5),
        "past": keys - queries,
    }
    for word, (rows, elements) in sizes.items():
        found[f"{word}_starts"] = tuple(rows * elements * head for head in range(heads))
        found[f"{word}_step"] = elements
    return found


def _bytes(random: np.random.Generator) -> AttentionInt8:
    """Scores and their weights are spread over the whole of their range."""
    places = _places(random)
    spread = BYTE**2 * float(places["depth"]) ** 0.5 * 60 * 60 / 50  # type: ignore[arg-type]
    scores = Quant.per_tensor(spread, 0)
    mapped = bool(random.random() < 0.2)
    table = tuple(int(n) for n in random.integers(-128, 128, 256)) if mapped else ()
    return AttentionInt8(
        **places,  # type: ignore[arg-type]
        scores=scores,
        table=table,
        scaled=scores,
        weights=Quant.per_tensor(1 / 256, -128),
        beta=3 / (127 * spread),
        by_table=bool(random.random() < 0.75),
        round_once=bool(random.random() < 0.75),
    )


def _floats(random: np.random.Generator) -> Attention:
    places = _places(random)
    found = Attention(**places, scale=float(places["depth"]) ** -0.5)  # type: ignore[arg-type]
    if random.random() < 0.5:  # odd sizes, which bytes mostly do not have
        found = replace(found, depth=found.depth - int(random.integers(1, 4)))
    return replace(found, softcap=5.0) if random.random() < 0.2 else found


def _biased(random: np.random.Generator) -> AttentionInt8:
    """A bias with a row for each query of each head, added by factors without ties."""
    op = _bytes(random)
    size = op.queries * op.keys
    return replace(
        op,
        unbiased=Quant.per_tensor(op.scaled.scale * 0.71317, 5),
        add_once=True,
        bias_starts=tuple(head * size for head in range(op.heads)),
        bias_step=op.keys,
    )


def _masked(random: np.random.Generator, number: int) -> AttentionInt8:
    """With a mask of a row for each query, for all heads."""
    op = _biased(random) if number % 3 == 0 else _bytes(random)
    return replace(op, by_table=True, mask_step=op.keys)


def _drawn() -> Mapping[str, Attention | AttentionInt8]:
    random = np.random.default_rng(SEED)
    found: dict[str, Attention | AttentionInt8] = {}
    for number in range(COUNT):
        found[f"attention_int8_{number}"] = _bytes(random)
        found[f"attention_float_{number}"] = _floats(random)
    random = np.random.default_rng(SEED + 1)
    found |= {f"attention_biased_{number}": _biased(random) for number in range(BIASED)}
    random = np.random.default_rng(SEED + 2)
    return found | {f"attention_masked_{number}": _masked(random, number) for number in range(MASKED)}


ATTENTION = _drawn()


def sketched(sketch: Sketch, op: Heads, copies: int) -> list[Tensor]:
    """The outputs of independent layers that read the same queries, keys and values."""
    float32 = isinstance(op, Attention)
    dtype, quant = (DType.FLOAT32, None) if float32 else (DType.INT8, Quant.per_tensor(BYTE, 3))
    heads, rows = op.heads, ((op.queries, op.q_step), (op.keys, op.k_step), (op.keys, op.v_step))
    operands: list[Tensor | None] = [sketch.input((heads, *shape), dtype, quant) for shape in rows]
    if isinstance(op, AttentionInt8) and (op.mask_step or op.bias_starts):
        operands += [_mask(sketch, op) if op.mask_step else None, None]
        operands += [_bias(sketch, op)] if op.bias_starts else []
    result = None if float32 else Quant.per_tensor(BYTE / 2, -7)
    return [sketch.add(op, *operands, quant=result) for _ in range(copies)]


def _mask(sketch: Sketch, op: AttentionInt8) -> Tensor:
    """At run time if there is an even number of queries; else it hides some keys of some queries."""
    shape = (op.queries, op.keys)
    if op.queries % 2 == 0:
        return sketch.input(shape, DType.BOOL)
    random = np.random.default_rng(op.keys)
    seen = random.random(shape) < random.choice([0.3, 0.8, 1.0], (op.queries, 1))
    seen[:, 0] = True  # by any query
    return sketch.constant(seen, dtype="bool")


def _bias(sketch: Sketch, op: AttentionInt8) -> Tensor:
    values = np.random.default_rng(op.keys).integers(-128, 128, (op.heads, op.queries, op.keys))
    return sketch.constant(values, Quant.per_tensor(op.scaled.scale * 0.4343658, -11), "int8")
