# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Forms of values that any setting can have: a choice, a label, names, files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tinyml.base.errors import ConfigError, did_you_mean
from tinyml.settings.setting import Form
from tinyml.settings.written import is_c, kind, relative_path, start


def list_of_texts() -> dict[str, Any]:
    """JSON Schema of a list of texts that is not empty."""
    return {"type": "array", "items": {"type": "string"}, "minItems": 1}


SIMPLE = ("string", "number", "boolean", "array")
"""Types of values that are read as texts. Editors write the colon after a key only if they know its type."""


def mapping_of(
    keys: Mapping[str, str],
    required: Sequence[str] = (),
    choices: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> dict[str, Any]:
    """JSON Schema of a mapping with some keys, their help, and the words that some of them can be."""

    def value(key: str) -> dict[str, Any]:
        nothing = () if key in required else (None,)
        if key in choices:
            return {"type": ["string", *("null" for _ in nothing)], "enum": [*choices[key], *nothing]}
        return {"type": [*SIMPLE, *("null" for _ in nothing)]}

    return {
        "type": "object",
        "properties": {key: {"description": about, **value(key)} for key, about in keys.items()},
        "required": list(required),
        "additionalProperties": False,
    }


class Text(Form):
    """Any text."""

    def read(self, value: Any, where: str) -> str:
        if not isinstance(value, str):
            raise ConfigError(f"{start(where)}{self.key!r} must be a string, found {kind(value)}")
        return value


class Choice(Form):
    """One of some words. ``complaint`` is the message for others."""

    def __init__(self, choices: Iterable[str], complaint: str = "") -> None:
        self.choices, self.complaint = tuple(choices), complaint

    def read(self, value: Any, where: str) -> str:
        if value in self.choices:
            return str(value)
        complaint = self.complaint or f"{self.key} cannot be {{!r}}"
        raise ConfigError(
            f"{start(where)}{complaint.format(value)}{did_you_mean(str(value), self.choices)}",
            f"one of: {', '.join(self.choices)}",
        )


class Label(Form):
    """A label of the devicetree, or a word with a meaning of its own."""

    def __init__(self, what: str, *examples: str) -> None:
        self.what, self.examples = what, examples

    def read(self, value: Any, where: str) -> str:
        if isinstance(value, str) and re.fullmatch(r"[A-Za-z_]\w*", value):
            return value
        raise ConfigError(
            f"{start(where)}{self.key!r} must be {self.what}", f"{self.key}: {self.examples[0]}"
        )

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "pattern": r"^[A-Za-z_]\w*$", "examples": list(self.examples)}


class Names(Form):
    """Names, each once; separated by commas where they are one word."""

    empty = ()

    def __init__(self, example: str) -> None:
        self.example = example

    def read(self, value: Any, where: str) -> tuple[str, ...]:
        names = value.split(",") if isinstance(value, str) else value
        if not isinstance(names, list | tuple) or not names:
            raise ConfigError(
                f"{start(where)}{self.key!r} must be a list of names, found {kind(value)}",
                f"{self.key}: {self.example}",
            )
        for name in names:
            if not isinstance(name, str) or not name.strip() or "," in name:
                raise ConfigError(
                    f"{start(where)}{name!r} in {self.key!r} is not a name",
                    f"{self.key}: {self.example}; commas separate names",
                )
        stripped = tuple(name.strip() for name in names)
        if len({*stripped}) < len(stripped):
            raise ConfigError(f"{start(where)}{self.key!r} has a name twice: {', '.join(stripped)}")
        return stripped

    def schema(self) -> dict[str, Any]:
        return {"anyOf": [{"type": "string"}, list_of_texts()]}

    def parse(self, words: Sequence[str], where: str) -> tuple[str, ...]:
        return self.read(",".join(words), where)

    def words(self, value: Any, folder: Path | None = None) -> list[str]:
        return [",".join(value)]

    def yaml(self, value: Any) -> list[str]:
        return list(value)

    def accept(self, value: Any) -> tuple[str, ...]:
        return self.read(value, "") if value else ()


class Files(Form):
    """Files; a single one need not be in a list."""

    many = True
    empty = ()

    def __init__(self, example: str, c_only: bool = False) -> None:
        self.example, self.c_only = example, c_only

    def read(self, value: Any, where: str) -> tuple[str, ...]:
        files = [value] if isinstance(value, str) else value
        if not isinstance(files, list) or not all(isinstance(file, str) and file for file in files):
            raise ConfigError(
                f"{where}: {self.key!r} must be a list of files", f"{self.key}: [{self.example}]"
            )
        found = tuple(relative_path(file, where) for file in files)
        for file in found:
            if self.c_only and not is_c(file):
                raise ConfigError(
                    f"{where}: {file!r} in {self.key!r} is not a C file", f"{self.key}: [{self.example}]"
                )
        return found

    def schema(self) -> dict[str, Any]:
        return {"anyOf": [{"type": "string"}, list_of_texts()]}

    def parse(self, words: Sequence[str], where: str) -> tuple[str, ...]:
        return tuple(words)

    def words(self, value: Any, folder: Path | None = None) -> list[str]:
        return [(folder / file).as_posix() if folder else str(file) for file in value]

    def yaml(self, value: Any) -> list[str]:
        return list(value)

    def relocated(self, value: Any, to: Callable[[str], str]) -> tuple[str, ...]:
        return tuple(map(to, value))

    def option(self, value: Any, folder: Path) -> tuple[Path, ...]:
        return tuple(folder / file for file in value)

    def accept(self, value: Any) -> tuple[Path, ...]:
        return tuple(map(Path, [value] if isinstance(value, str | Path) else value))

    def merged(self, common: Any, own: Any) -> tuple[Path, ...]:
        return (*common, *(own or ()))


class Switch(Form):
    """On or off; an option without a value on the command line."""

    switch = True
    empty = False
    words_for = MappingProxyType(
        {
            "true": True,
            "yes": True,
            "on": True,
            "1": True,
            "false": False,
            "no": False,
            "off": False,
            "0": False,
        }
    )

    def read(self, value: Any, where: str) -> bool:
        if isinstance(value, bool):
            return value
        word = str(value).strip().lower()
        if isinstance(value, str | int) and word in self.words_for:
            return self.words_for[word]
        raise ConfigError(
            f"{start(where)}{self.key!r} must be true or false, found {value!r}", f"{self.key}: true"
        )

    def schema(self) -> dict[str, Any]:
        return {"type": "boolean"}

    def words(self, value: Any, folder: Path | None = None) -> list[str]:
        return ["true" if value else "false"]


class DataFile(Form):
    """A file or folder with samples; its path is relative."""

    def __init__(self, example: str) -> None:
        self.example = example

    def read(self, value: Any, where: str) -> str:
        if not isinstance(value, str) or not value:
            raise ConfigError(
                f"{start(where)}{self.key!r} must be the path of a file, found {kind(value)}",
                f"{self.key}: {self.example}",
            )
        return relative_path(value, where, self.key)

    def parse(self, words: Sequence[str], where: str) -> str:
        return words[-1]

    def words(self, value: Any, folder: Path | None = None) -> list[str]:
        return [(folder / value).as_posix() if folder else str(value)]

    def relocated(self, value: Any, to: Callable[[str], str]) -> str:
        return to(value)

    def option(self, value: Any, folder: Path) -> Path:
        return folder / value

    def accept(self, value: Any) -> Path | None:
        return None if value is None else Path(value)
