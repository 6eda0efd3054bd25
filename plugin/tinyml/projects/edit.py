# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Small edits of files that belong to the user: comments, order and line endings stay as they are.

A YAML or Kconfig library would rewrite the whole file. Here only the affected lines change; the result
is parsed again, and an edit that did not have the intended effect is an error.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import yaml

from tinyml.base.errors import ConfigError
from tinyml.projects.manifest import Manifest, ModelEntry, parse

HEADER = "# Models of this application, compiled into the firmware by the build. See `west tinyml --help`.\n"
_SWITCH = "CONFIG_TINYML"
_MARK = "# For tinyml.yaml, by `west tinyml add`"
_INSTEAD = "; before: "


def add_model(text: str, entry: ModelEntry) -> str:
    """The manifest ``text`` with ``entry`` as its last model."""
    before = parse(text, "tinyml.yaml")
    newline = _newline(text)
    models = _models_node(text)
    if models is None:
        lead = text if text.strip() else HEADER
        edited = _ended(lead, newline) + "models:\n" + _block(entry, 2)
    elif isinstance(models, yaml.SequenceNode) and models.value:
        if models.flow_style:
            raise _by_hand("the list of models is written in brackets")
        lines = text.splitlines(keepends=True)
        last = _last_line(models)
        edited = _ended("".join(lines[: last + 1]), newline)
        edited += _block(entry, models.start_mark.column) + "".join(lines[last + 1 :])
    else:  # `models:` or `models: []`
        start, end = models.start_mark.index, models.end_mark.index
        edited = text[:start].rstrip(" ") + "\n" + _block(entry, 2).rstrip("\n") + text[end:]
        edited = _ended(edited, newline)
    return _checked(edited, replace(before, models=(*before.models, entry)), newline)


def remove_model(text: str, name: str) -> str | None:
    """The manifest without the model; None if nothing that the user wrote would remain in the file."""
    before = parse(text, "tinyml.yaml")
    after = replace(before, models=tuple(model for model in before.models if model.name != name))
    models = _models_node(text)
    assert isinstance(models, yaml.SequenceNode), "a manifest with models has a list of them"
    if models.flow_style:
        raise _by_hand("the list of models is written in brackets")
    index = next(i for i, model in enumerate(before.models) if model.name == name)
    node = models.value[index]
    lines = text.splitlines(keepends=True)
    kept = lines[: node.start_mark.line] + lines[_last_line(node) + 1 :]
    edited = "".join(kept)
    if not after.models:
        if edited.replace("\r\n", "\n") in (HEADER + "models:\n", "models:\n"):
            return None
        edited = re.sub(r"(?m)^models:[ \t]*(?=\r?$|#)", "models: [] ", edited, count=1)
        edited = edited.replace("models: [] \n", "models: []\n").replace("models: [] \r", "models: []\r")
    return _checked(edited, after, _newline(text))


def replace_model(text: str, entry: ModelEntry) -> str:
    """The manifest with another entry for the model of this name, in its place and with its comments.

    Only keys whose values differ change; new ones come last.
    """
    before = parse(text, "tinyml.yaml")
    index = next(i for i, model in enumerate(before.models) if model.name == entry.name)
    models = _models_node(text)
    assert isinstance(models, yaml.SequenceNode), "a manifest with models has a list of them"
    edited = text
    changes = _changed_keys(text, models.value[index], before.models[index].as_yaml(), entry.as_yaml())
    for start, end, written in sorted(changes, reverse=True):
        edited = edited[:start] + written + edited[end:]
    after = replace(before, models=(*before.models[:index], entry, *before.models[index + 1 :]))
    return _checked(edited, after, _newline(text))


def _changed_keys(
    text: str, node: yaml.MappingNode, old: dict[str, Any], new: dict[str, Any]
) -> list[tuple[int, int, str]]:
    """What to write over which characters, so that a mapping has the values of ``new``."""
    pairs = {key.value: (key, value) for key, value in node.value}
    changes = []
    for key, value in new.items():
        if key not in pairs or value == old.get(key):
            continue
        place, inner = pairs[key]
        earlier = old.get(key)
        if (
            isinstance(inner, yaml.MappingNode)
            and isinstance(earlier, dict)
            and isinstance(value, dict)
            and {key.value for key, _ in inner.value} == earlier.keys() <= value.keys()
        ):
            changes += _changed_keys(text, inner, earlier, value)
        else:
            written = _pair(key, value, node)
            changes.append((place.start_mark.index, _end(text, inner, bool(node.flow_style)), written))
    added = [_pair(key, value, node) for key, value in new.items() if key not in pairs]
    if added and node.flow_style:
        behind = node.end_mark.index - 1  # the closing brace
        changes.append((behind, behind, "".join(f", {pair}" for pair in added)))
    elif added:
        behind = _line_end(text, _last_line(node))
        pad = "\n" + " " * node.start_mark.column
        changes.append((behind, behind, "".join(pad + pair for pair in added)))
    return changes


