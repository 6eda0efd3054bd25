# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`remove`: remove a model from an application."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from tinyml.base.lock import locked
from tinyml.projects import edit, files, folder
from tinyml.verbs.base import Verb, add_app_argument
from tinyml.verbs.make_test import place_for

if TYPE_CHECKING:
    from rich.console import Console

    from tinyml.projects.manifest import ModelEntry


class Remove(Verb):
    """Remove a model from an application.

    Undoes `add`: removes the model from tinyml.yaml and, with the last model, the CONFIG_TINYML line that
    `add` wrote into prj.conf (unless other CONFIG_TINYML_... options require it). A test that was written
    for the model and the model file itself stay.
    """

    name = "remove"
    help = "remove a model from an application"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("name", metavar="NAME", help="the model's name, as `list` shows it")
        add_app_argument(parser)

    def run(self, args: argparse.Namespace, console: Console) -> int:
        app = folder.find_application(args.app, Path.cwd())
        with locked(app.root):
            entry, last = self._removed(app, args.name)
        test = place_for(app, entry.name)
        kept = f"file {entry.file} stays where it is"
        if test.is_dir():
            kept = f"file {entry.file} and its test {folder.relative(test, app.root)} stay where they are"
        console.print(f"removed {entry.name}; its {kept}", markup=False, soft_wrap=True)
        if last and "CONFIG_TINYML=y" in files.read_text(app.prj_conf_path):
            console.print("prj.conf still has CONFIG_TINYML=y, which other lines need or `add` did not write")
        return 0

    def _removed(self, app: folder.Application, name: str) -> tuple[ModelEntry, bool]:
        """Remove the model from the files; returns it, and whether it was the last."""
        entry = app.model(name)
        left = edit.remove_model(files.read_text(app.manifest_path), entry.name)
        changes: dict[Path, bytes | None] = {app.manifest_path: None if left is None else left.encode()}
        config = files.read_text(app.prj_conf_path)
        last = len(app.manifest().models) == 1
        if last and edit.switch_off(config) != config:
            changes[app.prj_conf_path] = edit.switch_off(config).encode()
        files.replace_all(changes)
        return entry, last
