# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""One page with a model in it. Nothing is loaded from elsewhere, and no input leaves the browser."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from tinyml.base.templates import environment
from tinyml.cost.estimate import estimate_for
from tinyml.ir import Array, DType, Graph, Tensor
from tinyml.pipeline import Compiled
from tinyml.report.web import giving
from tinyml.report.web.webassembly import PORTION_VALUES, module

Run = tuple[Mapping[str, Array], Mapping[str, Array]]
"""Inputs and outputs by name."""


def page(
    compiled: Compiled,
    on_device: Compiled,
    *,
    title: str,
    kind: str = "",
    limits: tuple[float, float] | None = None,
    runs: Sequence[Run] = (),
    recordings: Mapping[str, Array] | None = None,
) -> str:
    """``compiled`` is what the page runs, ``on_device`` the same model for the core whose figures it shows.

    ``limits``: what black and white are to the model. ``runs``: examples with the outputs that the C computed
    elsewhere; the page runs them first and says whether it computes the same bytes.
    """
    graph = compiled.graph
    frontend = compiled.summary.get("frontend")
    inputs = [graph.tensors[name] for name in graph.inputs]
    chosen = giving.choose([tensor.shape for tensor in inputs], frontend, kind)
    frame = giving.frame_of(inputs[0].shape) if chosen in (giving.DRAW, giving.PICTURE) else None
    low, high = limits or _limits(inputs[0])
    data = {
        "name": compiled.name,
        "kind": chosen,
        "frame": {**asdict(frame), "low": low, "high": high} if frame else None,
        "inputs": [_port(tensor) for tensor in inputs],
        "outputs": [_port(graph.tensors[name]) for name in graph.outputs],
        "labels": list(graph.labels),
        "stateful": bool(graph.states),
        "frontend": {**frontend, "portion": PORTION_VALUES} if frontend else None,
        "runs": [_run(graph, inputs_, outputs) for inputs_, outputs in runs],
        "recordings": [
            {"name": name, "data": _text(np.ascontiguousarray(samples))}
            for name, samples in (recordings or {}).items()
        ],
        "module": base64.b64encode(module(compiled)).decode("ascii"),
    }
    return (
        environment("report/web", escaped=True)
        .get_template("page.html.j2")
        .render(title=title, data=data, facts=facts(on_device), version=compiled.summary["version"])
    )


def facts(compiled: Compiled) -> list[tuple[str, str]]:
    """What the model takes on its core, in words."""
    summary = compiled.summary
    found = [
        ("core", str(summary["target"])),
        ("RAM for tensors", f"{summary['arena_bytes'] + summary['state_bytes']:,} bytes"),
        ("weights", f"{summary['weights_bytes']:,} bytes"),
        ("multiplications a run", f"{summary['macs']:,}"),
    ]
    costs = estimate_for(compiled)
    if costs and costs.instructions and costs.is_sure:
        found.append(("instructions a run, estimated", f"{costs.instructions:,} ± {costs.error or 0:.0%}"))
    return found


def _limits(tensor: Tensor) -> tuple[float, float]:
    """What black and white are, if nobody says: the whole range of an integer type, or 0 and 1."""
    if tensor.dtype.is_float or tensor.dtype is DType.BOOL or tensor.quant is not None:
        return 0.0, 1.0
    low, high = tensor.dtype.limits
    return float(low), float(min(high, 255))


def _port(tensor: Tensor) -> dict[str, Any]:
    quant = tensor.quant
    return {
        "name": tensor.name,
        "shape": list(tensor.shape),
        "type": tensor.dtype.numpy.name,
        "scale": float(quant.scale) if quant and not quant.per_channel else None,
        "zero": int(quant.zero_point) if quant and not quant.per_channel else 0,
    }


def _run(graph: Graph, inputs: Mapping[str, Array], outputs: Mapping[str, Array]) -> dict[str, Any]:
    return {
        "inputs": [_text(inputs[name]) for name in graph.inputs],
        "outputs": [_text(outputs[name]) for name in graph.outputs],
    }


def _text(array: Array) -> str:
    little = array.astype(array.dtype.newbyteorder("<"))
    return base64.b64encode(little.tobytes()).decode("ascii")
