# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""docs/notebooks/quickstart.ipynb runs from top to bottom, and what it shows has a rich form.

Its cells are executed in order in one namespace, as Jupyter does, without Jupyter.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tinyml.verbs import notebook
from tinyml.verbs.cli import main
from tools.docs_notebook import execute

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "docs" / "notebooks" / "quickstart.ipynb"


def sources() -> list[str]:
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def test_from_top_to_bottom(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    names: dict[str, Any] = {}
    shown = [execute(source, names)[1] for source in sources()]
    rich = [value._repr_html_() for value in shown if hasattr(value, "_repr_html_")]
    assert len(rich) == 5  # a compiled model, costs, a quantised model, an evaluation, a run
    assert all(html.startswith(("<table>", "<iframe")) for html in rich)
    assert names["written"][0].endswith(".c")


def test_no_outputs_are_committed() -> None:
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells)


def test_the_command_copies_what_the_notebook_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its cells run in the new folder; what is there already stays."""
    monkeypatch.setattr(notebook, "JUPYTER", {})
    place = tmp_path / "own"
    assert main(["notebook", "-o", str(place)]) == 0
    assert "pip install jupyterlab" in capsys.readouterr().out
    assert (place / "quickstart.ipynb").read_bytes() == NOTEBOOK.read_bytes()
    (model,) = {path for source in sources() for path in re.findall(r'"(samples/[^"]+)"', source)}
    assert (place / model).read_bytes() == (ROOT / model).read_bytes()
    (place / "quickstart.ipynb").write_text("mine")
    assert main(["notebook", "-o", str(place)]) == 0
    assert (place / "quickstart.ipynb").read_text() == "mine"
    (tmp_path / "file").write_text("")
    assert main(["notebook", "-o", str(tmp_path / "file")]) == 1
    assert "is a file" in capsys.readouterr().err


def test_jupyter_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the folder of the notebook, with its name; a module of the test's own stands for Jupyter."""
    (tmp_path / "stands_in.py").write_text(
        "import os, sys, pathlib\npathlib.Path('started').write_text(' '.join(sys.argv[1:]))\nsys.exit(3)\n"
    )
    monkeypatch.setattr(notebook, "JUPYTER", {"stands_in": "stands_in"})
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert main(["notebook", "-o", str(tmp_path / "own")]) == 3
    assert (tmp_path / "own" / "started").read_text() == "quickstart.ipynb"
    assert main(["notebook", "-o", str(tmp_path / "own"), "--no-open"]) == 0
