# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`quantize`: a float model to int8, with an accuracy report."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tinyml.settings.quantize_request import (
    IO,
    KEYS,
    LEAVES,
    METHODS,
    WEIGHTS,
    Request,
    from_settings,
    settings,
)
from tinyml.verbs.base import Verb, roomy
from tinyml.verbs.parser import MISSING, Parser
from tinyml.verbs.settings import add_setting, chosen

if TYPE_CHECKING:
    from rich.console import Console

    from tinyml.quantize.report import Report

SETTINGS = ("shapes", "bounds", "frontend", "operators")
PAST = "the longest past of a decoder whose caches grow, as past_sequence_length=128 (repeatable)"


class Quantize(Verb):
    """Turn a float model into an int8 model, and report the loss of accuracy.

    Requires calibration data: a few dozen to a few hundred real inputs, preprocessed as in training. A .npz
    with one array per input (by tensor name, or in0, in1, ...; one row per sample), a .npy, a .csv with one
    sample per line, a folder of images, or a folder of WAV files. Labels may be in the .npz as "labels", in
    a column "label" of the .csv, or be the names of subfolders. For a model that keeps state, the rows are
    consecutive runs; an additional first axis counts sequences.

    The result is ONNX with QuantizeLinear and DequantizeLinear: weights int8 per channel, activations int8
    with a zero point, biases int32. Float TFLite models become ONNX on the way. Forests of trees compare
    int16 features, and their leaves hold integers.

    With --weights float16 the model stays float, and its weights take half the bytes; the data only serves
    to state the loss, and may be left out.
    """

    name = "quantize"
    help = "turn a float model into an int8 model, and report the loss of accuracy"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("model", type=Path, metavar="MODEL", help="the float model, .onnx or .tflite")
        parser.add_argument(
            "--calibration", metavar="DATA", help="real inputs; required, except for float16 weights"
        )
        if isinstance(parser, Parser):
            parser.expected = "--calibration"
        parser.add_argument(
            "-o", "--output", type=Path, required=True, metavar="FILE.onnx", help="the model to write"
        )
        parser.add_argument("--report", type=Path, metavar="FILE.json", help="also write the report as JSON")
        for name in SETTINGS:
            add_setting(parser, name, help={"bounds": PAST}.get(name, ""))
        choice = parser.add_argument
        choice("--method", choices=METHODS, help="how ranges are found (default: closest to float)")
        choice("--io", choices=IO, help="inputs and outputs of the int8 model (default: float)")
        choice("--keep-float", action="append", metavar="LAYER", help="leave a layer in float (repeatable)")
        choice(
            "--int16",
            action="append",
            metavar="LAYER",
            help="give a layer and its neighbours int16 activations (repeatable)",
        )
        choice(
            "--auto",
            metavar="LOSS",
            help="int16 or float in the cheapest way in which at most LOSS is lost: 0.5 (points of accuracy; "
            "without labels, per cent of decisions changed) or 30dB (signal-to-noise ratio of the outputs)",
        )
        choice("--core", metavar="T", help=f"{KEYS['core']} (default: {Request.core})")
        choice("--labels", metavar="FILE", help="the right class of each calibration sample")
        choice("--range", metavar="LOW:HIGH", help=f"{KEYS['range']}, -1:1 ...")
        choice("--mean", metavar="M[,M..]", help=KEYS["mean"])
        choice("--std", metavar="S[,S..]", help=KEYS["std"])
        choice("--samples", metavar="N", help=f"{KEYS['samples']} (default: {Request.samples})")
        choice("--weights", choices=WEIGHTS, help=f"{KEYS['weights']} (default: {Request.weights})")
        choice("--max-loss", metavar="LOSS", help=f"{KEYS['max_loss']} (default: 1)")
        choice("--test", metavar="DATA", help=KEYS["test"])
        choice("--leaves", choices=LEAVES, help=f"{KEYS['leaves']} (default: {Request.leaves})")

    def run(self, args: argparse.Namespace, console: Console) -> int:
        from tinyml.api.quantized import convert
        from tinyml.api.sources import as_model
        from tinyml.base import whole_files
        from tinyml.base.errors import ConfigError, writing
        from tinyml.verbs.progress import Bars

        if args.output.suffix.lower() != ".onnx":
            raise ConfigError(
                f"the quantised model is an ONNX file, but {args.output} does not end in .onnx",
                "-o int8.onnx",
            )
        for path in (args.output, args.report):
            if path and path.is_dir():
                raise ConfigError(f"cannot write {path}: it is a folder", "name a file")
        if args.calibration is None and args.weights != "float16":
            args.parser.error(f"{MISSING} --calibration")
        given = {key: getattr(args, key) for key in KEYS if getattr(args, key) is not None}
        request = from_settings(settings(given, "quantize"), Path())
        own = chosen(args, SETTINGS)
        request = replace(request, frontend=own.frontend)
        model = as_model(args.model, shapes=own.shapes)
        with Bars() as bars:
            quantized = convert(model, request, bars.advance, own.operators, own.bounds)
        with writing(args.output):
            args.output.parent.mkdir(parents=True, exist_ok=True)
        quantized.save(args.output)
        if args.report:
            text = json.dumps(quantized.report.as_json(), indent=2)
            whole_files.save(args.report, text + "\n")
        show(quantized.report, console)
        console.print(f"saved to {args.output}", markup=False, soft_wrap=True)
        return 0