def _pair(key: str, value: object, node: yaml.MappingNode) -> str:
    """A key with its value, as it is written in a mapping."""
    flow = bool(node.flow_style)
    body = yaml.safe_dump(
        {key: value}, sort_keys=False, allow_unicode=True, default_flow_style=flow, width=1000
    ).rstrip("\n")
    return body[1:-1] if flow else body.replace("\n", "\n" + " " * node.start_mark.column)


def _end(text: str, node: yaml.Node, flow: bool) -> int:
    """Where a value ends; a comment behind it stays."""
    on_one_line = node.start_mark.line == node.end_mark.line
    return int(node.end_mark.index) if flow or on_one_line else _line_end(text, _last_line(node))


def _line_end(text: str, line: int) -> int:
    """Where a line ends, without its newline."""
    lines = text.splitlines(keepends=True)
    return len("".join(lines[: line + 1])) - len(lines[line]) + len(lines[line].rstrip("\r\n"))


def switch_on(text: str) -> str:
    """``prj.conf`` with CONFIG_TINYML=y, marked for ``switch_off``; unchanged if it is already set."""
    newline = _newline(text)
    lines = text.splitlines(keepends=True)
    found = [i for i, line in enumerate(lines) if _assigns(line, _SWITCH)]
    if not found:
        return _ended(text, newline) + f"{_MARK}{newline}{_SWITCH}=y{newline}"
    last = found[-1]  # Kconfig takes the last assignment
    if re.match(rf"\s*{_SWITCH}\s*=\s*y\b", lines[last]):
        return text
    lines[last] = f"{_MARK}{_INSTEAD}{lines[last].strip()}{newline}{_SWITCH}=y{newline}"
    return "".join(lines)


def switch_off(text: str) -> str:
    """``prj.conf`` as it was before ``switch_on``; unchanged if other TinyML options depend on the line."""
    if re.search(rf"(?m)^\s*{_SWITCH}_\w+\s*=", text):
        return text
    mark = rf"(?m)^{re.escape(_MARK)}(?:{re.escape(_INSTEAD)}(.*?))?(\r?\n){_SWITCH}=y(?:\r?\n|\Z)"
    return re.sub(mark, lambda found: f"{found[1]}{found[2]}" if found[1] else "", text)


def is_off(text: str, symbol: str) -> bool:
    """Whether ``prj.conf`` disables ``symbol``; Kconfig takes the last assignment."""
    assignments = [line for line in text.splitlines() if _assigns(line, symbol)]
    return bool(assignments) and not re.match(rf"\s*{symbol}\s*=\s*y\b", assignments[-1])


def _assigns(line: str, symbol: str) -> bool:
    return bool(re.match(rf"\s*(?:{symbol}\s*=|#\s*{symbol} is not set)", line))


def _models_node(text: str) -> yaml.Node | None:
    """The value of the key ``models``, with its position in the text."""
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    if not isinstance(root, yaml.MappingNode):
        return None
    return next((value for key, value in root.value if key.value == "models"), None)


def _last_line(node: yaml.Node) -> int:
    """The line of the node's last token (the node's own end mark comes after trailing comments)."""
    if isinstance(node, yaml.CollectionNode) and node.value and not node.flow_style:
        last = node.value[-1]
        return _last_line(last[1] if isinstance(last, tuple) else last)
    end = node.end_mark
    return int(end.line if end.column else end.line - 1)


def _block(entry: ModelEntry, indent: int) -> str:
    body = yaml.safe_dump(entry.as_yaml(), sort_keys=False, allow_unicode=True, default_flow_style=False)
    first, *rest = body.splitlines()
    pad = " " * indent
    return "".join([f"{pad}- {first}\n", *(f"{pad}  {line}\n" for line in rest)])


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _ended(text: str, newline: str) -> str:
    return text if not text or text.endswith("\n") else text + newline


def _checked(edited: str, wanted: Manifest, newline: str) -> str:
    edited = re.sub(r"\r?\n", newline, edited) if newline == "\r\n" else edited
    try:
        right = parse(edited, "tinyml.yaml") == wanted
    except ConfigError:
        right = False
    if not right:
        raise _by_hand("its layout is unusual")
    return edited


def _by_hand(why: str) -> ConfigError:
    return ConfigError(
        f"tinyml.yaml cannot be edited automatically: {why}",
        "one model per line, `- name: ...`, or edit the file by hand",
    )
