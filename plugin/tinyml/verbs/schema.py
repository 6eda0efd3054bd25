# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`schema`: tinyml.yaml as JSON Schema, for editors."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from tinyml.verbs.base import Verb

if TYPE_CHECKING:
    from rich.console import Console


class PrintSchema(Verb):
    """Print the JSON Schema of tinyml.yaml, with which editors complete and check its keys.

    VS Code, with the YAML extension: write it to a file and name it in .vscode/settings.json:

      tinyml schema -o .vscode/tinyml.schema.json
      "yaml.schemas": {".vscode/tinyml.schema.json": "tinyml.yaml"}
    """

    name = "schema"
    help = "the JSON Schema of tinyml.yaml, for editors"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write it to a file")

    def run(self, args: argparse.Namespace, console: Console) -> int:
        from tinyml.settings.schema import schema
        from tinyml.verbs.report import write

        text = json.dumps(schema(), indent=1) + "\n"
        if args.output:
            write(args.output, text)
        else:
            console.file.write(text)
        return 0
