# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A compiled model's summary (``<name>.json``) as text for a terminal or a log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tinyml.base.naming import shape_text, short

LEAST_NAME = 12  # characters of a layer's name, however narrow the terminal


def memory_line(summary: Mapping[str, Any]) -> str:
    """What a model takes, in one line at the end of a build."""
    state = f" and {summary['state_bytes']:,} of state" if summary["state_bytes"] else ""
    return (
        f"{summary['name']}: {summary['arena_bytes']:,} bytes of arena{state} in RAM, "
        f"{summary['weights_bytes']:,} bytes of weights in flash"
    )


def describe(summary: Mapping[str, Any], columns: int = 100) -> str:
    """Memory first, then inputs and outputs, then the layers that do something; ``columns`` wide at most."""
    bound = summary["arena_lower_bound_bytes"]
    lines = [
        f"{summary['name']} (for {summary['target']})",
        f"  arena    {summary['arena_bytes']:>9,} bytes of RAM (lower bound {bound:,})",
        f"  weights  {summary['weights_bytes']:>9,} bytes of flash",
    ]
    if summary["state_bytes"]:
        lines.insert(2, f"  state    {summary['state_bytes']:>9,} bytes of RAM, kept between runs")
    for kind in ("inputs", "outputs"):
        for tensor in summary[kind]:
            shape = shape_text(tensor["shape"])
            lines.append(
                f"  {kind[:-1]:<8} {short(tensor['name'])}: {shape} {tensor['dtype']}, "
                f"{tensor['bytes']:,} bytes"
            )
    rows = [
        (
            short(layer["name"]),
            layer["op"],
            layer["kernel"],
            f"{layer['macs']:,}",
            f"{layer['weights_bytes']:,}",
        )
        for layer in summary["layers"]
    ]
    heads = ("layer", "operator", "kernel", "MACs", "weights")
    widths = [max(len(row[column]) for row in (heads, *rows)) for column in range(len(heads))]
    spare = columns - sum(widths) - 2 * len(widths)  # what is too long goes at the expense of the names
    widths[0] = max(LEAST_NAME, widths[0] + min(spare, 0))
    rows = [(short(row[0], widths[0]), *row[1:]) for row in rows]
    for row in (heads, *rows):
        texts = [cell.ljust(width) for cell, width in zip(row[:3], widths[:3], strict=True)]
        numbers = [cell.rjust(width) for cell, width in zip(row[3:], widths[3:], strict=True)]
        lines.append("  " + "  ".join([*texts, *numbers]))
    return "\n".join(lines)
