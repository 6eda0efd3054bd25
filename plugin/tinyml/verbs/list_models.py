# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`list`: the models of an application."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from tinyml.app import folder
from tinyml.verbs.base import Verb, add_app_argument

if TYPE_CHECKING:
    from rich.console import Console


class ListModels(Verb):
    """List the models in an application's tinyml.yaml.

    The exit code is 1 if a model's file is missing, or one with its operators or its calibration data.
    """

    name = "list"
    help = "list the models of an application"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_app_argument(parser)

    def run(self, args: argparse.Namespace, console: Console) -> int:
        from rich.table import Table

        app = folder.find_application(args.app, Path.cwd())
        models = app.manifest().models
        if not models:
            console.print(
                f"{app.root} has no models; `west tinyml add MODEL` adds one", markup=False, soft_wrap=True
            )
            return 0
        table = Table("name", "file", "bytes", "options", box=None, padding=(0, 2, 0, 0))
        missing: list[str] = []
        for entry in models:
            path = entry.path(app.root)
            size = f"{path.stat().st_size:,}" if path.is_file() else "missing"
            missing += [
                f"missing: {file} of {entry.name}"
                for file in (entry.file, *entry.other_files())
                if not (app.root / file).exists()
            ]
            options = [f"kernels={entry.kernels}"] if entry.kernels else []
            options += [f"optimize={entry.optimize}"] if entry.optimize else []
            options += [f"io={entry.io}"] if entry.io else []
            options += [f"shape {name}={shape}" for name, shape in entry.shapes.items()]
            request = entry.request(app.root)
            options += [f"quantised: {request.describe()}"] if request else []
            options += [f"frontend {entry.frontend.kind}"] if entry.frontend else []
            table.add_row(entry.name, entry.file, size, ", ".join(options))
        console.print(table, markup=False)
        for line in missing:
            console.print(line, markup=False, soft_wrap=True)
        return 1 if missing else 0
