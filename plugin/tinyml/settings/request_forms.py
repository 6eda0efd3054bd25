# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Forms of settings that have keys of their own: budgets, requests to other tools, descriptions of inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tinyml.base.errors import ConfigError
from tinyml.settings import adapt_request, evaluation, interface, quantize_request
from tinyml.settings.adapt_request import Adapt
from tinyml.settings.forms import mapping_of
from tinyml.settings.quantize_request import Request
from tinyml.settings.setting import Form
from tinyml.settings.written import (
    BYTES,
    COUNT,
    as_number,
    kind,
    parse_bytes,
    parse_count,
    refuse_unknown,
    relative_path,
)

if TYPE_CHECKING:
    from tinyml.features.settings import FrontEnd

INSTRUCTIONS = "instructions"
BUDGET_HELP = {
    "arena": "the most bytes of the arena, as 24576, 24K or 1M",
    "ram": "the most bytes of arena and state, as 24576, 24K or 1M",
    "flash": "the most bytes of weights, tables and code, as 24576, 24K or 1M",
    INSTRUCTIONS: "the most instructions of any run, as 2500000 or 2.5M, on Cortex-M cores",
}
BUDGETS = tuple(BUDGET_HELP)


def parse_amount(kind: str, text: str, where: str = "") -> int:
    """What a budget allows: bytes, or a count of instructions."""
    return parse_count(text, where) if kind == INSTRUCTIONS else parse_bytes(text, where)


class Budget(Form):
    """Bytes by kind of memory, and instructions."""

    many = keyed = True
    empty: Mapping[str, Any] = MappingProxyType({})

    def read(self, value: Any, where: str) -> dict[str, int]:
        if not isinstance(value, dict):
            raise ConfigError(f"{where}: 'budget' must be a mapping, found {kind(value)}", "ram: 24K")
        refuse_unknown(value, BUDGETS, f"{where}: budget")
        return {key: parse_amount(key, str(amount), f"{where}: budget") for key, amount in value.items()}

    def schema(self) -> dict[str, Any]:
        amount = {"type": ["string", "integer"], "minimum": 0, "pattern": rf"^\s*{BYTES}\s*$"}
        count = {"type": ["string", "number"], "minimum": 0, "pattern": rf"^\s*{COUNT}\s*$"}
        return {
            "type": "object",
            "properties": {
                kind: {"description": about, **(count if kind == INSTRUCTIONS else amount)}
                for kind, about in BUDGET_HELP.items()
            },
            "additionalProperties": False,
        }

    def words(self, value: Any, folder: Path | None = None) -> list[str]:
        return [f"{key}={amount}" for key, amount in value.items()]

    def yaml(self, value: Any) -> dict[str, int]:
        return dict(value)


class Interface(Form):
    """Types and shapes by input and output."""

    many = keyed = True
    empty: Mapping[str, Any] = MappingProxyType({})

    def read(self, value: Any, where: str) -> dict[str, interface.Kind]:
        return interface.from_mapping(value, where)

    def schema(self) -> dict[str, Any]:
        return {"type": "object", "additionalProperties": {"type": "string"}}

    def parse(self, words: Sequence[str], where: str) -> dict[str, interface.Kind]:
        return interface.from_items(words, where)

    def words(self, value: Any, folder: Path | None = None) -> list[str]:
        return [f"{name}={found.plain}" for name, found in value.items()]

    def yaml(self, value: Any) -> dict[str, str]:
        return {name: str(found) for name, found in value.items()}


class Quantize(Form):
    """Settings of the quantiser by key, as texts; their paths are relative."""

    many = True
    empty: Mapping[str, Any] = MappingProxyType({})

    def read(self, value: Any, where: str) -> dict[str, str]:
        given = quantize_request.settings(value, where)
        for key in quantize_request.PATHS:
            if key in given:
                given[key] = relative_path(given[key], where, f"quantize: {key}")
        try:
            quantize_request.from_settings(given, Path())
        except ConfigError as error:
            raise ConfigError(f"{where}: quantize: {error.message}", error.hint) from None
        return given

    def schema(self) -> dict[str, Any]:
        found = mapping_of(quantize_request.KEYS, ["calibration"], quantize_request.choices())
        float16 = {"properties": {"weights": {"const": "float16"}}, "required": ["weights"]}
        needed = {"if": float16, "else": {"required": found.pop("required")}}
        return {**found, **needed, "type": ["object", "string"]}

    def parse(self, words: Sequence[str], where: str) -> dict[str, str]:
        return quantize_request.parse_items(words, where)

    def words(self, value: Any, folder: Path | None = None) -> list[str]:
        if folder is not None:
            value = self.relocated(value, lambda file: (folder / file).as_posix())
        return [f"{key}={text}" for key, text in value.items()]

    def yaml(self, value: Any) -> dict[str, Any]:
        return {key: as_number(text) for key, text in value.items()}

    def relocated(self, value: Any, to: Callable[[str], str]) -> dict[str, str]:
        return {key: to(text) if key in quantize_request.PATHS else text for key, text in value.items()}

    def option(self, value: Any, folder: Path) -> Request:
        return quantize_request.from_settings(value, folder)

    def accept(self, value: Any) -> Request | None:
        if value is not None and not isinstance(value, Request):
            raise ConfigError(f"quantize is {kind(value)}", 'tinyml.quantize(), or calibration="data.npz"')
        return value


