# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Parsing of command lines: short complaints, suggestions for misspelt words, options of every verb."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from typing import Any, NoReturn

from tinyml.base.errors import did_you_mean

MISSING = "the following arguments are required:"
"""How argparse begins a complaint."""


class Parser(argparse.ArgumentParser):
    """Argparse, but a mistake prints one line of usage instead of every option."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # What begins like a negative number is a value, not an option: -1:1 and -0.5,-0.5 too.
        self._negative_number_matcher = re.compile(r"-\.?\d")
        self._words: list[str] = []
        self.expected = ""  # an option that most calls require, though argparse does not

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self._words = list(args or ())
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        if message.startswith(MISSING):
            message += self._instead(message.removeprefix(MISSING).strip())
        self.exit(2, f"{self.short_usage()}\nerror: {message}\n  try: {self.prog} --help\n")

    def _instead(self, missing: str) -> str:
        """What was given and does not exist, where something else is missing."""
        words = (word.split("=")[0] for word in self._words if word.startswith("--") and word != "--")
        known = tuple(self._option_string_actions)
        for word in words:
            if not any(option.startswith(word) for option in known):  # argparse allows beginnings
                near = did_you_mean(word, known)
                plain = [option for option in missing.split(", ") if option in known]
                guess = f"; did you mean {plain[0]}?" if len(plain) == 1 else ""
                return f"; there is no {word}{near or guess or self._perhaps_expected()}"
        return ""

    def _perhaps_expected(self) -> str:
        given = any(word.split("=")[0] == self.expected for word in self._words)
        return f"; did you mean {self.expected}?" if self.expected and not given else ""

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
        # a single letter resembles every option that begins with it
        long = [option for option in options[:1] if option.startswith("--")]
        near = did_you_mean(long[0], self._option_string_actions) or self._perhaps_expected() if long else ""
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


def add_loudness(parser: argparse.ArgumentParser, default: Any) -> None:
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
