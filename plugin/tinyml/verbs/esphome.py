# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`esphome`: a wake word as a component of ESPHome."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from tinyml.base import naming, whole_files
from tinyml.base.errors import ConfigError
from tinyml.verbs.base import Verb, print_notes
from tinyml.verbs.settings import add_model_arguments, options_from

if TYPE_CHECKING:
    from rich.console import Console

FOLDER = Path("components")


class Esphome(Verb):
    """Write a wake word as a component of ESPHome: a folder for `external_components`.

    MODEL is a model that takes the features of microphone samples, like microWakeWord's, or the .json file
    beside it. Without --frontend, features are microWakeWord's, every 10 ms. DIR gets two folders:
    tinyml_NAME with the model, and tinyml with what all wake words share; the next wake word goes to the same
    DIR.
    """

    name = "esphome"
    help = "write a wake word as a component of ESPHome"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_model_arguments(parser, verb="compile")
        parser.add_argument(
            "-o", "--output", type=Path, metavar="DIR", default=FOLDER, help="default: components"
        )
        parser.set_defaults(target="generic")

    def run(self, args: argparse.Namespace, console: Console) -> int:
        from dataclasses import replace

        from tinyml.api.compiled import build
        from tinyml.api.sources import as_model
        from tinyml.projects.esphome import components, described
        from tinyml.projects.packages import sources_of
        from tinyml.setup.installation import runtime

        word = described(args.model)
        args.name = args.name or naming.model_name(args.model)
        args.frontend = args.frontend or ["micro", f"step_ms={word.step_ms}"]
        options = replace(options_from(args, args.target), cmsis_nn=False)
        compiled = build(as_model(word.model), options)
        sources = sources_of(compiled.files, compiled.summary, runtime())
        files = components(sources, compiled.summary, word, runtime())
        self.write(args.output, compiled.name, files)
        frontend = compiled.summary["frontend"]["ram_bytes"]
        model = compiled.arena_bytes + compiled.state_bytes - frontend
        block = f" (microWakeWord asks for {word.arena_bytes:,})" if word.arena_bytes else ""
        place = args.output / f"tinyml_{compiled.name}"
        console.print(
            f"{compiled.name}: {model:,} bytes of RAM for the model{block} and {frontend:,} for the front "
            f"end, {compiled.weights_bytes:,} bytes of weights -> {place}",
            markup=False,
            soft_wrap=True,
        )
        print_notes(console, compiled.notes)
        console.print(
            f"Next: add the lines of {place / 'README.md'} to your configuration, then `esphome config`",
            markup=False,
            soft_wrap=True,
        )
        return 0

    def write(self, place: Path, name: str, files: dict[str, bytes]) -> None:
        from tinyml.projects.esphome import SHARED, WRITTEN

        for folder in (SHARED, f"{SHARED}_{name}"):
            code = place / folder / "__init__.py"
            if (place / folder).exists() and not (
                code.is_file() and WRITTEN in code.read_text(encoding="utf-8")
            ):
                raise ConfigError(f"{place / folder} already exists, and is something else", "-o DIR")
        for path, content in files.items():
            (place / path).parent.mkdir(parents=True, exist_ok=True)
            whole_files.save(place / path, content)
