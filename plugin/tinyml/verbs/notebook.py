# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`notebook`: the quickstart notebook that the package brings, opened in Jupyter."""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tinyml.base import whole_files
from tinyml.base.errors import ConfigError
from tinyml.verbs.base import Verb

if TYPE_CHECKING:
    from rich.console import Console

NOTEBOOK = Path("docs/notebooks/quickstart.ipynb")
MODEL = Path("samples/digits/model_float.onnx")
"""What the notebook reads, at this path from where it is."""
JUPYTER = {"jupyterlab": "jupyterlab", "notebook": "notebook"}
"""Programs that open a notebook: the module to look for, and the one to run."""
NEEDED = {"sklearn": "scikit-learn", "onnxruntime": "onnxruntime"}
"""What the notebook itself imports or calls, by module."""


class Notebook(Verb):
    """Open the quickstart notebook: from a float model to tested int8 C.

    The notebook and the model that it starts with are copied into DIR, where they are yours to change; files
    that are there already stay as they are. Then Jupyter opens it, if it is installed for this Python.
    """

    name = "notebook"
    help = "open the quickstart notebook in Jupyter"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "-o",
            "--output",
            type=Path,
            metavar="DIR",
            default=Path("tinyml_quickstart"),
            help="default: tinyml_quickstart",
        )
        parser.add_argument("--no-open", action="store_true", help="only copy the files")

    def run(self, args: argparse.Namespace, console: Console) -> int:
        place: Path = args.output
        if place.exists() and not place.is_dir():
            raise ConfigError(f"{place} is a file", "another folder: -o DIR")
        notebook = _copied(NOTEBOOK, place / NOTEBOOK.name)
        _copied(MODEL, place / MODEL)
        console.print(f"the notebook is {notebook}", markup=False, soft_wrap=True)
        program = next((run for module, run in JUPYTER.items() if _is_here(module)), None)
        absent = [package for module, package in NEEDED.items() if not _is_here(module)]
        absent += [] if program else ["jupyterlab"]
        if absent:
            console.print(f"It needs {' and '.join(absent)}: pip install {' '.join(absent)}", markup=False)
        if program is None:
            console.print("Then run this command again, or open the notebook in an editor.", markup=False)
        if program is None or args.no_open:
            return 0
        command = [sys.executable, "-m", program, notebook.name]
        return subprocess.run(command, cwd=place, check=False).returncode


def _is_here(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def _copied(source: Path, to: Path) -> Path:
    """A file of this installation at ``to``, unless there is one."""
    from tinyml.setup.installation import zephyr_module

    module = zephyr_module()
    own = module / source if module else None
    if own is None or not own.is_file():
        raise ConfigError(f"this installation does not have {source.name}", "pip install --force-reinstall")
    if not to.exists():
        to.parent.mkdir(parents=True, exist_ok=True)
        whole_files.save(to, own.read_bytes())
    return to
