# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Forms of values that one setting has; `request_forms.py` has those with keys of their own."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tinyml.base.errors import ConfigError
from tinyml.cores.accelerators import ACCELERATORS, LISTED, unknown
from tinyml.settings.forms import Choice, Names, list_of_texts
from tinyml.settings.optimize import GOALS, find_goal
from tinyml.settings.passing import SPELLINGS, WORDS, Io
from tinyml.settings.setting import Form
from tinyml.settings.written import (
    kind,
    start,
)

if TYPE_CHECKING:
    pass

IN_PROJECTS = ("int8", "rows", "rows,int8")
"""The choices of ``io:`` in an application: what calls NAME_run() is its own code, except for buffers."""


class Passing(Form):
    """Inputs and outputs."""

    choices = SPELLINGS
    meanings = WORDS

    def read(self, value: Any, where: str) -> Io:
        try:
            return Io.of(value if isinstance(value, list | tuple) else str(value))
        except ConfigError as error:
            if not where:
                raise
            raise self._refused(value, where) from error

    def parse(self, words: Sequence[str], where: str) -> Io:
        return self.read(",".join(words), where)

    def schema(self) -> dict[str, Any]:
        words = {"type": "array", "items": {"enum": [word for word in WORDS if word != "caller"]}}
        return {"anyOf": [{"enum": [*IN_PROJECTS, "int8,rows"]}, words]}

    def check_project(self, value: Any, where: str) -> None:
        """The builds' own code calls NAME_run(), and passes no buffers to it."""
        if value.caller:
            raise self._refused(str(value), where)

    def _refused(self, value: object, where: str) -> ConfigError:
        return ConfigError(
            f"{where}: 'io' cannot be {value!r}", f"io: {' or '.join(IN_PROJECTS)}, or no such line"
        )

    def yaml(self, value: Any) -> str:
        return str(value)

    def accept(self, value: Any) -> Io:
        return Io.of(value)


class Spending(Form):
    """A key of GOALS."""

    choices = tuple(GOALS)
    meanings = MappingProxyType({goal.name: goal.about for goal in GOALS.values()})

    def read(self, value: Any, where: str) -> str:
        return find_goal(str(value), where).name


class Accelerator(Form):
    """The name of an NPU; empty, ``none`` on the command line: the CPU alone."""

    empty = ""

    def read(self, value: Any, where: str) -> str:
        if not isinstance(value, str):
            raise ConfigError(f"{start(where)}{self.key!r} must be a name, found {kind(value)}", LISTED)
        if value and value not in ACCELERATORS:
            raise ConfigError(f"{start(where)}{unknown(value)}", LISTED)
        return value

    def schema(self) -> dict[str, Any]:
        return {"enum": [*ACCELERATORS]}

    def parse(self, words: Sequence[str], where: str) -> str:
        return "" if words[-1] == "none" else self.read(words[-1], "")


class Classes(Names):
    """Names of classes; on the command line also a file with one per line."""

    hint = 'classes: [circle, "yes", "7"], each once; names have no comma or semicolon'

    def __init__(self) -> None:
        super().__init__("[circle, idle]")

    def read(self, value: Any, where: str) -> tuple[str, ...]:
        """YAML reads yes, no and numbers as something else than words."""
        if not isinstance(value, list) or not value:
            raise ConfigError(f"{where}: 'classes' must be a list of names, found {kind(value)}", self.hint)
        for name in value:
            if not isinstance(name, str) or not name.strip() or set(name) & set(",;\n\0"):
                raise ConfigError(f"{where}: {name!r} cannot be the name of a class", self.hint)
        if len(set(value)) < len(value):
            raise ConfigError(f"{where}: 'classes' names a class twice", self.hint)
        return tuple(value)

    def schema(self) -> dict[str, Any]:
        return {**list_of_texts(), "uniqueItems": True}

    def parse(self, words: Sequence[str], where: str) -> tuple[str, ...]:
        text = ",".join(words)
        path = Path(text)
        lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else text.split(",")
        names = tuple(line.strip() for line in lines if line.strip())
        if len(set(names)) < len(names):
            raise ConfigError(f"{where} names a class twice: {', '.join(names)}")
        return names

    def accept(self, value: Any) -> tuple[str, ...]:
        if isinstance(value, str):
            raise ConfigError(f"classes is the text {value!r}", 'a list, as ["circle", "idle"]')
        return tuple(value)


