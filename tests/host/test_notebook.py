# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""docs/notebooks/quickstart.ipynb runs from top to bottom, and what it shows has a rich form.

Its cells are executed in order in one namespace, as Jupyter does, without Jupyter.
"""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "docs" / "notebooks" / "quickstart.ipynb"


def sources() -> list[str]:
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def execute(source: str, names: dict[str, Any]) -> object:
    """Run a cell; the value of its last expression is what a notebook shows."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    if last is None:
        return None
    assert isinstance(last, ast.Expr)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names)


def test_from_top_to_bottom(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    names: dict[str, Any] = {}
    shown = [execute(source, names) for source in sources()]
    rich = [value._repr_html_() for value in shown if hasattr(value, "_repr_html_")]
    assert len(rich) == 5  # a compiled model, costs, a quantised model, an evaluation, a run
    assert all(html.startswith(("<table>", "<iframe")) for html in rich)
    assert names["written"][0].endswith(".c")


def test_no_outputs_are_committed() -> None:
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells)
