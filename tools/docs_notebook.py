# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The quickstart notebook as a page of the site, with what its cells show when they run."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOK = ROOT / "docs" / "notebooks" / "quickstart.ipynb"


def page() -> str:
    """Its cells in order; each runs, and its output follows."""
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    names: dict[str, Any] = {}
    parts = []
    with _in(ROOT):
        for cell in cells:
            source = "".join(cell["source"])
            if cell["cell_type"] == "markdown":
                parts.append(source)
            else:
                parts += [f"```python\n{source}\n```", *_shown(*execute(source, names))]
    return "\n\n".join(parts) + "\n"


def execute(source: str, names: dict[str, Any]) -> tuple[str, object]:
    """Run a cell: what it prints, and the value of its last expression, which a notebook shows."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "cell", "exec"), names)
        if not isinstance(last, ast.Expr):
            return printed.getvalue(), None
        value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    return printed.getvalue(), value


def _shown(printed: str, value: object) -> list[str]:
    parts = [f"```text\n{printed.rstrip()}\n```"] if printed.strip() else []
    if hasattr(value, "_repr_html_"):
        html = "\n".join(line for line in value._repr_html_().splitlines() if line.strip())
        parts.append(f'````{{raw}} html\n<div class="shown">\n{html}\n</div>\n````')
    elif value is not None:
        parts.append(f"```text\n{value!r}\n```")
    return parts


@contextlib.contextmanager
def _in(folder: Path) -> Iterator[None]:
    """As ``contextlib.chdir``, which Python 3.10 does not have."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
