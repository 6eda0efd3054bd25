# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`web`: a page that runs the generated C in a browser."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tinyml.base.errors import ConfigError
from tinyml.report.web.giving import KINDS
from tinyml.verbs.base import Verb, add_app_argument
from tinyml.verbs.named import resolve_model
from tinyml.verbs.output_files import check_suffix
from tinyml.verbs.settings import FILE_OR_NAME, add_model_arguments, add_setting, options_from

if TYPE_CHECKING:
    from rich.console import Console

    from tinyml.features.settings import FrontEnd
    from tinyml.ir import Array
    from tinyml.pipeline import Compiled
    from tinyml.report.web.page import Run

MOST_EXAMPLES = 24
"""Samples that a page carries; more would only make it larger."""


class Web(Verb):
    """Make one HTML file in which anybody can try a model, without a device and without a network.

    The page holds the generated C as WebAssembly. A person draws a digit, speaks a word, drops a picture or
    a file, and sees the outputs that the C computes. Inputs stay in the browser.

    With --input, the page offers these samples to click on. When it is opened, it runs all of them and
    compares the bytes of every output with those of the same C on this machine.

    MODEL is a file, or a model's name in the application's tinyml.yaml, with the settings that it has there.
    Requires clang, lld and wasi-libc.
    """

    name = "web"
    help = "a page that runs the model's C in a browser"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_model_arguments(parser, help=FILE_OR_NAME)
        add_setting(parser, "classes")
        add_app_argument(parser)
        parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="the HTML file")
        parser.add_argument(
            "--input",
            type=Path,
            metavar="DATA",
            help="samples that the page offers: .npz, .npy, .csv or a folder; for a front end, a recording",
        )
        meanings = "; ".join(f"{kind}: {meaning}" for kind, meaning in KINDS.items())
        parser.add_argument(
            "--give",
            choices=tuple(KINDS),
            help=f"how the page takes the input (default: what fits): {meanings}",
        )
        parser.add_argument(
            "--range",
            nargs=2,
            type=float,
            metavar=("BLACK", "WHITE"),
            help="the model's values of black and white (default: 0 and 1, or the range of an integer type)",
        )
        parser.add_argument("--title", default="", help="the title of the page (default: the model's name)")

    def run(self, args: argparse.Namespace, console: Console) -> int:
        from tinyml.api.compiled import build
        from tinyml.api.sources import as_model
        from tinyml.report.web.page import page
        from tinyml.settings.passing import Io
        from tinyml.verbs.report import write

        check_suffix(args.output, "a page", ".html", ".htm")
        if args.range and args.range[0] == args.range[1]:
            raise ConfigError("--range gives black and white the same value", "for example --range -1 1")
        resolve_model(args)
        model = as_model(args.model)
        options = options_from(args, args.target)
        on_device = build(model, options)
        in_page = build(
            model,
            replace(
                options, target="host", npu="", kernels="portable", io=Io(int8=options.io.int8), watch=False
            ),
        )
        compiled = in_page.built
        runs, recordings = examples(args.input, compiled, options.frontend)
        text = page(
            compiled,
            on_device.built,
            title=args.title or compiled.name,
            kind=args.give or "",
            limits=tuple(args.range) if args.range else None,
            runs=runs,
            recordings=recordings,
        )
        write(args.output, text)
        size = len(text.encode())
        console.print(f"{compiled.name}: {size:,} bytes -> {args.output}", markup=False, soft_wrap=True)
        return 0


def examples(
    path: Path | None, compiled: Compiled, frontend: FrontEnd | None
) -> tuple[list[Run], dict[str, Array]]:
    """The samples of a page: runs with the outputs of this machine, or recordings for a front end."""
    from tinyml import harness
    from tinyml.datasets import recordings
    from tinyml.datasets.model_inputs import load_samples

    if path is None:
        return [], {}
    if frontend is not None and (path.is_dir() or path.suffix.lower() in recordings.suffixes(frontend)):
        files = recordings.find(path, frontend) if path.is_dir() else [path]
        if not all(file.is_file() for file in files):
            raise ConfigError(f"there is no recording {path}")
        return [], {file.name: recordings.samples(file, frontend) for file in files[:MOST_EXAMPLES]}
    inputs = load_samples(path, compiled.graph)[:MOST_EXAMPLES]
    result = harness.run_files(compiled.files, "host", inputs, reset_before={0})
    return list(zip(inputs, result.outputs, strict=True)), {}
