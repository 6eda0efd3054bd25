# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Names in generated C: unique, stable, and close to what the model calls things."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tinyml.base import c
from tinyml.ir import Layer


def layer_names(model: str, layers: Sequence[Layer]) -> list[str]:
    """kws_conv1, kws_conv2, kws_dense1, …: the operator and its number."""
    seen: Counter[str] = Counter()
    names = []
    for layer in layers:
        label = layer.op.label()
        seen[label] += 1
        names.append(f"{model}_{label}{seen[label]}")
    return names


def unique_identifiers(texts: Sequence[str], fallback: str) -> list[str]:
    """A different identifier for each text."""
    names: list[str] = []
    for text in texts:
        base = name = c.identifier(text, fallback).lower()
        count = 1
        while name in names:
            count += 1
            name = f"{base}_{count}"
        names.append(name)
    return names
