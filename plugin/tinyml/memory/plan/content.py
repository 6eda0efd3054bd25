# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The content of a tensor's bytes: which of them are copies of bytes of other tensors.

``Op.views`` declares this for reshape, slice, split and concatenation. Two live tensors may overlap wherever
their bytes have the same content.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Layer, Tensor


@dataclass(frozen=True)
class Segment:
    """Bytes ``start`` to ``end`` of a tensor are those of ``origin`` from ``origin_start`` on."""

    start: int
    end: int
    origin: str
    origin_start: int


Content = tuple[Segment, ...]


def own(tensor: Tensor) -> Content:
    """A tensor that is not a copy."""
    return (Segment(0, tensor.bytes, tensor.name, 0),)


def part(content: Content, start: int, end: int) -> Content:
    """The bytes from ``start`` to ``end``, counted from 0."""
    cut = []
    for segment in content:
        low, high = max(segment.start, start), min(segment.end, end)
        if low < high:
            cut.append(
                Segment(low - start, high - start, segment.origin, segment.origin_start + low - segment.start)
            )
    return tuple(cut)


def contents(sources: Iterable[Tensor], layers: Sequence[Layer]) -> dict[str, Content]:
    """The content of every tensor; ``sources`` are those that no layer computes."""
    known = {tensor.name: own(tensor) for tensor in sources}
    for layer in layers:
        for tensor in layer.inputs:
            if tensor is not None:
                known.setdefault(tensor.name, own(tensor))
        for tensor in layer.outputs:
            known[tensor.name] = _content(tensor, layer, known)
    return known


def _content(tensor: Tensor, layer: Layer, known: dict[str, Content]) -> Content:
    sizes = {t.name: t.bytes for t in layer.inputs if t is not None}
    segments: list[Segment] = []
    for view in layer.op.views(layer):
        if view.inner == tensor.name and view.outer in sizes:
            return part(known[view.outer], view.offset_bytes, view.offset_bytes + tensor.bytes)
        if view.outer == tensor.name and view.inner in sizes:
            segments += [
                replace(s, start=s.start + view.offset_bytes, end=s.end + view.offset_bytes)
                for s in known[view.inner]
            ]
    return _filled(tensor, segments)


def _filled(tensor: Tensor, segments: list[Segment]) -> Content:
    """Segments in order, with neighbours joined and gaps filled with the tensor's own bytes."""
    result: list[Segment] = []
    at = 0
    for segment in [*sorted(segments, key=lambda s: s.start), Segment(tensor.bytes, tensor.bytes, "", 0)]:
        if at < segment.start:
            result.append(Segment(at, segment.start, tensor.name, at))
        if segment.start < segment.end:
            last = result[-1] if result else None
            follows = (
                last is not None
                and last.origin == segment.origin
                and last.origin_start + last.end - last.start == segment.origin_start
                and last.end == segment.start
            )
            if last is not None and follows:
                result[-1] = replace(last, end=segment.end)
            else:
                result.append(segment)
        at = max(at, segment.end)
    return tuple(result)
