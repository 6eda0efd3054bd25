# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Which run an estimate is for, where inputs decide how much a layer computes."""

from __future__ import annotations

from tinyml.ir import Layer
from tinyml.ops.attention.attention_int8 import AttentionInt8
from tinyml.ops.attention.heads import MASK, POSITION, Heads
from tinyml.ops.classical.trees import Trees
from tinyml.pipeline import Compiled, looped_layers

MOST_KEYS = "attention is estimated for the run in which no mask hides a key and every earlier key is there"
EVERY_LEAF = "trees are estimated for data that reaches every leaf equally often"


def assumption_of(model: Compiled) -> str:
    """Empty if all runs take about the same."""
    layers = [chosen.layer for chosen in model.selected]
    found = {
        MOST_KEYS: any(map(_varies, layers)),
        EVERY_LEAF: any(isinstance(layer.op, Trees) for layer in layers),
    }
    return "; ".join(words for words, holds in found.items() if holds)


def _varies(layer: Layer) -> bool:
    """Whether a layer skips keys that only a run tells; attention on floats computes those of a mask."""
    op = layer.op
    if (inside := looped_layers(layer)) is not None:
        return any(_varies(chosen.layer) for chosen in inside[1])
    if not isinstance(op, Heads):
        return False
    masked = isinstance(op, AttentionInt8) and layer.has_input(MASK)
    return layer.has_input(POSITION) or (masked and not layer.input(MASK).is_constant)