class Shapes(Form):
    """Shapes by input, as ``1x16x8``; in YAML and Python also as lists."""

    many = keyed = True
    empty: Mapping[str, Any] = MappingProxyType({})

    def read(self, value: Any, where: str) -> dict[str, str]:
        if not isinstance(value, Mapping):
            raise ConfigError(
                f"{where}: 'shapes' must be a mapping, found {kind(value)}",
                "shapes of inputs that the model leaves open, as `input: 1x16x8`",
            )
        shapes = {}
        for name, shape in value.items():
            text = "x".join(map(str, shape)) if isinstance(shape, list | tuple) else str(shape)
            if not str(name).strip():
                raise ConfigError(f"{where}: a shape in 'shapes' has no input", "input: 1x16x8")
            if not re.fullmatch(r"[1-9]\d{0,17}(x[1-9]\d{0,17})*", text):
                raise ConfigError(f"{where}: {text!r} is not a shape for {name!r}", "1x16x8, or [1, 16, 8]")
            shapes[str(name)] = text
        return shapes

    def schema(self) -> dict[str, Any]:
        text = {"type": ["string", "integer"], "pattern": r"^[1-9]\d*(x[1-9]\d*)*$"}
        numbers = {"type": "array", "items": {"type": "integer", "minimum": 1}}
        return {"type": "object", "additionalProperties": {"anyOf": [text, numbers]}}

    def parse(self, words: Sequence[str], where: str) -> dict[str, str]:
        shapes = {}
        for item in words:
            name, equals, shape = (part.strip() for part in item.rpartition("="))
            if not equals or not name:
                raise ConfigError(f"{where}: {item!r} does not name an input", "input=1x16x8")
            shapes[name] = shape
        return self.read(shapes, where)

    def words(self, value: Any, folder: Path | None = None) -> list[str]:
        return [f"{name}={shape}" for name, shape in value.items()]

    def yaml(self, value: Any) -> dict[str, str]:
        return dict(value)

    def option(self, value: Any, folder: Path) -> dict[str, tuple[int, ...]]:
        return {name: tuple(map(int, shape.split("x"))) for name, shape in value.items()}

    def accept(self, value: Any) -> dict[str, tuple[int, ...]]:
        return dict(value)

    def merged(self, common: Any, own: Any) -> dict[str, tuple[int, ...]]:
        return {**common, **(own or {})}


class Bounds(Form):
    """Numbers of results by node, as ``NAME=100``."""

    many = keyed = True
    empty: Mapping[str, Any] = MappingProxyType({})

    def read(self, value: Any, where: str) -> dict[str, int]:
        if not isinstance(value, Mapping):
            raise ConfigError(
                f"{where}: 'bounds' must be a mapping, found {kind(value)}",
                "the most results of a node, as `NonMaxSuppression_5: 100`",
            )
        bounds = {}
        for name, most in value.items():
            if not str(name).strip():
                raise ConfigError(f"{where}: a bound in 'bounds' has no node", "NonMaxSuppression_5: 100")
            if isinstance(most, bool) or not re.fullmatch(r"[1-9]\d{0,8}", str(most)):
                raise ConfigError(
                    f"{where}: {str(most)!r} is not a bound for {name!r}", "a whole number from 1 on, as 100"
                )
            bounds[str(name)] = int(most)
        return bounds

    def schema(self) -> dict[str, Any]:
        return {"type": "object", "additionalProperties": {"type": "integer", "minimum": 1}}

    def parse(self, words: Sequence[str], where: str) -> dict[str, int]:
        bounds = {}
        for item in words:
            name, equals, most = (part.strip() for part in item.rpartition("="))
            if not equals or not name:
                raise ConfigError(f"{where}: {item!r} does not name a node", "NonMaxSuppression_5=100")
            bounds[name] = most
        return self.read(bounds, where)

    def words(self, value: Any, folder: Path | None = None) -> list[str]:
        return [f"{name}={most}" for name, most in value.items()]

    def yaml(self, value: Any) -> dict[str, int]:
        return dict(value)

    def merged(self, common: Any, own: Any) -> dict[str, int]:
        return {**common, **(own or {})}


KERNELS = Choice(("auto", "cmsis-nn", "portable"), "unknown kernels {!r}")

ARITHMETIC = Choice(("float32", "float16"), "unknown arithmetic {!r}")
