# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`--shape INPUT=1x16x8`: shapes of inputs that a model leaves open."""

from __future__ import annotations

from collections.abc import Sequence

from tinyml.app import keys


def parse_shapes(given: Sequence[str]) -> dict[str, str]:
    """``["audio=1x16x8"]`` as a mapping; checked like the shapes in a manifest."""
    return keys.parse_shapes(given, "--shape")


def shapes_by_input(given: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """The same as numbers."""
    return {name: tuple(map(int, text.split("x"))) for name, text in parse_shapes(given).items()}
