# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`watch`: what a model sees and decides, on a device or on recorded data."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tinyml.verbs.base import Verb

if TYPE_CHECKING:
    from rich.console import Console

    from tinyml.watch.figures import Figures

EXIT_OUTSIDE = 3
"""A figure is outside its limit."""


class Watch(Verb):
    """Show what a model with `watch: true` has seen and decided: drift against the data that it was
    calibrated on, decisions, scores, margin, entropy, switches and cycles.

    With --reference it writes a C header with what the model's input should look like, for firmware that
    watches the models in a slot.

    With --serial it reads a running device, once or every few seconds. With --replay it counts what a device
    would count on a data set, in every bit. With --cbor it reads what tinyml_watch_encode() wrote.

    --limit NAME=VALUE ends the command with exit code 3 if a figure is outside: drift=0.05, margin=0.4.
    docs/watch.md says how to choose limits.
    """

    name = "watch"
    help = "what a model sees and decides: drift, decisions, scores"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "model",
            metavar="MODEL",
            nargs="?",
            help="with --replay, the model file; with --serial, the name of the model on the device",
        )
        source = parser.add_mutually_exclusive_group(required=True)
        source.add_argument(
            "--serial", metavar="PORT", help="the device's serial port, or a Zephyr build folder"
        )
        source.add_argument("--replay", type=Path, metavar="DATA", help=".npz, .npy, .csv, or a folder")
        source.add_argument(
            "--cbor", type=Path, nargs="+", metavar="FILE", help="reports of devices, in order"
        )
        source.add_argument(
            "--reference",
            type=Path,
            metavar="FILE.h",
            help="write the reference of the model's input, for firmware that watches models in slots",
        )
        parser.add_argument("--baud", type=int, default=115200, metavar="N", help="default: %(default)s")
        parser.add_argument(
            "--every", type=float, metavar="SECONDS", help="with --serial: read again and again, until Ctrl-C"
        )
        parser.add_argument(
            "--periods", type=int, metavar="N", help="with --every: end after N periods instead of Ctrl-C"
        )
        parser.add_argument(
            "--reset", action="store_true", help="with --serial: every reading starts the next period"
        )
        parser.add_argument(
            "--period", type=int, metavar="RUNS", help="with --replay: runs of a period (default: all)"
        )
        parser.add_argument(
            "--watch-data",
            type=Path,
            metavar="DATA",
            help="with --replay and --reference: samples to compare inputs with",
        )
        parser.add_argument(
            "--watch-channels",
            action="store_true",
            help="with --replay and --watch-data: count the channels of the input one by one, too",
        )
        parser.add_argument(
            "--limit", action="append", default=[], metavar="NAME=VALUE", help="exit code 3 if it is passed"
        )
        parser.add_argument(
            "--html", type=Path, metavar="FILE", help="write a page with pictures of all periods"
        )
        parser.add_argument("--json", action="store_true", help="print one line of JSON per period")

    def run(self, args: argparse.Namespace, console: Console) -> int:
        from tinyml.base.whole_files import write_whole
        from tinyml.report.watch_page import watch_page
        from tinyml.report.watch_text import as_json, lines_of
        from tinyml.watch.limits import broken, parse_limits

        if args.reference:
            return self._write_reference(args, console)
        limits = parse_limits(args.limit)
        periods: list[Figures] = []
        wrong = False
        try:
            for figures in self._periods(args):
                periods.append(figures)
                texts = [as_json(figures)] if args.json else lines_of(figures, len(periods))
                for line in texts:
                    console.print(line, markup=False, highlight=False, soft_wrap=True)
                for complaint in broken(limits, figures):
                    wrong = True
                    if not args.json:
                        console.print(f"  limit: {complaint}", markup=False, soft_wrap=True)
        except KeyboardInterrupt:
            if args.every is None:
                raise
        if args.html:
            write_whole(args.html, watch_page(periods, limits).encode())
            if not args.json:
                console.print(f"-> {args.html}", markup=False, soft_wrap=True)
        return EXIT_OUTSIDE if wrong else 0

    def _write_reference(self, args: argparse.Namespace, console: Console) -> int:
        from tinyml.api.compiled import build
        from tinyml.api.sources import as_model
        from tinyml.base.errors import ConfigError
        from tinyml.pipeline import Options
        from tinyml.watch.reference_header import written

        if not args.model:
            raise ConfigError("--reference needs the model file", "tinyml watch kws.onnx --reference kws.h")
        options = Options(target="host", watch=True, watch_data=args.watch_data)
        compiled = build(as_model(Path(args.model)), options)
        assert compiled.built.watch is not None
        written(compiled.name, compiled.built.watch, args.reference)
        console.print(f"-> {args.reference}", markup=False, soft_wrap=True)
        return 0

    def _periods(self, args: argparse.Namespace) -> Iterator[Figures]:
        from tinyml.base.errors import ConfigError

        if args.cbor:
            from tinyml.watch.figures import of_cbor

            for file in args.cbor:
                yield of_cbor(file.read_bytes())
        elif args.replay:
            from tinyml.api.replaying import replay

            if not args.model:
                raise ConfigError("--replay needs the model file", "tinyml watch kws.onnx --replay data.npz")
            yield from replay(
                Path(args.model),
                args.replay,
                watch_data=args.watch_data,
                watch_channels=args.watch_channels,
                period=args.period,
            )
        else:
            yield from self._device(args)

    def _device(self, args: argparse.Namespace) -> Iterator[Figures]:
        import time

        from tinyml.api.connected import connect
        from tinyml.base.errors import ConfigError

        if args.every is not None and args.every <= 0:
            raise ConfigError(f"--every {args.every:g} seconds", "a positive number")
        with connect(args.serial, baud=args.baud) as device:
            count = 0
            while True:
                yield device.watch(args.model, reset=args.reset)
                count += 1
                if args.every is None or count == args.periods:
                    return
                device.release()
                time.sleep(args.every)
