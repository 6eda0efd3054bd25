# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`gdb`: a debugger that knows layers and tensors."""

from __future__ import annotations

import argparse
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from tinyml.base.errors import ConfigError, ToolError
from tinyml.verbs.base import Verb
from tinyml.verbs.build_folder import DEFAULT

if TYPE_CHECKING:
    from rich.console import Console

DEBUGGERS = ("arm-zephyr-eabi-gdb-py", "gdb-multiarch", "arm-none-eabi-gdb-py", "gdb")
IMAGES = ("zephyr/zephyr.elf", "zephyr/zephyr.exe")


class Gdb(Verb):
    """Start GDB on the image of a west build, with commands for the layers and tensors of its models.

      tinyml layers                 the layers
      tinyml break kws 3            stop before layer 3, or before the layer of that name
      tinyml tensor kws conv2       the values of a tensor, where the program has stopped
      tinyml arena kws              which tensors are where

    `west build -t debugserver` starts an emulator or a probe that waits; --connect :1234 attaches to it. A
    debugger that is started by other means loads the commands with `source build/tinyml/gdb.py`.
    """

    name = "gdb"
    help = "debug a build: stop at a layer, print a tensor by name"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "-d", "--build-dir", type=Path, default=DEFAULT, metavar="BUILD", help="default: %(default)s"
        )
        parser.add_argument(
            "--connect", default="", metavar="HOST:PORT", help="a waiting target, such as :1234 for QEMU"
        )
        parser.add_argument("--gdb", default="", metavar="PROGRAM", help="the debugger, with Python inside")
        parser.add_argument("--script", action="store_true", help="only print the path of the commands")
        parser.add_argument(
            "-x",
            "--execute",
            action="append",
            default=[],
            metavar="COMMAND",
            help="a command of GDB to begin with; with --batch instead of a dialogue (repeatable)",
        )
        parser.add_argument("--batch", action="store_true", help="run the commands and end")

    def run(self, args: argparse.Namespace, console: Console) -> int:
        from tinyml.setup.installation import gdb_commands

        if args.script:
            console.print(str(gdb_commands()), markup=False, soft_wrap=True)
            return 0
        image = next((args.build_dir / name for name in IMAGES if (args.build_dir / name).is_file()), None)
        if image is None:
            raise ConfigError(f"{args.build_dir} has no zephyr/zephyr.elf", "-d, the folder of a west build")
        words = [_debugger(args.gdb), "-q", str(image), "-x", str(gdb_commands())]
        words += ["-ex", "set pagination off"]
        words += ["-ex", f"target remote {args.connect}"] if args.connect else []
        words += [word for command in args.execute for word in ("-ex", command)]
        words += ["-batch"] if args.batch else []
        try:
            return subprocess.run(words, check=False).returncode
        except KeyboardInterrupt:
            return 0


def _debugger(given: str) -> str:
    found = next((name for name in ([given] if given else DEBUGGERS) if shutil.which(name)), None)
    if found is None:
        raise ToolError(
            f"no debugger found ({given or ', '.join(DEBUGGERS)})", "sudo apt-get install gdb-multiarch"
        )
    return found
