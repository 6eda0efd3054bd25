# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Errors that a user can fix: each says what was found, what is allowed and what to try.

The shells (west, PlatformIO, console) print a ``TinymlError`` without a traceback. Anything else that
escapes is a bug in the compiler and keeps its traceback.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path


class TinymlError(Exception):
    """A problem the user can act on. ``hint`` says what to try."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  try: {self.hint}" if self.hint else self.message


class ModelError(TinymlError):
    """The model file is missing, broken, or not a model at all."""


class UnsupportedError(TinymlError):
    """The model is valid but requires something that this compiler does not support (yet)."""


class BudgetError(TinymlError):
    """The model compiles but does not fit the memory it was given."""


class ConfigError(TinymlError):
    """An option, a tinyml.yaml or an application folder is invalid."""


class GoalNotReachedError(ConfigError):
    """No choice of types loses as little as the user allows."""


class NothingToQuantizeError(ConfigError):
    """The model has no layer that could be stored as the request asks."""


class ToolError(TinymlError):
    """A program we need (compiler, QEMU, west) is missing or failed."""


class RegistrationError(TinymlError):
    """Two places claim one operator: the second would silently replace the first."""

    def __init__(self, what: str, places: tuple[str, str]) -> None:
        super().__init__(
            f"{what} is registered twice, at {places[0]} and at {places[1]}", "remove one of the two"
        )


INTERRUPTED = 130
"""The exit code of programs that Ctrl-C ends, as shells expect it."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``; did you mean ...?`` if a known word resembles ``word``, else nothing.

    The dashes of options do not count: all options begin alike.
    """
    names = {name.lower().lstrip("-"): name for name in known}
    word = word.lower().lstrip("-")
    close = difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    parts = sorted((name for name in names if len(word) > 1 and word in name), key=len)
    found = [names[name] for name in (close or parts)]
    return f"; did you mean {found[0]}?" if found else ""


@contextmanager
def called(path: Path, name: str) -> Iterator[None]:
    """Wraps code that reads a temporary file: its errors name what the file was made from."""
    try:
        yield
    except TinymlError as error:
        error.message, error.hint = (text.replace(str(path), name) for text in (error.message, error.hint))
        raise


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Wraps code that writes a file which the user named."""
    try:
        yield
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from None
    except ValueError as error:
        if "null" not in str(error):
            raise
        raise ConfigError(f"{str(path)!r} has a NUL character and is not a file name") from None
