# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`completion`: the script that lets a shell complete `tinyml` command lines."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from tinyml.base.errors import ToolError
from tinyml.verbs.base import Verb

if TYPE_CHECKING:
    from rich.console import Console

SHELLS = ("bash", "zsh", "fish")


class Completion(Verb):
    """Print the script that lets a shell complete verbs, options, machines and files.

    Put one of these lines into the shell's start-up file:

      bash  eval "$(tinyml completion bash)"
      zsh   eval "$(tinyml completion zsh)"
      fish  tinyml completion fish | source
    """

    name = "completion"
    help = "shell completion for bash, zsh and fish"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help=", ".join(SHELLS))

    def run(self, args: argparse.Namespace, console: Console) -> int:
        try:
            from argcomplete.shell_integration import shellcode
        except ImportError:
            raise ToolError(
                "completion requires the Python package argcomplete",
                "pip install 'west-tinyml[completion]'",
            ) from None
        print(shellcode(["tinyml"], shell=args.shell))
        return 0
