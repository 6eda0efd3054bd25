# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A model with a layer that can be made to write into another tensor of its arena."""

from __future__ import annotations

import re

import numpy as np

from tests.support.sketch import Sketch
from tinyml.emit.model import Provenance
from tinyml.ir import DType
from tinyml.ops.elementwise.binary import Binary
from tinyml.ops.elementwise.unary import Unary
from tinyml.pipeline import Compiled, Options, compile_graph

SAMPLE = {"in0": np.ones(64, np.float32), "in1": np.full(64, -2, np.float32)}


def network(target: str) -> Compiled:
    """x is read again by the last layer: while the others run, it is live and nobody's business."""
    sketch = Sketch()
    other = sketch.input((64,), DType.FLOAT32)
    x = sketch.input((64,), DType.FLOAT32)
    y = sketch.add(Unary("abs"), other)
    return compile_graph(
        sketch.graph(sketch.add(Binary("add"), sketch.add(Unary("sqrt"), y), x)),
        "net",
        Provenance("net", "0" * 64, ""),
        Options(target=target),
    )


def spoiled(compiled: Compiled) -> dict[str, str]:
    """The first layer's loop goes 40 elements too far: into another tensor, not out of the arena."""
    assert compiled.plan.arena_bytes >= (64 + 40) * 4
    first = compiled.plan.places[compiled.selected[0].layer.output.name].offset
    assert first + (64 + 40) * 4 <= compiled.plan.arena_bytes, "the overflow would leave the arena"
    source, found = re.subn(r"< 64;", "< 104;", compiled.files["net.c"], count=1)
    assert found
    return {**compiled.files, "net.c": source}
