# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Types and shapes of inputs and outputs that an application relies on: ``interface:`` in tinyml.yaml.

    interface:
      input: int8[1,49,10,1]

A model that differs fails the build, instead of reading a buffer of another size. A model with one input
has it under ``input`` as well as under its own name; the same goes for ``output``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tinyml.base.errors import ConfigError
from tinyml.base.lazy_dataclass import dataclass

EXAMPLE = "input: int8[1,49,10,1]"


@dataclass(frozen=True)
class Kind:
    """An element type and a shape; as text, ``int8[1,49,10,1]``."""

    dtype: str
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"

    @property
    def plain(self) -> str:
        """Without brackets, which CMake would interpret: ``int8:1x49x10x1``."""
        return f"{self.dtype}:{'x'.join(map(str, self.shape))}"


def parse(text: str, where: str) -> Kind:
    """Also accepts ``int8:1x49x10x1``."""
    match = re.fullmatch(r"([a-z]+\d*)\s*(?:\[([\d,\s]*)\]|:([\dx]*))", text.strip())
    sizes = re.findall(r"\d+", match[2] or match[3] or "") if match else []
    if not match or any(len(size) > 18 for size in sizes):
        raise ConfigError(f"{where}: {text!r} is not a type with a shape", EXAMPLE)
    return Kind(match[1], tuple(map(int, sizes)))


def from_mapping(value: object, where: str) -> dict[str, Kind]:
    """The value of ``interface:``."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ConfigError(f"{where}: 'interface' must be a mapping", EXAMPLE)
    return {str(name): parse(str(text), f"{where}: interface: {name}") for name, text in value.items()}


def from_items(items: Iterable[str], where: str) -> dict[str, Kind]:
    """``["input=int8[1,49,10,1]"]``."""
    pins = {}
    for item in items:
        name, equals, text = item.rpartition("=")
        if not equals or not name:
            raise ConfigError(f"{where}: {item!r} names no input or output", "input=int8[1,49,10,1]")
        pins[name] = parse(text, where)
    return pins


def kinds(summary: Mapping[str, Any]) -> dict[str, Kind]:
    """The inputs and outputs of a compiled model by name; a single one also as ``input`` or ``output``."""
    found: dict[str, Kind] = {}
    for word in ("input", "output"):
        tensors = summary[f"{word}s"]
        for tensor in tensors:
            found.setdefault(tensor["name"], _kind(tensor))
            if len(tensors) == 1:
                found[word] = _kind(tensor)
    return found


def check(summary: Mapping[str, Any], pins: Mapping[str, Kind]) -> None:
    """Raise ConfigError with both values where the model is not what the application relies on."""
    if not pins:
        return
    found = kinds(summary)
    wrong = [
        f"  {name} is {found[name]}, pinned is {pin}" if name in found else f"  there is no {name!r}"
        for name, pin in pins.items()
        if found.get(name) != pin
    ]
    if wrong:
        raise ConfigError(
            f"model {summary['name']} has a different interface from the one the application relies on:\n"
            + "\n".join(wrong),
            "use a model with that interface, or adapt the application and `interface:` in tinyml.yaml",
        )


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """What changed between the summaries of two models, one line for each fact."""
    lines: list[str] = []
    for word in ("input", "output"):
        old, new = ({tensor["name"]: tensor for tensor in side[f"{word}s"]} for side in (before, after))
        if len(old) == len(new) == 1:  # the C calls it `NAME_input`, whatever its name is
            (was,), (now,) = old.values(), new.values()
            lines += _changes(word, was, now)
            if was["name"] != now["name"]:
                lines.append(f"{word}: its name {was['name']!r} -> {now['name']!r}")
            continue
        for name in [*old, *(name for name in new if name not in old)]:
            if name in old and name in new:
                lines += _changes(f"{word} {name}", old[name], new[name])
            else:
                kind = _kind(old[name] if name in old else new[name])
                lines.append(f"{word} {name}: {kind} is {'gone' if name in old else 'new'}")
    return lines


def _changes(who: str, was: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    if _kind(was) != _kind(now):
        yield f"{who}: {_kind(was)} -> {_kind(now)}"
    for key, text in (("scale", "scale"), ("zero_point", "zero point")):
        if was.get(key) != now.get(key):
            yield f"{who}: {text} {_or_none(was.get(key))} -> {_or_none(now.get(key))}"


def _kind(tensor: Mapping[str, Any]) -> Kind:
    return Kind(tensor["dtype"], tuple(tensor["shape"]))


def _or_none(value: float | None) -> str:
    return "none" if value is None else f"{value:g}"
