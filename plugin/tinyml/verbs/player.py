# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`player`: the part of a firmware that plays models."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from tinyml.cores.targets import TARGETS
from tinyml.verbs.base import Verb

if TYPE_CHECKING:
    from rich.console import Console


class Player(Verb):
    """Write the table of kernels that a firmware can play, and the list of sources it needs.

    A firmware plays a pack if it has all kernels of the pack. Name models or packs whose kernels it shall
    have, groups of kernels (conv, dense, ...), or `all`. Zephyr's build (CONFIG_TINYML_PLAYER) and
    PlatformIO's call this themselves. For other firmware, --copy writes a folder with everything to compile:
    all .c files in it, with its folder include/ among the include folders.
    """

    name = "player"
    help = "write the kernels that a firmware without a model can play"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "kernels", nargs="*", default=["all"], metavar="all|GROUP|MODEL|PACK", help="default: all"
        )
        parser.add_argument(
            "--target", default="generic", choices=TARGETS, help="the core (default: %(default)s)"
        )
        parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="the folder")
        parser.add_argument(
            "--copy", action="store_true", help="copy the sources of the runtime into it, too"
        )

    def run(self, args: argparse.Namespace, console: Console) -> int:
        from tinyml.slots.firmware import kernels_of_firmware, write_firmware

        kernels = kernels_of_firmware(args.kernels, args.target, Path.cwd())
        files = write_firmware(kernels, args.output, args.copy)
        console.print(
            f"{len(kernels)} kernels for {args.target}, {len(files)} files -> {args.output}",
            markup=False,
            soft_wrap=True,
        )
        return 0
