# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What is different between two reports."""

from __future__ import annotations

from collections.abc import Iterator

from tinyml.base.lazy_dataclass import dataclass
from tinyml.base.naming import short
from tinyml.report.facts import LayerFacts, Report

TOTALS = (
    ("arena bytes", lambda r: r.arena_bytes),
    ("state bytes", lambda r: r.state_bytes),
    ("weights bytes", lambda r: r.weights_bytes),
    ("MACs", lambda r: r.macs),
    ("layers", lambda r: len(r.layers)),
    ("instructions", lambda r: r.measured.instructions if r.measured else None),
    ("estimated cycles", lambda r: r.measured.cycles_estimated if r.measured else None),
    ("flash bytes", lambda r: r.measured.flash_bytes if r.measured else None),
    ("estimated instructions", lambda r: r.estimated.instructions if r.estimated else None),
    ("estimated code bytes", lambda r: r.estimated.code_bytes if r.estimated else None),
    ("stack bytes", lambda r: r.measured.stack_bytes if r.measured else None),
)


@dataclass(frozen=True)
class Changed:
    """One line; ``better`` is None where neither is better."""

    what: str
    before: str
    after: str
    difference: str
    better: bool | None


def changes(old: Report, new: Report) -> Iterator[Changed]:
    """Totals first, then layers that were added, removed or changed."""
    for what, read in TOTALS:
        before, after = read(old), read(new)
        if before is not None and after is not None and before != after:
            share = f"{after / before - 1:+.1%}" if before else f"{after - before:+,}"
            yield Changed(what, f"{before:,}", f"{after:,}", share, after < before)
    known = {identity(layer): layer for layer in old.layers}
    here = {identity(layer) for layer in new.layers}
    for key, layer in known.items():
        if key not in here:
            yield Changed(f"layer {layer.op} {short(layer.name)}", layer.kernel, "gone", "", None)
    for layer in new.layers:
        before_layer = known.get(identity(layer))
        if before_layer is None:
            yield Changed(f"layer {layer.op} {short(layer.name)}", "", layer.kernel, "new", None)
        elif before_layer.kernel != layer.kernel:
            yield Changed(
                f"layer {layer.op} {short(layer.name)}", before_layer.kernel, layer.kernel, "kernel", None
            )


def identity(layer: LayerFacts) -> tuple[str, str, tuple[str, ...]]:
    """What makes two layers of different reports the same one."""
    return layer.op, layer.name, tuple(layer.outputs)
