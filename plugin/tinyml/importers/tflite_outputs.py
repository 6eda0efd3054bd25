# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A TFLite model with some of its outputs, and only the operators and inputs that they need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tinyml.importers.outputs import check_chosen
from tinyml.importers.tflite_file import Subgraph

EFFECTS = frozenset({"ASSIGN_VARIABLE", "CALL_ONCE"})
"""Operators that matter without an output."""


def with_outputs(main: Subgraph, chosen: Sequence[str]) -> Subgraph:
    """The subgraph with some of its outputs, and the operators and inputs that they need."""
    places = {main.tensors[index].name: index for index in main.outputs}
    check_chosen(chosen, list(places))
    needed = {places[name] for name in chosen}
    kept = []
    for operator in reversed(main.operators):
        if needed.intersection(operator.outputs) or operator.op_type in EFFECTS:
            needed.update(operator.inputs)
            kept.append(operator)
    inputs = tuple(index for index in main.inputs if index in needed)
    return replace(
        main, operators=tuple(kept[::-1]), inputs=inputs, outputs=tuple(places[name] for name in chosen)
    )
