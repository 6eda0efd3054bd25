# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Extents of inputs that a model leaves open (batch, time): each becomes 1, with a note to the user."""

from __future__ import annotations

from collections.abc import Sequence

from tinyml.ops.framework.reading import Builder

Extent = int | str
"""A number, or the name of an open extent; empty if it has none."""


def closed(build: Builder, name: str, extents: Sequence[Extent]) -> tuple[int, ...]:
    """The shape with 1 for every open extent; adds a note to ``build``."""
    if text := open_note(name, extents):
        build.open_inputs[name] = text
        build.note(text)
    return _shape(extents)


def open_note(name: str, extents: Sequence[Extent]) -> str:
    """Which extents of an input become 1, and how to set them; empty if none is open."""
    missing = [extent or f"axis {axis}" for axis, extent in enumerate(extents) if isinstance(extent, str)]
    if not missing:
        return ""
    words = " and ".join(missing) if len(missing) < 3 else ", ".join(missing)
    return (
        f"input {name!r} leaves {words} open: taken as 1, so its shape is "
        f"{'x'.join(map(str, _shape(extents)))}; "
        f"--shape {name}={_pattern(extents)} sets {'it' if len(missing) == 1 else 'them'}"
    )


def _shape(extents: Sequence[Extent]) -> tuple[int, ...]:
    return tuple(1 if isinstance(extent, str) else extent for extent in extents)


def _pattern(extents: Sequence[Extent]) -> str:
    """``?x?x40``."""
    return "x".join("?" if isinstance(extent, str) else str(extent) for extent in extents)
