# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`opt`: passes on the text form of a graph."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tinyml.verbs.base import Verb

if TYPE_CHECKING:
    from rich.console import Console

    from tinyml.ir import Graph


class Opt(Verb):
    """Run passes on a graph in its text form, and print the graph after them.

    FILE is text as `tinyml compile --dump-ir` prints it, - for standard input, or a .onnx or .tflite model.
    Without -p the graph is only checked and printed. Constants of more than 8 elements have no values in the
    text; they are read as zeros.

      tinyml opt graph.txt -p cancel_transposes,remove_no_ops
      tinyml opt --list
    """

    name = "opt"
    help = "run passes of the compiler on the text form of a graph"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("file", nargs="?", metavar="FILE", help="the graph as text, -, or a model file")
        parser.add_argument(
            "-p",
            "--passes",
            action="append",
            default=[],
            metavar="PASS,PASS",
            help="the passes to run, in this order (repeatable; default: none)",
        )
        parser.add_argument("--list", action="store_true", help="list the passes, in the compiler's order")

    def run(self, args: argparse.Namespace, console: Console) -> int:
        from tinyml.base.errors import ConfigError
        from tinyml.ir.text import dump
        from tinyml.pipeline import apply_passes, pass_summaries

        if args.list:
            for name, summary in pass_summaries().items():
                console.print(f"{name:26}{summary}", markup=False, soft_wrap=True)
            return 0
        if args.file is None:
            raise ConfigError("no graph is given", "tinyml opt FILE, or - for standard input")
        names = [name.strip() for part in args.passes for name in part.split(",") if name.strip()]
        console.file.write(dump(apply_passes(_graph(args.file), names)))
        return 0


def _graph(file: str) -> Graph:
    import tinyml.ops.catalog  # noqa: F401  the parser knows operators that are imported
    from tinyml.base.errors import ModelError
    from tinyml.base.naming import MODEL_SUFFIXES
    from tinyml.ir.text_parser import parse
    from tinyml.pipeline import read_graph

    if Path(file).suffix.lower() in MODEL_SUFFIXES:
        return read_graph(Path(file))
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except OSError as error:
        raise ModelError(f"cannot read {file}: {error.strerror}") from None
    except ValueError:  # UnicodeDecodeError, or a NUL in the name
        raise ModelError(
            f"{file!r} is not a text file", "the output of `tinyml compile --dump-ir`, or a .onnx or .tflite"
        ) from None
    return parse(text)
