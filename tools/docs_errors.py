# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The reference of error messages for the documentation site, collected from the code that raises them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import tinyml
from tinyml.base import errors

PACKAGE = Path(tinyml.__file__).parent
KINDS = {
    name: kind.__doc__ or ""
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, errors.TinymlError)
}


def page() -> str:
    """Messages by kind and by the part of the compiler that prints them."""
    lines = [
        "# Error messages",
        "",
        "Every error states what was found and, where there is one, what to try.",
    ]
    lines += ["`…` stands for what the message fills in. The exit code is 1.", ""]
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
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in KINDS:
                words = [_text(argument) for argument in node.args[:2]]
                if words and words[0].strip("… "):
                    yield node.func.id, place, words[0], words[1] if len(words) > 1 else ""


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _text(node.left) + _text(node.right)
    return "…"


def _cell(words: str) -> str:
    """Plain text: nothing in a message is Markdown."""
    plain = " ".join(words.split())
    for char in "\\`*_{}[]<>|":
        plain = plain.replace(char, f"\\{char}")
    return plain
