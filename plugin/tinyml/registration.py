# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Refuses a second registration of an operator's function, which would silently replace the first."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from tinyml.errors import RegistrationError


def check_new(known: Callable[..., Any] | None, function: Callable[..., Any], what: str) -> None:
    """Two functions for one purpose are a mistake; a module that is imported again is not."""
    if known is not None and _place(known) != _place(function):
        raise RegistrationError(what, (_place(known), _place(function)))


def _place(function: Callable[..., Any]) -> str:
    """The file and line of a function."""
    code = inspect.unwrap(function).__code__
    return f"{code.co_filename}:{code.co_firstlineno}"
