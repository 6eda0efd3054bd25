# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A firmware that plays one image, as files that the harness builds like those of a compiled model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tinyml.base import c
from tinyml.base.naming import model_name
from tinyml.base.templates import render
from tinyml.player.table import sources, table
from tinyml.slots.data_reading import DataModel, ReadPort, check_layouts, read_data


def play_files(content: bytes, target: str, measure_open: bool = False) -> dict[str, str]:
    """The image as an array, the table of its kernels, and the player.

    ``target`` is that of the machine. With ``measure_open``, a run of the model opens the image instead.
    """
    model = read_data(content)
    check_layouts(model)
    words = np.frombuffer(content, "<u4")
    name = model_name(Path(model.name))
    context = {
        "name": name,
        "table": c.code(table(model.kernels).splitlines()),
        "rows": c.code(["\n".join(c.table_rows(words))]),
        "words": words.size,
        "bytes": len(content),
        "arena_bytes": model.arena_bytes,
        "state_bytes": model.state_bytes,
        "tensors": len(model.inputs) + len(model.outputs),
        "measure_open": measure_open,
    }
    return {
        f"{name}.c": render("slots", "played.c.j2", context),
        f"{name}.json": json.dumps(summary(model, name, target), indent=2) + "\n",
    }


def summary(model: DataModel, name: str, target: str) -> dict[str, Any]:
    """What the harness must know about an image, as the summary of a compiled model says it."""
    return {
        "name": name,
        "target": target,
        "sha256": model.sha256,
        "arena_bytes": model.arena_bytes,
        "arena_lower_bound_bytes": model.arena_bytes,
        "state_bytes": model.state_bytes,
        "inputs": _ports(model.inputs),
        "outputs": _ports(model.outputs),
        "sources": {"runtime": sources(model.kernels), "cmsis-nn": []},
        "open": f"{name}_open",
    }


def _ports(ports: Sequence[ReadPort]) -> list[dict[str, Any]]:
    return [{"name": port.name, "shape": list(port.shape), "dtype": port.dtype.value} for port in ports]
