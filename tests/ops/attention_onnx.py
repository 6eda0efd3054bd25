# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""onnxruntime's operators of attention: grouped heads, caches, rotary embeddings, masks."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import helper

from tests.support.cases import Case, Const, onnx_case, onnx_nodes_case
from tinyml.ir import Array

MICROSOFT = "com.microsoft"
RNG = np.random.default_rng(20261118)
TURNS = np.arange(16)[:, None] * 10000.0 ** (-np.arange(8) / 8)
TABLES = Const(np.cos(TURNS).astype(np.float32)), Const(np.sin(TURNS).astype(np.float32))


def values(*shape: int) -> Array:
    return RNG.normal(size=shape).astype(np.float32)


def case(name: str, op_type: str, *inputs: Any, **more: Any) -> Case:
    return onnx_case(name, op_type, list(inputs), domain=MICROSOFT, **more)


def seen(share: float, *shape: int) -> Array:
    return (RNG.random(shape) < share).astype(np.int32)


def grouped(
    name: str, last: int, steps: int = 1, past: bool = True, packed: bool = False, **attributes: Any
) -> Case:
    """Four heads for two; onnxruntime leaves the rest of its presents as it was, so it is cut off."""
    groups = [values(1, steps, 128), None, None] if packed else [values(1, steps, 64)]
    if not packed:
        groups += [values(1, steps, 32), values(1, steps, 32)]
    caches = [values(1, 2, 16, 16), values(1, 2, 16, 16)] if past else [None, None]
    more = list(TABLES) if attributes.get("do_rotary") else []
    inputs = [*groups, *caches, np.array([last], np.int32), Const(np.array(last + 1, np.int32)), *more]
    names = [f"x{i}" if value is not None else "" for i, value in enumerate(inputs)]
    results = ["y", "all_keys", "all_values"]
    attributes |= {"num_heads": 4, "kv_num_heads": 2}
    operands = {n: v for n, v in zip(names, inputs, strict=True) if v is not None}
    ends = {"zero": Const(np.array([0])), "end": Const(np.array([last + 1])), "axis": Const(np.array([2]))}
    nodes = [
        helper.make_node("GroupQueryAttention", names, results, domain=MICROSOFT, **attributes),
        helper.make_node("Slice", ["all_keys", "zero", "end", "axis"], ["keys"]),
        helper.make_node("Slice", ["all_values", "zero", "end", "axis"], ["values"]),
    ]
    return onnx_nodes_case(name, nodes, operands | ends, ["y", "keys", "values"])


def projected(name: str, *inputs: Any, outputs: int = 1, **more: Any) -> Case:
    """Two heads of eight."""
    weights = Const(values(12, 48)), Const(values(48))
    return case(name, "Attention", inputs[0], *weights, *inputs[1:], outputs=outputs, num_heads=2, **more)


def several(name: str, *inputs: Any, outputs: int = 1, **more: Any) -> Case:
    return case(name, "MultiHeadAttention", *inputs, outputs=outputs, num_heads=2, **more)


PAST = values(1, 2, 6, 8), values(1, 2, 6, 8)

CASES: list[Case] = [
    grouped("grouped_first", 0),
    grouped("grouped_last", 15),
    grouped("grouped_rotary", 5, do_rotary=1),
    grouped("grouped_interleaved", 5, do_rotary=1, rotary_interleaved=1, scale=0.3),
    grouped("grouped_packed", 9, packed=True, do_rotary=1, softcap=2.0),
    grouped("grouped_three_steps", 7, steps=3, do_rotary=1),
    grouped("grouped_window", 11, steps=3, local_window_size=4),
    grouped("grouped_without_past", 4, steps=5, past=False, do_rotary=1),
    case("rotary", "RotaryEmbedding", values(2, 3, 32), np.array([[0, 1, 2], [4, 5, 6]]), *TABLES),
    case("rotary_heads", "RotaryEmbedding", values(1, 2, 3, 16), np.array([3]), *TABLES, interleaved=1),
    case(
        "rotary_part",
        "RotaryEmbedding",
        *(values(1, 3, 64), np.array([3]), *TABLES),
        num_heads=2,
        rotary_embedding_dim=16,
    ),
    several("heads", values(1, 3, 16), values(1, 5, 16), values(1, 5, 16), values(48)),
    several("heads_past", *(values(1, 1, 16) for _ in range(3)), values(48), None, None, *PAST, outputs=3),
    several(
        "heads_causal",
        *(values(1, 3, 16) for _ in range(3)),
        *(None, None, values(1, 2, 3, 9), *PAST),
        outputs=3,
        unidirectional=1,
    ),
    several("heads_mask", values(2, 3, 16), values(2, 5, 16), values(2, 5, 16), None, seen(0.7, 2, 5)),
    projected("projected", values(2, 4, 12)),
    projected("projected_past", values(1, 1, 12), None, values(2, 1, 2, 6, 8), outputs=2, unidirectional=1),
    projected("projected_mask", values(2, 4, 12), seen(0.7, 2, 4)),
]
