# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Who registered what: refuses a second registration, and knows the files from outside that register."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tinyml.base.errors import ConfigError, RegistrationError, TinymlError


def check_new(known: Callable[..., Any] | None, function: Callable[..., Any], what: str) -> None:
    """Two functions for one purpose are a mistake; a module that is imported again is not."""
    if known is not None and _place(known) != _place(function):
        raise RegistrationError(what, (_place(known), _place(function)))


OUTSIDE: dict[str, Path] = {}
"""Files from outside that register operators, by the names that tracebacks give them."""


def is_from_outside(kind: type) -> bool:
    """Whether an operator, say, is not one of this compiler's own."""
    return not kind.__module__.startswith("tinyml.")


@contextmanager
def outside_faults() -> Iterator[None]:
    """Wraps what may call files from outside: their mistakes become messages."""
    try:
        yield
    except TinymlError:
        raise
    except Exception as error:
        if fault := outside_fault(error):
            raise fault from error
        raise


def outside_fault(error: BaseException) -> ConfigError | None:
    """An exception that passed through a file from outside, as a message with the file and the line."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename in OUTSIDE:
            detail = str(error) or "no message"
            return ConfigError(
                f"{OUTSIDE[frame.filename]}:{frame.lineno}: {type(error).__name__}: {detail}",
                "correct the operator; docs/operators.md describes what each function has to do",
            )
    return None


def _place(function: Callable[..., Any]) -> str:
    """The file and line of a function."""
    code = inspect.unwrap(function).__code__
    return f"{code.co_filename}:{code.co_firstlineno}"
