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
    """Show which tools and packages are installed, which are missing, and how to install them.

    With -b BOARD: what this board of Zephyr needs, without building anything. The vendor's drivers in the
    west workspace, a compiler for its core, an emulator, a program that writes its flash, a serial port. The
    exit code is 1 if an image cannot be built for it.
    """

    name = "doctor"
    help = "what is installed, what is missing and how to install it"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("-b", "--board", metavar="BOARD", help="check what this board needs")
        parser.add_argument("--json", action="store_true", help="print JSON instead of tables")

    def run(self, args: argparse.Namespace, console: Console) -> int:
        from tinyml.setup import doctor

        if not args.board:
            return doctor.run(console, args.json)
        from tinyml.harness.zephyr import board_check
        from tinyml.harness.zephyr.site import find_site

        rows = board_check.check_board(find_site(), args.board)
        doctor.show(rows, console, args.json)
        return 0 if doctor.able(rows)[board_check.BUILD] else 1
