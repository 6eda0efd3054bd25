# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The settings of a front end, as tinyml.yaml, CMake, platformio.ini and command lines write them."""

from __future__ import annotations

import dataclasses
import difflib
import math
from collections.abc import Iterable, Mapping
from typing import Any

from tinyml.base.errors import ConfigError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.features.kinds import KINDS, Kind, Settings
from tinyml.ir import Array

INPUTS = ("auto", "model", "published")
KEYS = {
    "kind": f"which front end: {', '.join(KINDS)}",
    "stride": "rows of features between two runs (default: all that a stateful model takes, else 1)",
    "input": "how integer features become int8: by the quantisation of the model, as published micro models "
    "do it (feature * 256 / 666 - 128), or auto: as published where the model's range is theirs",
}
"""Settings that all kinds have, in addition to their own."""


@dataclass(frozen=True)
class FrontEnd:
    """A front end, chosen and checked."""

    kind: str
    settings: Settings
    stride: int | None = None
    input: str = "auto"
    given: tuple[tuple[str, str], ...] = ()  # as the user wrote it

    @property
    def of(self) -> Kind:
        return KINDS[self.kind]

    def compute(self, samples: Array) -> Array:
        """Rows of features of a whole recording: (frames,) or (frames, axes)."""
        return self.of.compute(samples, self.settings)

    def describe(self) -> str:
        """For the provenance comment and the key of caches."""
        return "front end " + " ".join(f"{key}={value}" for key, value in self.given)


def keys_of(kind: str) -> dict[str, Any]:
    """A kind's own keys with their default values."""
    fields = dataclasses.fields(KINDS[kind].settings)  # type: ignore[arg-type]
    return {field.name: field.default for field in fields}


def from_mapping(value: object, where: str) -> FrontEnd:
    """From YAML, or from texts by key."""
    if isinstance(value, str):
        value = {"kind": value}
    if not isinstance(value, dict):
        raise ConfigError(f"{where}: 'frontend' must be a mapping", "frontend: {kind: micro, step_ms: 10}")
    given = {str(key): item for key, item in value.items()}
    kind = given.pop("kind", None)
    if not isinstance(kind, str) or kind not in KINDS:
        found = "has no kind" if kind is None else f"cannot be of kind {kind!r}"
        raise ConfigError(f"{where}: the front end {found}", f"one of: {', '.join(KINDS)}")
    own = keys_of(kind)
    for key in given:
        if key not in own and key not in KEYS:
            allowed = (*KEYS, *own)
            close = difflib.get_close_matches(key, allowed, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"one of: {', '.join(allowed)}"
            raise ConfigError(f"{where}: the front end {kind} has no key {key!r}", hint)
    written = (("kind", kind), *((key, _text(item)) for key, item in given.items()))
    stride = given.pop("stride", None)
    input_ = str(given.pop("input", "auto"))
    if input_ not in INPUTS:
        raise ConfigError(f"{where}: the front end has no input {input_!r}", f"one of: {', '.join(INPUTS)}")
    try:
        settings = KINDS[kind].settings(**{key: _typed(key, item, own[key]) for key, item in given.items()})
        rows = None if stride is None else _typed("stride", stride, 1)
    except ConfigError as error:
        raise ConfigError(f"{where}: front end: {error.message}", error.hint) from None
    if rows is not None and rows < 1:
        raise ConfigError(f"{where}: front end: a stride of {rows} rows", "1 or more")
    return FrontEnd(kind, settings, rows, input_, written)


def from_items(items: Iterable[str], where: str) -> FrontEnd | None:
    """From ``key=value`` texts, of which the kind may come without its key. None if there are none."""
    found: dict[str, str] = {}
    for item in items:
        key, equals, text = (part.strip() for part in item.partition("="))
        found[key if equals else "kind"] = text if equals else key
    return from_mapping(found, where) if found else None


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _typed(key: str, value: object, default: object) -> Any:
    """The value as the type that the default has."""
    text = _text(value).strip()
    try:
        if isinstance(default, bool):
            return {"true": True, "false": False, "yes": True, "no": False}[text.lower()]
        if isinstance(default, int):
            return int(text)
        if isinstance(default, float):
            return _finite(text)
        if isinstance(default, tuple):
            parts = [part.strip() for part in text.strip("[]").split(",") if part.strip()]
            return tuple(parts) if default and isinstance(default[0], str) else tuple(map(_finite, parts))
    except (ValueError, KeyError):
        kinds: Mapping[type, str] = {bool: "true or false", int: "a whole number", float: "a number"}
        raise ConfigError(
            f"{key}: {text!r}", kinds.get(type(default), "numbers, separated by commas")
        ) from None
    return text


def _finite(text: str) -> float:
    """A number; neither infinite nor none, which float() accepts too."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value
