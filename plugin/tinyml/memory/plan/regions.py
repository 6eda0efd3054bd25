# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The memories a tensor can live in."""

from __future__ import annotations

import enum
from collections.abc import Sequence

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Graph


class Region(enum.Enum):
    """Kinds of memory; all but the arena have a number, because there is one per tensor."""

    ARENA = "arena"
    STATE = "state"  # survives between runs
    INPUT = "input"  # the caller's buffer, never written
    OUTPUT = "output"  # the caller's buffer


@dataclass(frozen=True)
class Location:
    """Where a tensor's first byte is."""

    region: Region
    index: int
    offset: int


@dataclass(frozen=True)
class Home:
    """Memory outside the arena, and the tensor that it belongs to."""

    region: Region
    index: int
    tensor: str
    last_step: int  # other tensors may live here until then
    may_stay: frozenset[str] = frozenset()  # ... and these longer


def homes(graph: Graph, steps: int, io_outside: bool) -> Sequence[Home]:
    """All memory outside the arena: states, and the caller's buffers if it provides inputs and outputs.

    An input that the application feeds in rows is the caller's too.
    """
    found = [
        Home(Region.STATE, i, state.tensor, steps - 1, frozenset({state.update} - {*graph.outputs}))
        for i, state in enumerate(graph.states)
    ]
    if io_outside or any(node.op.by_rows for node in graph.nodes):
        found += [Home(Region.INPUT, i, name, steps) for i, name in enumerate(graph.inputs)]
    if io_outside:
        found += [Home(Region.OUTPUT, i, name, steps) for i, name in enumerate(graph.outputs)]
    return found