def show(report: Report, console: Console) -> None:
    """Print the layers as a table, the totals, and warnings."""
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("layer", overflow="fold")
    table.add_column("operator")
    table.add_column("type")
    table.add_column("SNR", justify="right")
    table.add_column("lost here", justify="right")
    table.add_column("share of loss", justify="right")
    layers = report.computing()
    if any(layer.why for layer in layers):
        table.add_column("why float", overflow="fold")
    for layer in layers:
        cells = [
            layer.name,
            layer.op_type,
            layer.type_text,
            "" if layer.decibels is None else f"{layer.decibels:.1f} dB",
            "" if layer.lost_here is None else f"{layer.lost_here:.1f} dB",
            "" if layer.share is None else f"{100 * layer.share:.0f} %",
            layer.why,
        ]
        table.add_row(*cells[: len(table.columns)])
    roomy(console, 1000).print(table, markup=False)
    tried = ", ".join(f"{name} {decibels:.1f} dB" for name, decibels in report.methods.items())
    lines = [f"ranges: {report.method}" + (f" ({tried})" if len(report.methods) > 1 else "")]
    lines = lines if report.method else []
    for step, (before, after) in report.steps.items():
        lines.append(f"{step}: {before:.1f} -> {after:.1f} dB at the outputs")
    error = f"; largest error {report.largest_error:.4g}" if report.samples else ""
    lines.append(f"result: {report.headline()}{error}")
    weights = f"weights: {report.float_bytes:,} -> {report.int8_bytes:,} bytes"
    lines.append(f"{weights}; {report.sparsity}" if report.sparsity.weights else weights)
    if report.kept_float:
        lines.append(f"kept in float: {', '.join(report.kept_float)}")
    if report.int16:
        lines.append(f"int16 activations: {', '.join(report.int16)}")
    for line in lines:
        console.print(line, markup=False, soft_wrap=True)
    if len(report.choices) > 1:
        show_choices(report, console)
    if report.variants:
        show_variants(report, console)
    for line in report.advice():
        console.print("warning: ", style="yellow", end="")
        console.print(line, markup=False, soft_wrap=True)


def show_variants(report: Report, console: Console) -> None:
    """int8, mixed and int4 side by side, and the layers that keep eight bits."""
    from rich.table import Table

    tested = report.variants[0].tested
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("weights")
    table.add_column("bytes", justify="right")
    table.add_column("layers with four bits", justify="right")
    table.add_column("SNR", justify="right")
    data = f"{tested:,} test samples" if tested else "the calibration data"
    labelled = report.variants[0].accuracy is not None
    table.add_column(f"{'accuracy' if labelled else 'decisions as in float'}, {data}", justify="right")
    for variant in report.variants:
        share = variant.agreement if variant.accuracy is None else variant.accuracy
        table.add_row(
            variant.name,
            f"{variant.weight_bytes:,}",
            f"{variant.int4_layers}",
            f"{variant.decibels:.1f} dB",
            f"{100 * share:.2f} %",
        )
    roomy(console, 1000).print(table, markup=False)
    for name, why in report.eight_bits.items():
        console.print(f"eight bits: {name}: {why}", markup=False, soft_wrap=True)


def show_choices(report: Report, console: Console) -> None:
    """The ways in which `--auto` reaches the goal; a star marks the one that was taken."""
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("ways that reach the goal")
    for head in ("SNR", "instructions", "bytes", "float layers", "int16 layers"):
        table.add_column(head, justify="right")
    for choice in report.choices:
        table.add_row(
            ("* " if choice.taken else "  ") + choice.name,
            f"{choice.decibels:.1f} dB",
            "?" if choice.instructions is None else f"{choice.instructions:,}",
            f"{choice.bytes:,}",
            f"{choice.float_layers}",
            f"{choice.int16_layers}",
        )
    roomy(console, 1000).print(table, markup=False)
