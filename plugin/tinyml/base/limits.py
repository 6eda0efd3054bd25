# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Limits on what a file may ask of the compiler, so that a hostile one costs neither hours nor gigabytes.

All are far above what fits a microcontroller. A user with a larger model raises one for a command by an
environment variable: ``TINYML_LIMIT_TENSOR_ELEMENTS=500000000 tinyml compile …``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from tinyml.base.errors import ConfigError, ModelError

DEFAULTS = {
    "file_bytes": (2**30, "bytes of a model file, with its external data"),
    "nodes": (20_000, "nodes of a model, those inside subgraphs and functions included"),
    "depth": (32, "subgraphs and functions inside one another"),
    "rank": (16, "axes of a tensor"),
    "tensor_elements": (2**26, "elements of one tensor"),
    "total_elements": (2**28, "elements of all tensors of a model together"),
    "multiplications": (2**40, "multiplications of one operator"),
    "seconds": (3600, "seconds of compiling one model, quantising not included"),
    "yaml_bytes": (2**20, "bytes of a tinyml.yaml"),
    "samples_bytes": (2**32, "bytes of calibration data"),
}
"""Default and meaning of every limit. SECURITY.md lists the same table, which a test compares."""

VARIABLE = "TINYML_LIMIT_"

MOST_PORTS = 255
"""Inputs, and outputs, of a compiled model: struct tinyml_model counts them in a byte."""

_DEADLINE: ContextVar[float | None] = ContextVar("deadline", default=None)


def limit(name: str) -> int:
    """The limit in force."""
    default = DEFAULTS[name][0]
    text = os.environ.get(VARIABLE + name.upper(), "").strip()
    if not text:
        return default
    if not text.isascii() or not text.isdecimal() or len(text) > 18 or int(text) < 1:
        raise ConfigError(f"{VARIABLE}{name.upper()}={text!r} is not a limit", f"a number, such as {default}")
    return int(text)


def check(name: str, found: int, what: str) -> None:
    """Refuse what is above a limit; ``what`` begins the message."""
    allowed = limit(name)
    if found > allowed:
        raise ModelError(
            f"{what}: {found:,} {DEFAULTS[name][1].split(' of ')[0]}, and at most {allowed:,} are allowed",
            f"if the model is right, set {VARIABLE}{name.upper()}={found} in the environment",
        )


def check_shape(shape: Iterable[int], what: str) -> None:
    """Refuse a shape before memory is allocated for it."""
    extents = tuple(shape)
    check("rank", len(extents), what)
    elements = 1
    for extent in extents:
        if extent < 0:
            raise ModelError(f"{what}: an extent of {extent} in the shape {'x'.join(map(str, extents))}")
        elements *= max(extent, 1)  # arrays without elements cannot have any other extents either
    check("tensor_elements", elements, what)


@contextmanager
def timed() -> Iterator[None]:
    """Around compiling a model: inside, ``check_time`` ends what takes too long."""
    token = _DEADLINE.set(time.monotonic() + limit("seconds"))
    try:
        yield
    finally:
        _DEADLINE.reset(token)


def check_time() -> None:
    """Called in every loop whose length a file decides."""
    deadline = _DEADLINE.get()
    if deadline is not None and time.monotonic() > deadline:
        allowed = limit("seconds")
        raise ModelError(
            f"compiling takes longer than {allowed:,} seconds",
            f"a smaller model; or set {VARIABLE}SECONDS={4 * allowed} in the environment",
        )
