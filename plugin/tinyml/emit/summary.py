# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The machine-readable summary of a compiled model: what it needs and which sources it links."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tinyml.base.lazy_dataclass import dataclass
from tinyml.cores.targets import Target
from tinyml.emit.adapt import AdaptCode
from tinyml.emit.adapt import summary_of as summary_of_adapt
from tinyml.emit.fed_rows import rows_code
from tinyml.emit.feed import FeedCode
from tinyml.emit.watch import WatchCode, summary_of
from tinyml.ir import Graph, Tensor
from tinyml.memory.plan import Plan, Region
from tinyml.memory.select import Selected
from tinyml.npu.operator import EthosU
from tinyml.settings.optimize import BALANCED, Goal


@dataclass(frozen=True)
class Summary:
    data: dict[str, Any]

    @property
    def text(self) -> str:
        return json.dumps(self.data, indent=2) + "\n"


def summarize(
    name: str,
    graph: Graph,
    selected: Sequence[Selected],
    plan: Plan,
    target: Target,
    sha256: str,
    version: str,
    layer_bytes: Sequence[int],
    libm: Sequence[str],
    feed: FeedCode | None = None,
    set_: str = "",
    goal: Goal = BALANCED,
    watch: WatchCode | None = None,
    adapt: AdaptCode | None = None,
) -> Summary:
    """Everything in plain JSON types.

    ``layer_bytes``: of each layer's tables; ``libm``: the functions that only a full C library has.
    """
    kernels = {file for chosen in selected for file in chosen.kernel.runtime_sources(chosen.layer)}
    rows = rows_code(graph, selected, plan, target)
    runtime = sorted(
        kernels
        | set(feed.sources if feed else ())
        | (watch.sources(rows is not None) if watch else set())
        | set(adapt.sources if adapt else ())
    )
    return Summary(
        {
            "name": name,
            "version": version,
            "target": target.name,
            **({} if goal is BALANCED else {"optimize": goal.name, "compile_flag": goal.flag}),
            "sha256": sha256,
            "set": set_,  # identifies the C, and with it the header and the tables
            "arena_bytes": plan.arena_bytes,
            "arena_lower_bound_bytes": plan.lower_bound_bytes,
            "state_bytes": sum(graph.tensors[state.tensor].bytes for state in graph.states)
            + (feed.ram_bytes if feed else 0)
            + (rows.ram_bytes if rows else 0)
            + (watch.ram_bytes + (rows.watch_bytes if rows else 0) if watch else 0)
            + (adapt.ram_bytes if adapt else 0),
            "weights_bytes": sum(layer_bytes)
            + (feed.flash_bytes if feed else 0)
            + (watch.flash_bytes if watch else 0)
            + (adapt.flash_bytes if adapt else 0),
            "macs": sum(s.layer.op.macs(s.layer) for s in selected),
            "inputs": [_tensor(graph.tensors[n]) for n in graph.inputs],
            "outputs": [_tensor(graph.tensors[n]) for n in graph.outputs],
            "layers": [
                _layer(s, weights, plan.problem.live_bytes(step), _touched(plan, step, s))
                for step, (s, weights) in enumerate(zip(selected, layer_bytes, strict=True))
            ],
            **({"buffers": "caller"} if plan.io_outside else {}),
            **({"frontend": _frontend(feed)} if feed else {}),
            **({"rows": rows.summary} if rows else {}),
            **({"watch": summary_of(watch, target.name)} if watch else {}),
            **({"adapt": summary_of_adapt(adapt)} if adapt else {}),
            **({"npu": parts} if (parts := _npu(selected)) else {}),
            "sources": {
                "runtime": runtime,
                "cmsis-nn": sorted({f for s in selected for f in s.kernel.cmsis_nn_sources(s.layer)}),
            },
            "libm": list(libm),
        }
    )


def _frontend(feed: FeedCode) -> dict[str, Any]:
    return {
        "description": feed.description,
        "sample": feed.sample,
        "rate": float(feed.rate),
        "axes": feed.axes,
        "window_samples": feed.window,
        "step_samples": feed.step,
        "features": feed.width,
        "rows": feed.rows,
        "stride": feed.stride,
        "ram_bytes": feed.ram_bytes,
        "flash_bytes": feed.flash_bytes,
    }


def _npu(selected: Sequence[Selected]) -> list[dict[str, Any]]:
    """The parts that an NPU computes, with Vela's estimate of its cycles."""
    return [
        {
            "layer": layer.name,
            "accelerator": op.accelerator,
            "operators": list(op.operators),
            "commands_bytes": len(op.commands),
            "weights_bytes": len(op.weights),
            "scratch_bytes": op.scratch_bytes,
            "cycles_estimated": op.cycles,
        }
        for layer in (chosen.layer for chosen in selected)
        if isinstance(op := layer.op, EthosU)
    ]


def _tensor(tensor: Tensor) -> dict[str, Any]:
    quant = tensor.quant if tensor.quant is not None and not tensor.quant.per_channel else None
    return {
        "name": tensor.name,
        "shape": list(tensor.shape),
        "dtype": tensor.dtype.value,
        "bytes": tensor.bytes,
        "scale": quant.scale if quant else None,
        "zero_point": quant.zero_point if quant else None,
    }


def _touched(plan: Plan, step: int, chosen: Selected) -> list[list[int]]:
    """The bytes of the arena that a layer may touch: its inputs, outputs and scratch memory."""
    tensors = [
        t for t in (*chosen.layer.inputs, *chosen.layer.outputs) if t is not None and not t.is_constant
    ]
    places = [(plan.places[t.name], t.bytes) for t in tensors]
    found = {(p.offset, p.offset + size) for p, size in places if p.region is Region.ARENA}
    if chosen.scratch_bytes:
        found.add((plan.scratch[step], plan.scratch[step] + chosen.scratch_bytes))
    return [[start, end] for start, end in sorted(found)]


def _layer(chosen: Selected, weights_bytes: int, live_bytes: int, touched: list[list[int]]) -> dict[str, Any]:
    layer = chosen.layer
    return {
        "name": layer.name,
        "op": layer.op.kind,
        "kernel": chosen.kernel.name,
        "library": chosen.kernel.library.value,
        "macs": layer.op.macs(layer),
        "weights_bytes": weights_bytes,
        "scratch_bytes": chosen.scratch_bytes,
        "live_bytes": live_bytes,  # of the arena, while it runs
        "arena": touched,
        "outputs": [t.name for t in layer.outputs],
    }
