# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A profile as a trace for Perfetto (ui.perfetto.dev) and Chrome's tracing page: one slice per layer."""

from __future__ import annotations

import json

from tinyml.report.facts import LayerFacts, Report


def trace(report: Report) -> str:
    """Layers one after the other; without a clock rate, a microsecond is one instruction or cycle."""
    unit, per_microsecond = _scale(report)
    events: list[dict[str, object]] = [
        _name("process_name", f"{report.model} on {report.target}"),
        _name("thread_name", unit if report.mhz is None else f"time at {report.mhz:g} MHz, {unit}"),
    ]
    start = 0
    for layer in report.layers:
        count = _count(layer, unit)
        if not count:
            continue
        events.append(
            {
                "name": f"{layer.label} {'x'.join(map(str, layer.shape))}",
                "cat": layer.library,
                "ph": "X",
                "ts": start / per_microsecond,
                "dur": count / per_microsecond,
                "pid": 1,
                "tid": 1,
                "args": {
                    "layer": layer.name,
                    "kernel": layer.kernel,
                    unit: count,
                    "MACs": layer.macs,
                    "live bytes": layer.live_bytes,
                },
            }
        )
        start += count
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}, indent=1) + "\n"


def _scale(report: Report) -> tuple[str, float]:
    """What is counted, and how many make a microsecond."""
    unit = report.cost_unit or "instructions"
    if report.mhz is None:
        return unit, 1
    estimated = report.measured is not None and report.measured.cycles_estimated is not None
    return ("cycles" if unit == "cycles" else "estimated cycles" if estimated else unit), report.mhz


def _count(layer: LayerFacts, unit: str) -> int:
    counts = {"cycles": layer.cycles, "estimated cycles": layer.cycles_estimated}
    return counts.get(unit, layer.instructions) or 0


def _name(kind: str, name: str) -> dict[str, object]:
    return {"name": kind, "ph": "M", "pid": 1, "tid": 1, "args": {"name": name}}
