# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Finds C expressions that lost their parentheses, in generated C and in the sources that generate it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from tinyml.base.c_expr import PRODUCT, SUM, UNARY, Expr, binding

OPENED, CLOSED = "/*<*/", "/*>*/"
MARKED = re.compile(re.escape(OPENED) + r"(?P<text>(?:(?!/\*[<>]\*/).)*)" + re.escape(CLOSED), re.DOTALL)


@contextmanager
def marked_expressions() -> Iterator[None]:
    """Every composed expression that is printed into text stands between two comments."""

    def marked(expression: Expr, form: str) -> str:
        return f"{OPENED}{expression.text}{CLOSED}" if expression.binds > UNARY else expression.text

    with mock.patch.object(Expr, "__format__", marked):
        yield


def torn(code: str) -> list[str]:
    """Marked expressions that an operator beside them tears apart."""
    found = []
    while match := MARKED.search(code):
        before, after = code[: match.start()], code[match.end() :]
        if tears(match["text"], before, after):
            line = before[before.rfind("\n") + 1 :] + match["text"] + after.split("\n", 1)[0]
            found.append(re.sub(r"/\*[<>]\*/", "", line).strip())
        code = f"{before}{match['text']}{after}"
    return found


def tears(text: str, before: str, after: str) -> bool:
    """Whether an operator to the left or to the right takes only a part of an expression."""
    binds = binding(re.sub(r"/\*[<>]\*/", "", text))
    left, right = before.rstrip(), after.lstrip()
    if right[:1] in ("*", "/", "%") and not right.startswith(("*/", "/*")) and binds > PRODUCT:
        return True
    if right[:1] in ("[", ".") and binds > UNARY:
        return True
    if left[-1:] in ("*", "/", "%") and not left.endswith(("*/", "/*")):
        # a `*` after a type, `=` or a bracket is a pointer's
        binary = re.search(r"[\w)\]]\s*[*/%]$", left) and not re.search(r"_t\s*\*$|\bfloat\s*\*$", left)
        return bool(binary) and binds > UNARY
    if re.search(r"(?:_t|float|double|int)\s*\*?\)$", left):
        return binds > UNARY  # a cast
    return left.endswith("-") and not left.endswith("--") and binds >= SUM


def torn_fields(source: str) -> list[str]:
    """f-strings that join a product with a name whose text, set in the same function, is a sum."""
    found = []
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef):
            continue
        texts: dict[str, list[str]] = {}
        for node in ast.walk(function):
            if isinstance(node, ast.Assign) and len(node.targets) == 1:
                for name, value in _pairs(node.targets[0], node.value):
                    texts.setdefault(name, []).extend(_texts(value))
        for node in ast.walk(function):
            if isinstance(node, ast.JoinedStr):
                found += [f"line {node.lineno}: {name}" for name in _torn_names(node, texts)]
    return found


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        for one, its in zip(target.elts, value.elts, strict=False):
            yield from _pairs(one, its)


def _texts(value: ast.expr) -> list[str]:
    """The texts that an expression may be, with an identifier for every field."""
    if isinstance(value, ast.IfExp):
        return _texts(value.body) + _texts(value.orelse)
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        return [value.value]
    if isinstance(value, ast.JoinedStr):
        text = "".join(str(p.value) if isinstance(p, ast.Constant) else "v" for p in value.values)
        return [] if text.rstrip().endswith(("*", "+", "-", "/", "%")) else [text]  # part of an expression
    return []


def _torn_names(node: ast.JoinedStr, texts: dict[str, list[str]]) -> Iterator[str]:
    for place, part in enumerate(node.values):
        if not (isinstance(part, ast.FormattedValue) and isinstance(part.value, ast.Name)):
            continue
        before, after = (
            "".join(str(p.value) if isinstance(p, ast.Constant) else "v" for p in side)
            for side in (node.values[:place], node.values[place + 1 :])
        )
        for text in texts.get(part.value.id, ()):
            try:
                if tears(text, before, after):
                    yield part.value.id
            except ValueError:
                continue  # not an expression
