# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""``tinyml.bound``: what no run of a model exceeds, from its machine code."""

from __future__ import annotations

from typing import Any

from tinyml.api.choices import Target
from tinyml.api.compiled import CompiledModel, compile
from tinyml.api.sources import ModelLike
from tinyml.bounds import Bound, bound_files
from tinyml.bounds.images import machine_for

__all__ = ["Bound", "bound", "bound_of"]


def bound(model: ModelLike, target: Target = "cortex-m3", *, example: Any = None) -> Bound:
    """Instructions, cycles, stack and written bytes that no input exceeds, of the model linked for a core.

    :param model: a file, bytes, or a model of a training framework; one from ``tinyml.compile`` is taken as
        it is, with its own target and options
    :param target: the core
    :param example: example inputs of a PyTorch module or a JAX function, which determine the shapes: an
        array or tensor, a tuple of them, or one shape
    """
    compiled = model if isinstance(model, CompiledModel) else compile(model, example, target=target)
    return bound_of(compiled)


def bound_of(compiled: CompiledModel) -> Bound:
    return bound_files(compiled.files, machine_for(compiled.target))
