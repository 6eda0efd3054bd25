# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The shape of a verb, and the one way in which all of them are called."""

from __future__ import annotations

import argparse
import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from tinyml.errors import TinymlError

if TYPE_CHECKING:
    from rich.console import Console


class Verb(ABC):
    """One command. The docstring of a subclass is its long help."""

    name: ClassVar[str]
    help: ClassVar[str]

    @abstractmethod
    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the command line."""

    @abstractmethod
    def run(self, args: argparse.Namespace, console: Console) -> int:
        """Do it; returns the exit code. Raises TinymlError for what the user can put right."""


def add_app_argument(parser: argparse.ArgumentParser) -> None:
    """`--app`, alike for all verbs about an application."""
    parser.add_argument(
        "--app",
        type=Path,
        metavar="DIR",
        help="the application's folder (default: the one that the current folder lies in)",
    )


def add_shape_argument(parser: argparse.ArgumentParser) -> None:
    """`--shape`, alike for all verbs that read a model."""
    parser.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="INPUT=1x16x8",
        help="fix the shape of an input that the model leaves open (repeatable; default: 1 for each)",
    )


def roomy(console: Console) -> Console:
    """For tables: a log has no width, so that lines in it need not be broken at the usual 80."""
    import os

    from rich.console import Console as NewConsole

    if console.is_terminal or "COLUMNS" in os.environ:
        return console
    return NewConsole(file=console.file, width=160, highlight=False)


def add_clock_argument(parser: argparse.ArgumentParser) -> None:
    """`--mhz`: estimated cycles as a time."""
    parser.add_argument(
        "--mhz",
        type=_clock_rate,
        metavar="MHZ",
        help="the core's clock: shows estimated cycles in milliseconds",
    )


def _clock_rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not 0 < rate < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a clock rate in MHz, for example 120")
    return rate


def build_parser(verbs: Iterable[Verb], prog: str, version: str) -> argparse.ArgumentParser:
    """The command line of all verbs under one program name."""
    parser = argparse.ArgumentParser(
        prog=prog, description="Neural networks as source files of a firmware: ONNX and TFLite compiled to C."
    )
    parser.add_argument("--version", action="version", version=f"west-tinyml {version}")
    choices = parser.add_subparsers(metavar="VERB", required=True)
    for verb in verbs:
        description = inspect.cleandoc(type(verb).__doc__ or verb.help)
        sub = choices.add_parser(
            verb.name,
            help=verb.help,
            description=description,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        verb.add_arguments(sub)
        sub.set_defaults(verb=verb, parser=sub)
    return parser


def main(verbs: Iterable[Verb], argv: Sequence[str], prog: str, version: str) -> int:
    """Parse ``argv``, run the verb, print a user's mistake without a traceback."""
    args, unknown = build_parser(verbs, prog, version).parse_known_args(list(argv) or ["--help"])
    if unknown:
        args.parser.error(f"unknown arguments: {' '.join(unknown)}")  # with the usage of the verb, not of all
    from rich.console import Console  # after --help, which needs nothing that must be installed

    try:
        code: int = args.verb.run(args, Console(highlight=False))
    except TinymlError as error:
        complaint = Console(stderr=True, highlight=False, soft_wrap=True)
        complaint.print("error:", style="bold red", end=" ")
        complaint.print(str(error), markup=False)
        return 1
    return code
