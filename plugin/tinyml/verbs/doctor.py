# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`doctor`: what is installed, what is missing and how to install it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from tinyml.verbs.base import Verb

if TYPE_CHECKING:
    from rich.console import Console


class Doctor(Verb):
    """Show which tools and packages are installed, which are missing, and how to install them."""

    name = "doctor"
    help = "what is installed, what is missing and how to install it"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="print JSON instead of tables")

    def run(self, args: argparse.Namespace, console: Console) -> int:
        from tinyml import doctor

        return doctor.run(console, args.json)
