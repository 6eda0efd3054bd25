# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What a mask of attention on bytes costs, in the counts that estimates are made of."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.sketch import Sketch
from tinyml.cores.targets import find_target
from tinyml.ir import Array, DType, Layer, Quant
from tinyml.ops.attention.attention_int8 import AttentionInt8
from tinyml.ops.attention.attention_int8_kernels import AttentionBytes, AttentionDsp, AttentionMve
from tinyml.ops.framework.kernel import kernels_of
from tinyml.ops.framework.work import Work

M55 = find_target("cortex-m55")
HEADS, QUERIES, KEYS, DEPTH = 2, 3, 8, 4
NAMES = [kernel.name for kernel in (AttentionBytes, AttentionDsp, AttentionMve)]
SEEN = np.array([[1] * KEYS, [1, 0, 1, 0, 0, 0, 0, 0], [1, 1, 0, 0, 0, 0, 0, 0]], bool)
"""All keys; two of the first three; the first two, which leaves no gap."""


def attention(mask: Array | None, given: bool = False, bias: bool = False) -> Layer:
    """``given``: the mask arrives at run time."""
    sketch, scale = Sketch(), Quant.per_tensor(0.05, 3)
    rows = {"q": QUERIES, "k": KEYS, "v": KEYS, "y": QUERIES}
    places: dict[str, object] = {f"{word}_step": DEPTH for word in rows}
    places |= {f"{word}_starts": tuple(n * DEPTH * head for head in range(HEADS)) for word, n in rows.items()}
    if bias:
        places |= {"bias_starts": (0,) * HEADS, "bias_step": KEYS, "unbiased": Quant.per_tensor(0.071317, 5)}
    op = AttentionInt8(
        **places,  # type: ignore[arg-type]
        shape=(HEADS, QUERIES, DEPTH),
        queries=QUERIES,
        keys=KEYS,
        depth=DEPTH,
        values=DEPTH,
        mask_step=KEYS if given or mask is not None else 0,
        scores=Quant.per_tensor(0.1, 0),
        scaled=Quant.per_tensor(0.1, 0),
        weights=Quant.per_tensor(1 / 256, -128),
        beta=0.3,
        round_once=True,
        add_once=True,
    )
    operands = [sketch.input((HEADS, n, DEPTH), quant=scale) for n in (QUERIES, KEYS, KEYS)]
    shown = sketch.input((QUERIES, KEYS), DType.BOOL) if given else None
    shown = sketch.constant(mask, dtype="bool") if mask is not None else shown
    added = sketch.constant(np.ones((QUERIES, KEYS)), Quant.per_tensor(0.04343658, -11), "int8")
    more = [shown, None, added] if bias else [shown]
    (layer,) = sketch.graph(sketch.add(op, *operands, *more, quant=scale)).layers()
    return layer


def counts(layer: Layer, name: str) -> Work:
    kernel = next(k for k in kernels_of(AttentionInt8) if k.name == name and k.refusal(layer) is None)
    found = kernel.loop_counts(layer, M55)
    assert found is not None
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_mask_at_run_time_that_hides_no_key(name: str) -> None:
    """Reading it is work of its own; the rest is what it is without a mask."""
    masked, plain = counts(attention(None, given=True), name), counts(attention(None), name)
    assert masked["bytes of masks"] == HEADS * QUERIES * KEYS
    assert masked["keys between hidden ones"] == 0
    assert {**masked, **plain} == masked


def test_keys_between_hidden_ones_are_looked_at_again() -> None:
    found = counts(attention(SEEN), "tinyml_attention_s8")
    assert found["scores"] == HEADS * (8 + 2 + 2)
    assert found["keys between hidden ones"] == HEADS * 3


def test_pairs_of_queries_see_what_either_of_them_sees() -> None:
    """With a bias, a constant mask has this kernel: 8 keys, then 2 for the last query, which is alone."""
    found = counts(attention(SEEN, bias=True), "tinyml_attention_dsp_s8")
    assert found["pairs"] == HEADS * 2
    assert found["four weights"] == 2 * HEADS * (2 + 1)
    assert found["biased scores"] == 2 * HEADS * (8 + 2)


def test_vectors_of_scores_reach_the_last_key_that_is_seen() -> None:
    found = counts(attention(SEEN, bias=True), "tinyml_attention_mve_s8")
    assert found["biased scores"] == HEADS * (8 + 3 + 2)
    assert found["hidden keys"] == HEADS * (0 + 6 + 6)
