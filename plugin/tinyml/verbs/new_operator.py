# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`new-operator`: an operator of the user's own, as files to start from."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING

from tinyml.base.errors import ConfigError
from tinyml.verbs.base import Verb

if TYPE_CHECKING:
    from rich.console import Console


class NewOperator(Verb):
    """Write an operator of your own to start from: a Python file, its kernel in C, and a test.

    The files work as they are. Change them, list the Python file in tinyml.yaml (operators: [FILE]) or give
    it to a command with --operators FILE. See docs/operators.md.
    """

    name = "new-operator"
    help = "write the files of an operator of your own"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("operator", metavar="NAME", help="its name in ONNX files, such as MexicanHat")
        parser.add_argument(
            "--domain", default="com.example", metavar="D", help="its domain there (default: %(default)s)"
        )
        parser.add_argument(
            "-o", "--output", type=Path, default=Path(), metavar="DIR", help="the folder (default: this one)"
        )

    def run(self, args: argparse.Namespace, console: Console) -> int:
        from tinyml.base.templates import render
        from tinyml.projects.files import replace_all

        name: str = args.operator
        if not re.fullmatch(r"[A-Z][A-Za-z0-9]*", name):
            raise ConfigError(
                f"{name!r} cannot be the name of an operator: it becomes a class in Python",
                "letters and digits, starting with a capital letter: MexicanHat",
            )
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_.-]*", args.domain):
            raise ConfigError(f"{args.domain!r} cannot be a domain of ONNX", "for example com.example")
        stem = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
        context = {
            "name": name,
            "stem": stem,
            "function": f"{stem}_f32",
            "domain": args.domain,
            "test": f"test_{stem}.py",
        }
        templates = {
            f"{stem}.py": "operator.py.j2",
            f"{stem}.c": "operator.c.j2",
            f"test_{stem}.py": "operator_test.py.j2",
        }
        contents: dict[Path, bytes | None] = {
            args.output / file: render("projects", template, context).encode()
            for file, template in templates.items()
        }
        for path in contents:
            if path.exists():
                raise ConfigError(f"{path} already exists", "another name, or another folder with -o")
        replace_all(contents)
        for path in contents:
            console.print(f"wrote {path}", markup=False, soft_wrap=True)
        console.print(
            f"try: python -m pytest {args.output / f'test_{stem}.py'}", markup=False, soft_wrap=True
        )
        return 0
