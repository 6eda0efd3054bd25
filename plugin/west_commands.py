# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`west tinyml`: passes its arguments to the verbs of the `tinyml` command."""

from __future__ import annotations

import argparse
import os
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from west.commands import WestCommand

HERE = Path(__file__).resolve().parent
PLUGIN = HERE if (HERE / "tinyml").is_dir() else HERE.parents[1]  # in a clone, or in tinyml/module


class Tinyml(WestCommand):
    """A thin shell. The verbs parse all arguments, including --help."""

    def __init__(self) -> None:
        super().__init__(
            "tinyml",
            "neural networks as source files of a firmware",
            "Compile ONNX and TFLite models into Zephyr applications.",
            accepts_unknown_args=True,
        )

    def do_add_parser(self, parser_adder: Any) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = parser_adder.add_parser(
            self.name, help=self.help, description=self.description, add_help=False
        )
        return parser

    def do_run(self, args: argparse.Namespace, unknown: list[str]) -> None:
        if self.has_manifest and self.topdir:
            os.environ.setdefault("TINYML_WORKSPACE", self.topdir)
        installed = installed_version()  # before the path changes: it may lead to metadata of its own
        # This copy is the one that the build runs. An installed one must not hide it, and west has put the
        # folder at the end of the path.
        sys.path[:] = [str(PLUGIN), *(folder for folder in sys.path if folder != str(PLUGIN))]
        # west swallows an ImportError at the top of this file; here it can be explained.
        try:
            from tinyml import __version__
            from tinyml.verbs import VERBS
            from tinyml.verbs.base import main

            self.warn_of_another_version(installed, __version__)
            code = main(VERBS, unknown, prog="west tinyml", version=__version__)
        except ImportError as error:
            if (error.name or "").startswith("tinyml"):
                raise  # a bug of ours
            self.die(
                f"TinyML requires a Python package that {sys.executable} does not have: {error}\n"
                f"  try: {sys.executable} -m pip install {PLUGIN.parent}"
            )
        if code:
            raise SystemExit(code)

    def warn_of_another_version(self, installed: str | None, ours: str) -> None:
        """Python packages that pip installed for another version of the compiler may not fit this one."""
        if installed and installed != ours:
            self.wrn(
                f"pip has installed west-tinyml {installed}; the workspace has {ours}, which runs here "
                f"and in the build\n  try: {sys.executable} -m pip install {PLUGIN.parent}"
            )


def installed_version() -> str | None:
    """The version that pip has installed, if it has."""
    try:
        return version("west-tinyml")
    except PackageNotFoundError:
        return None
