# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Checks of values as users write them: kinds, keys, paths and amounts."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import PurePosixPath, PureWindowsPath

from tinyml.base.errors import ConfigError


def start(where: str) -> str:
    """``where`` as the start of a message; empty for values that come from Python."""
    return f"{where}: " if where else ""


def kind(value: object) -> str:
    names = {dict: "a mapping", list: "a list", str: "a string", bool: "yes/no", type(None): "nothing"}
    return names.get(type(value), f"a {type(value).__name__}")


class UnknownKeyError(ConfigError):
    """A mapping has a key that nothing reads."""

    def __init__(self, key: str, where: str, hint: str) -> None:
        super().__init__(f"{where}: unknown key {key!r}", hint)
        self.key = key


def refuse_unknown(mapping: Mapping[object, object], allowed: Sequence[str], where: str) -> None:
    for key in mapping:
        if key not in allowed:
            close = difflib.get_close_matches(str(key), allowed, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"one of: {', '.join(allowed)}"
            raise UnknownKeyError(str(key), where, hint)


def relative_path(file: str, where: str, key: str = "file") -> str:
    """A manifest is shared through version control: its paths must mean the same on every machine."""
    if "\0" in file or not file.strip():
        what = "has a NUL character" if "\0" in file else "is blank"
        raise ConfigError(f"{where}: {key!r} {what}, {file!r}", "a path relative to tinyml.yaml")
    if PurePosixPath(file.replace("\\", "/")).is_absolute() or PureWindowsPath(file).drive:
        raise ConfigError(
            f"{where}: {key!r} is an absolute path, {file!r}",
            "a path relative to tinyml.yaml, so that the application builds on other machines too",
        )
    return file.replace("\\", "/")


def as_number(text: str) -> str | int | float:
    """A number as tinyml.yaml should have it, without quotes; other texts as they are."""
    for kind_ in (int, float):
        try:
            number = kind_(text)
        except ValueError:
            continue
        if str(number) == text and math.isfinite(number):
            return number
    return text


def is_c(file: str) -> bool:
    return file.endswith(".c")


COUNT = r"(\d{1,15}(?:\.\d{1,6})?)\s*(|[kKmM])"
BYTES = r"(0|[1-9]\d{0,17})\s*(|[kKmM])[iI]?[bB]?"


def parse_count(text: str, where: str = "") -> int:
    """``2500000``, ``2500K`` or ``2.5M``, in thousands and millions."""
    match = re.fullmatch(COUNT, text.strip())
    count = (
        Fraction(match[1]) * {"": 1, "k": 1000, "m": 1000000}[match[2].lower()] if match else Fraction(1, 2)
    )
    if count.denominator != 1:
        raise ConfigError(f"{start(where)}{text!r} is not a count", "for example 2500000, 2500K or 2.5M")
    return int(count)


def parse_bytes(text: str, where: str = "") -> int:
    """``20480``, ``20K`` or ``1M`` as bytes."""
    match = re.fullmatch(BYTES, text.strip())
    if not match:
        raise ConfigError(f"{start(where)}{text!r} is not a number of bytes", "for example 24576, 24K or 1M")
    return int(match[1]) * {"": 1, "k": 1024, "m": 1024 * 1024}[match[2].lower()]
