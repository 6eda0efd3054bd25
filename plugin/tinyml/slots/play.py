# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A firmware that plays one image, as files that the harness builds like those of a compiled model."""

from __future__ import annotations

import json

import numpy as np

from tinyml.base import c
from tinyml.base.templates import render
from tinyml.pipeline import Compiled
from tinyml.player.table import sources, table
from tinyml.slots.data import DataImage


def play_files(compiled: Compiled, data: DataImage, measure_open: bool = False) -> dict[str, str]:
    """The image as an array, the table of its kernels, and the player.

    With ``measure_open``, a run of the model opens the image instead.
    """
    name = compiled.name
    words = np.frombuffer(data.content, "<u4")
    graph = compiled.graph
    context = {
        "name": name,
        "table": c.code(table(data.kernels).splitlines()),
        "rows": c.code(["\n".join(c.table_rows(words))]),
        "words": words.size,
        "bytes": len(data.content),
        "arena_bytes": compiled.plan.arena_bytes,
        "state_bytes": data.state_bytes,
        "tensors": len(graph.inputs) + len(graph.outputs),
        "measure_open": measure_open,
    }
    summary = dict(compiled.summary)
    summary["sources"] = {"runtime": sources(data.kernels), "cmsis-nn": []}
    summary["open"] = f"{name}_open"
    return {
        f"{name}.c": render("slots", "played.c.j2", context),
        f"{name}.json": json.dumps(summary, indent=2) + "\n",
    }
