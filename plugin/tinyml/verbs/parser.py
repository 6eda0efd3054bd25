# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The command line of all verbs: short complaints, suggestions for misspelt words, common options."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from tinyml.errors import did_you_mean

if TYPE_CHECKING:
    from tinyml.verbs.base import Verb


class Parser(argparse.ArgumentParser):
    """Argparse, but a mistake prints one line of usage instead of every option."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.short_usage()}\nerror: {message}\n  try: {self.prog} --help\n")

    def short_usage(self) -> str:
        """The program, that it has options, and its arguments."""
        arguments = []
        for action in self._get_positional_actions():
            if isinstance(action.metavar, tuple):
                name = " ".join(action.metavar)
            else:
                name = action.metavar or action.dest
            arguments.append(f"[{name}]" if action.nargs in ("?", "*") else name)
        return " ".join(["usage:", self.prog, "[options]", *arguments])

    def unknown(self, words: Sequence[str]) -> NoReturn:
        """Refuse arguments that the verb does not have."""
        options = [word.split("=")[0] for word in words if word.startswith("-")]
        near = did_you_mean(options[0], self._option_string_actions) if options else ""
        self.error(f"unknown arguments: {' '.join(words)}{near}")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Replaces argparse's check of choices, which lists them without saying which is nearest."""
        if action.choices is None or value in action.choices:
            return
        known = [str(choice) for choice in action.choices]
        what = "verb" if isinstance(action, argparse._SubParsersAction) else "value"
        message = (
            f"{str(value)!r} is not a {what}{did_you_mean(str(value), known)} (one of: {', '.join(known)})"
        )
        raise argparse.ArgumentError(action if what == "value" else None, message)


def build_parser(verbs: Iterable[Verb], prog: str, version: str) -> Parser:
    """The command line of all verbs under one program name."""
    parser = Parser(
        prog=prog, description="Neural networks as source files of a firmware: ONNX and TFLite compiled to C."
    )
    parser.add_argument("--version", action="version", version=f"west-tinyml {version}")
    _add_loudness(parser, default=0)
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
        _add_loudness(sub, default=argparse.SUPPRESS)  # so that it does not undo what stands before the verb
        sub.set_defaults(verb=verb, parser=sub)
    return parser


def _add_loudness(parser: argparse.ArgumentParser, default: Any) -> None:
    """`-q` and `-v`, before the verb or after it."""
    loudness = parser.add_mutually_exclusive_group()
    loudness.add_argument(
        *("-q", "--quiet"),
        dest="loudness",
        action="store_const",
        const=-1,
        default=default,
        help="print errors only",
    )
    loudness.add_argument(
        *("-v", "--verbose"),
        dest="loudness",
        action="store_const",
        const=1,
        default=default,
        help="also print the stages of the compiler and the programs that are run",
    )
