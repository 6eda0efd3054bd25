# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The reference of error messages for the documentation site, collected from the code that raises them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import tinyml
from tinyml.base import errors

PACKAGE = Path(tinyml.__file__).parent
KINDS = {
    name: kind.__doc__ or ""
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, errors.TinymlError)
}

FIXED = re.compile(r"[A-Za-z]{3}")
"""A message without a word of its own cannot be found here."""

INTRODUCTION = """\
Every error states what was found and, where there is one, what to try. To find a message, search this page
for its fixed words: `…` stands for what the message fills in. "From" is the part of the package that raises
it.

In Python, errors are exceptions of these classes, all of them a `tinyml.TinymlError`. On the command line,
the exit code is 1; it is 2 for wrong arguments, and 3 if `verify`, `evaluate` or `watch` finds a model that
is not as required.
"""


def page() -> str:
    """Messages by kind and by the part of the compiler that prints them."""
    lines = ["# Error messages", "", INTRODUCTION, ""]
    messages = sorted(set(collect()))
    for kind, meaning in KINDS.items():
        own = [message for message in messages if message[0] == kind]
        if own:
            lines += [f"## {kind}", "", meaning.strip().partition("\n")[0], ""]
            lines += ["| from | message | try |", "|---|---|---|"]
            lines += [f"| `{place}` | {_cell(said)} | {_cell(hint)} |" for _, place, said, hint in own]
            lines.append("")
    return "\n".join(lines)


def collect() -> Iterator[tuple[str, str, str, str]]:
    """Kind, place, message and hint of everything that is raised."""
    files = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(PACKAGE.rglob("*.py"))}
    constants = _constants(files.values())
    for path, tree in files.items():
        place = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in KINDS:
                words = [_text(argument, constants) for argument in node.args[:2]]
                if words and FIXED.search(words[0]):
                    yield node.func.id, place, words[0], words[1] if len(words) > 1 else ""


def _constants(modules: Iterable[ast.Module]) -> Mapping[str, str]:
    """Texts that modules give a name in capitals, if there is one of that name."""
    found: dict[str, set[str]] = {}
    for module in modules:
        for node in module.body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                name, value = node.targets[0].id, node.value
                if name.isupper():
                    found.setdefault(name, set()).add(_text(value, {}))
    return {name: texts.pop() for name, texts in found.items() if len(texts) == 1}


def _text(node: ast.expr, constants: Mapping[str, str]) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part, constants) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return _text(node.value, constants)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _text(node.left, constants) + _text(node.right, constants)
    if isinstance(node, ast.Name):
        return constants.get(node.id, "…")
    return "…"


def _cell(words: str) -> str:
    """Plain text: nothing in a message is Markdown."""
    plain = " ".join(words.split())
    for char in "\\`*_{}[]<>|":
        plain = plain.replace(char, f"\\{char}")
    return plain