class Adapting(Form):
    """What learns on the device, and its settings by key, as texts; their paths are relative."""

    many = True
    empty: Mapping[str, Any] = MappingProxyType({})

    def read(self, value: Any, where: str) -> dict[str, str]:
        given = adapt_request.settings(value, where)
        for key in adapt_request.PATHS:
            if key in given:
                given[key] = relative_path(given[key], where, f"adapt: {key}")
        return given

    def schema(self) -> dict[str, Any]:
        found = mapping_of(
            adapt_request.KEYS,
            ["kind"],
            {
                "kind": adapt_request.KINDS,
                "loss": adapt_request.LOSSES,
                "distance": adapt_request.DISTANCES,
            },
        )
        return {"anyOf": [{"enum": list(adapt_request.KINDS)}, found]}

    def parse(self, words: Sequence[str], where: str) -> dict[str, str]:
        return adapt_request.parse_items(words, where)

    def words(self, value: Any, folder: Path | None = None) -> list[str]:
        if folder is not None:
            value = self.relocated(value, lambda file: (folder / file).as_posix())
        return [f"{key}={text}" for key, text in value.items()]

    def yaml(self, value: Any) -> Any:
        if list(value) == ["kind"]:
            return value["kind"]
        return {key: as_number(text) for key, text in value.items()}

    def relocated(self, value: Any, to: Callable[[str], str]) -> dict[str, str]:
        return {key: to(text) if key in adapt_request.PATHS else text for key, text in value.items()}

    def option(self, value: Any, folder: Path) -> Adapt | None:
        return adapt_request.from_settings(value, folder) if value else None

    def accept(self, value: Any) -> Adapt | None:
        if value is None or isinstance(value, Adapt):
            return value
        return adapt_request.from_settings(adapt_request.settings(value, ""), Path())


def _written(default: object) -> str:
    """A default as it is written in YAML."""
    if isinstance(default, tuple):
        return ",".join(map(str, default)) or "none"
    return str(default).lower() if isinstance(default, bool) else str(default)


class Frontend(Form):
    """The kind of a front end and its settings. Reading it imports numpy."""

    many = True

    def read(self, value: Any, where: str) -> FrontEnd:
        from tinyml.features.settings import from_mapping

        return from_mapping(value, where)

    def schema(self) -> dict[str, Any]:
        from tinyml.features.key_help import HELP
        from tinyml.features.kinds import KINDS
        from tinyml.features.settings import INPUTS, KEYS, keys_of

        own: dict[str, list[str]] = {}  # a key that two kinds have means the same in both; defaults differ
        for name in KINDS:
            for key, default in keys_of(name).items():
                own.setdefault(key, []).append(f"{name} (default: {_written(default)})")
        about = {key: f"{HELP[key]}. Of {', '.join(kinds)}" for key, kinds in own.items()}
        found = mapping_of({**KEYS, **about}, ["kind"], {"kind": tuple(KINDS), "input": INPUTS})
        return {"anyOf": [{"enum": list(KINDS)}, found]}

    def parse(self, words: Sequence[str], where: str) -> FrontEnd | None:
        if not words:  # most builds: the import takes longer than all else that they read
            return None
        from tinyml.features.settings import from_items

        return from_items(words, where)

    def words(self, value: Any, folder: Path | None = None) -> list[str]:
        return [f"{key}={text}" for key, text in value.given]

    def yaml(self, value: Any) -> dict[str, Any]:
        truths = {"true": True, "false": False}
        return {key: truths.get(text, as_number(text)) for key, text in value.given}

    def accept(self, value: Any) -> FrontEnd | None:
        if value is None:
            return None
        from tinyml.features.settings import FrontEnd

        return value if isinstance(value, FrontEnd) else self.read(value, "frontend")


class Evaluate(Form):
    """A test set and the accuracy on it."""

    def read(self, value: Any, where: str) -> evaluation.Evaluate | None:
        found = evaluation.from_yaml(value, where)
        if found is not None:
            for key in evaluation.PATHS:
                if key in found.given:
                    relative_path(found.given[key], where, f"evaluate: {key}")
        return found

    def schema(self) -> dict[str, Any]:
        return mapping_of(evaluation.KEYS, ["data", "min_accuracy"])

    def yaml(self, value: Any) -> dict[str, Any]:
        return dict(value.given)
