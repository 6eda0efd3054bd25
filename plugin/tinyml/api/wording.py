# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Hints of errors in the words of Python: parameters instead of options of the command line."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

from tinyml.base.errors import TinymlError

OPTION = re.compile(r"--([a-z][a-z0-9]*(?:-[a-z0-9]+)*)(?:[ =]([^\s,;()]*[\d:=A-Z][^\s,;()]*))?")
PARAMETERS = {"shape": "shapes"}
"""Options whose parameters have other names."""


def in_python(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, whose errors name parameters where those of the commands name options."""

    @functools.wraps(function)
    def called(*arguments: Any, **named: Any) -> Any:
        try:
            return function(*arguments, **named)
        except TinymlError as error:
            error.message, error.hint = translated(error.message), translated(error.hint)
            error.args = tuple(translated(arg) if isinstance(arg, str) else arg for arg in error.args)
            raise

    return called


def translated(text: str) -> str:
    """``--range 0:1`` as ``range=(0, 1)``, ``--keep-float conv1`` as ``keep_float='conv1'``."""
    return OPTION.sub(_parameter, text)


def _parameter(option: re.Match[str]) -> str:
    name, value = option[1], option[2]
    parameter = PARAMETERS.get(name, name.replace("-", "_"))
    if not value:
        return parameter
    if name == "range":
        return f"{parameter}=({', '.join(value.split(':'))})"
    if name == "shape":
        tensor, _, sizes = value.rpartition("=")
        return f"{parameter}={{{tensor!r}: ({', '.join(sizes.split('x'))})}}"
    return f"{parameter}={value!r}"
