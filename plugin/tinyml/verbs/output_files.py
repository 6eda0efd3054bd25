# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Files that a command writes: never one that it reads, and with the suffix of their kind."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

from tinyml.base.errors import ConfigError

WRITTEN = ("output", "html", "json", "report", "reference", "depfile")
"""Options that name such files, where their values are paths."""

DEVICES = Path("/dev")
"""Anything can be written there, to /dev/null for example."""


def refuse_overwriting(args: argparse.Namespace) -> None:
    """Refuse to write over a file that another argument names, to read or to write."""
    outputs = [path for key in WRITTEN if isinstance(path := getattr(args, key, None), Path)]
    for output in outputs:
        if output.is_file() and any(_same(output, path) for path in _read(args)):
            raise ConfigError(
                f"{output} is a file that this command reads, and would be lost", "another file to write"
            )
    for first, second in combinations(outputs, 2):
        if first.resolve() == second.resolve() and first.parent != DEVICES:
            raise ConfigError(
                f"two results of this command would be written to {second}", "a file for each of them"
            )


def _read(args: argparse.Namespace) -> Iterator[Path]:
    for key, value in vars(args).items():
        if key in WRITTEN and isinstance(value, Path):
            continue
        if key == "against" and isinstance(value, str):  # `bench` may replace the figures it compares with
            continue
        for word in value if isinstance(value, list | tuple) else [value]:
            if isinstance(word, Path | str) and word:
                yield Path(word)


def _same(output: Path, path: Path) -> bool:
    try:
        return path.is_file() and path.samefile(output)
    except (OSError, ValueError):  # a text that is no file name
        return False


def check_suffix(path: Path, kind: str, *suffixes: str) -> None:
    """Refuse a name that says something else than what is written."""
    if path.parent != DEVICES and path.suffix.lower() not in suffixes:
        raise ConfigError(
            f"{kind} is to be written, but {path} does not end in {suffixes[0]}",
            f"-o {path.stem or 'file'}{suffixes[0]}",
        )
