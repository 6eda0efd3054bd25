# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Options of TensorFlow Lite's custom operators: maps in the form of flexbuffers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
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


def flag(node: TfliteNode, name: str) -> bool:
    """A truth value among the options; one that is not there is false."""
    return bool(_all(node).get(name, False))


def real(node: TfliteNode, name: str) -> float:
    """A real number among the options, which is stored with 32 bits."""
    value = _all(node).get(name)
    if not isinstance(value, int | float) or not math.isfinite(value):
        raise ModelError(f"{node.op_type} operator {node.name!r} has no real option {name!r}", MALFORMED)
    return float(np.float32(value))


def present(node: TfliteNode, name: str) -> bool:
    """Whether the options have this name."""
    return name in _all(node)


def _all(node: TfliteNode) -> dict[str, Any]:
    try:
        found = flexbuffers.Loads(node.custom_options) if node.custom_options else {}
    except (*BROKEN, AssertionError):  # the package asserts some of what it expects of a map
        raise ModelError(f"{node.op_type} operator {node.name!r} has malformed options", MALFORMED) from None
    return found if isinstance(found, dict) else {}
