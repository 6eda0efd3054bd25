# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`run`: compile a model and run it on the host or in QEMU."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from tinyml.base.naming import shape_text
from tinyml.verbs.base import Verb, add_app_argument
from tinyml.verbs.named import resolve_model
from tinyml.verbs.runner import add_run_arguments
from tinyml.verbs.settings import FILE_OR_NAME, add_model_arguments, options_from

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console

    from tinyml.ir import Array, Graph


class Run(Verb):
    """Run a model as compiled C, on this machine or on a Cortex-M or RISC-V core in QEMU.

    A .npz file holds one array per input, by tensor name or as in0, in1, ... in the model's order. Arrays
    with N rows are N runs, one after the other: a model with state steps through them as a sequence.
    The output file gets every output under both names, with one row per run. Without an input file, a fixed
    pattern is used. The boxes of a detector are listed with their scores and classes.

    MODEL can be a pack without code (.tmodel), which the player runs.
    """

    name = "run"
    help = "run a model as compiled C, on the host or in QEMU"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_model_arguments(parser, target=False, help=FILE_OR_NAME)
        add_app_argument(parser)
        add_run_arguments(parser)
        parser.add_argument("--output", type=Path, metavar="Y.npz", help="the file for the results")

    def run(self, args: argparse.Namespace, console: Console) -> int:
        from rich.table import Table

        from tinyml.api.compiled import build
        from tinyml.api.running import execute, played_result
        from tinyml.api.sources import as_model
        from tinyml.datasets import arrays
        from tinyml.datasets.model_inputs import load_samples
        from tinyml.slots.playing import SUFFIX, played_on

        resolve_model(args)
        if args.model.suffix == SUFFIX:
            played = played_on(args.model, args.on)
            title, graph = played.model.name, played.graph()
            result = played_result(played, load_samples(args.input, graph))
        else:
            compiled = build(as_model(args.model), options_from(args, args.on.removeprefix("qemu-")))
            title, graph = compiled.name, compiled.built.graph
            result = execute(compiled, load_samples(args.input, graph), args.on)
        several = len(result.runs) > 1
        table = Table(
            *(["row"] if several else []), "output", "shape", "values", box=None, padding=(0, 2, 0, 0)
        )
        for row, outputs in enumerate(result.runs):
            for name in graph.outputs:
                array = outputs[name]
                shape = shape_text(array.shape)
                table.add_row(*([str(row)] if several else []), name, shape, arrays.preview(array))
                if top := arrays.top_classes(array, graph.tensors[name], graph.labels):
                    table.add_row(*([""] if several else []), "", "largest", top)
        console.print(table)
        for row, outputs in enumerate(result.runs):
            _show_boxes(graph, outputs, f"row {row}: " if several else "", console)
        console.print(f"{title} on {args.on}: {result.facts()}", markup=False)
        if args.output:
            arrays.save_outputs(args.output, graph, result.runs)
            console.print(f"saved to {args.output}", markup=False, soft_wrap=True)
        return 0


def _show_boxes(graph: Graph, outputs: Mapping[str, Array], title: str, console: Console) -> None:
    """What a detector found in one run; nothing for other models."""
    from rich.table import Table

    from tinyml.datasets.detections import detections

    found = detections(graph, outputs)
    if found is None:
        return
    console.print(f"{title}{len(found)} {'box' if len(found) == 1 else 'boxes'}", markup=False)
    if found:
        table = Table("", "score", "left", "top", "right", "bottom", box=None, padding=(0, 2, 0, 0))
        for one in found:
            sides = (f"{side:.4g}" for side in (one.left, one.top, one.right, one.bottom))
            table.add_row(one.name(graph.labels), f"{one.score:.3f}" if one.score >= 0 else "", *sides)
        console.print(table)
