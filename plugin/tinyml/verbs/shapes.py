"""`--shape INPUT=1x16x8`: shapes that a model leaves open."""

from __future__ import annotations

from collections.abc import Sequence

from tinyml.app import manifest
from tinyml.errors import ConfigError


def parse_shapes(given: Sequence[str]) -> dict[str, str]:
    """``["audio=1x16x8"]`` as a mapping; checked like the shapes in a manifest."""
    shapes = {}
    for text in given:
        name, equals, shape = text.rpartition("=")
        if not equals or not name:
            raise ConfigError(f"--shape {text!r} names no input", "--shape input=1x16x8")
        shapes[name] = shape
    return manifest.checked_shapes(shapes, "--shape")


def shapes_by_input(given: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """The same as numbers."""
    return {name: tuple(map(int, text.split("x"))) for name, text in parse_shapes(given).items()}
