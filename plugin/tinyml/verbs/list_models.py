# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`list`: the models of an application."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tinyml.projects import folder
from tinyml.projects.manifest import ModelEntry
from tinyml.settings.options import of_options
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
            table.add_row(entry.name, entry.file, size, ", ".join(_settings(entry, app.root)))
        console.print(table, markup=False)
        for line in missing:
            console.print(line, markup=False, soft_wrap=True)
        return 1 if missing else 0


def _settings(entry: ModelEntry, root: Path) -> Iterator[str]:
    for name, setting in of_options().items():
        if name not in entry.given:
            continue
        if (request := entry.request(root)) and name == "quantize":
            yield f"quantised: {request.describe()}"
        elif name == "frontend":
            yield f"frontend {entry.frontend.kind}"
        elif setting.form.keyed:
            yield from (f"{setting.flag.strip('-')} {word}" for word in setting.form.words(entry.given[name]))
        else:
            yield f"{name}={','.join(setting.form.words(entry.given[name]))}"
