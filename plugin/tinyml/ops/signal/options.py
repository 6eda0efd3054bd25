# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Options of TensorFlow Lite Micro's signal operators: maps in the form of flexbuffers."""

from __future__ import annotations

from typing import Any

from flatbuffers import flexbuffers

from tinyml.base.errors import ModelError
from tinyml.ops.framework.reading import BROKEN, MALFORMED, TfliteNode


def option(node: TfliteNode, name: str, low: int = 0, high: int = 0x7FFFFFFF) -> int:
    """A number among the options of a custom operator, which must be from ``low`` to ``high``."""
    value = _all(node).get(name)
    if not isinstance(value, int):
        raise ModelError(f"{node.op_type} operator {node.name!r} has no option {name!r}", MALFORMED)
    if not low <= value <= high:
        raise ModelError(
            f"{node.op_type} operator {node.name!r}: {name} is {value}; it must be from {low} to {high}",
            MALFORMED,
        )
    return value


def _all(node: TfliteNode) -> dict[str, Any]:
    try:
        found = flexbuffers.Loads(node.custom_options) if node.custom_options else {}
    except (*BROKEN, AssertionError):  # the package asserts some of what it expects of a map
        raise ModelError(f"{node.op_type} operator {node.name!r} has malformed options", MALFORMED) from None
    return found if isinstance(found, dict) else {}
