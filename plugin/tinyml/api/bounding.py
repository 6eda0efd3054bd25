# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""``tinyml.bound``: what no run of a model exceeds, from its machine code."""

from __future__ import annotations

from typing import Any

from tinyml.api.compiled import CompiledModel, compile
from tinyml.api.sources import ModelLike
from tinyml.bounds import Bound, bound_files
from tinyml.bounds.images import machine_for

__all__ = ["Bound", "bound", "bound_of"]


def bound(model: ModelLike, target: str = "cortex-m4", *, example: Any = None) -> Bound:
    """Instructions, cycles, stack and written bytes that no input exceeds, of the model linked for a core.

    A compiled model keeps its own target and options.
    """
    compiled = model if isinstance(model, CompiledModel) else compile(model, example, target=target)
    return bound_of(compiled)


def bound_of(compiled: CompiledModel) -> Bound:
    return bound_files(compiled.files, machine_for(compiled.target))
