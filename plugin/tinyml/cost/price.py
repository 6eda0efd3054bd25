# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The cost of a model that is only in memory, for those who choose between models (``base/late.py``)."""

from __future__ import annotations

from pathlib import Path

from tinyml.base.errors import TinymlError
from tinyml.cost.estimate import estimate_for
from tinyml.ops.framework.kernel_costs import ROUGH, weighted
from tinyml.ops.framework.work import work
from tinyml.pipeline import Compiled, ModelFile, Options, compile_built, read_graph

WIDE_KERNELS = ("tinyml_conv_s16", "tinyml_dense_s16")


def instructions(content: bytes, core: str) -> int | None:
    """Instructions of one run, estimated; None if they are not known.

    Attention as one operator, where it has no figures, counts as its parts, which take a little more.
    """
    try:
        graph = read_graph(ModelFile(Path("model.onnx"), content))
        whole = _instructions(compile_built(graph, Options("model", core)))
        return whole or _instructions(compile_built(graph, Options("model", core, attention_apart=True)))
    except TinymlError:
        return None


def _instructions(compiled: Compiled) -> int | None:
    found = estimate_for(compiled)
    if found is None or not {*found.unmeasured} <= {*WIDE_KERNELS}:
        return None
    wide = [chosen.layer for chosen in compiled.selected if chosen.kernel.name in found.unmeasured]
    return sum(found.layers.values()) + round(sum(weighted(ROUGH, work(layer)) for layer in wide))
